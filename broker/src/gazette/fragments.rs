//! ListFragments: a page of a journal's index.

use crate::{Ask, Broker, Error, Page};
use protocol::Status;
use protocol::request::FragmentsRequest;
use protocol::response::FragmentsResponse;

/// Serves one ListFragments.
pub async fn page(broker: &Broker, request: FragmentsRequest) -> Result<FragmentsResponse, Error> {
    let resolution = broker.resolve(&Ask::from(&request)).await?;
    match broker.fragments(&resolution, &request).await {
        Ok(Page { fragments, next }) => Ok(FragmentsResponse {
            status: Status::Ok,
            header: resolution.header,
            fragments,
            next_page_token: next,
        }),
        Err(error) => match error.status() {
            Some(status) => Ok(FragmentsResponse::refusal(status, resolution.header)),
            None => Err(error),
        },
    }
}
