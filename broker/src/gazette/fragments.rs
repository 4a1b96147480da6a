//! ListFragments: a page of a journal's index.

use crate::server::caller::Caller;
use crate::{Ask, Error, Page};
use protocol::Status;
use protocol::request::FragmentsRequest;
use protocol::response::FragmentsResponse;

/// Serves one ListFragments.
pub async fn page(caller: &Caller, request: FragmentsRequest) -> Result<FragmentsResponse, Error> {
    let resolution = caller.resolve(&Ask::from(&request)).await?;
    match caller.broker.fragments(&resolution, &request).await {
        Ok(Page { fragments, next }) => Ok(FragmentsResponse {
            status: Status::Ok,
            header: caller.broker.header_of(&resolution),
            fragments,
            next_page_token: next,
        }),
        Err(error) => match error.status() {
            Some(status) => {
                let header = caller.broker.header_of(&resolution);
                Ok(FragmentsResponse::refusal(status, header))
            }
            None => Err(error),
        },
    }
}
