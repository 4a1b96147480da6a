//! Gazette's service `protocol.Journal`: what its clients, consumers and gazctl speak.
//!
//! An outcome that Gazette has a status for is an answer; everything else is an error of the call
//! (gazette-spec 1.1).

mod append;
mod apply;
mod fragments;
mod health;
mod list;
mod read;

use crate::Error;
use crate::metrics::Operation;
use crate::server::caller::Visitor;
use client::token::Capability;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use protocol::request::{
    ApplyRequest, FragmentStoreHealthRequest, FragmentsRequest, ListRequest, ReadRequest,
};
use protocol::response::FragmentStoreHealthResponse;
use protocol::wire::gazette::{self, journal_server::Journal};
use protocol::{Remedy, Status};
use std::sync::Arc;
use tokio::sync::Mutex;
use tonic::{Request, Response, Streaming};

pub(crate) use list::responses as list_responses;
pub(crate) use read::responses as read_responses;

type Answer<T> = Result<Response<T>, tonic::Status>;

/// The service, for the requests of one connection.
pub struct Gazette {
    visitor: Visitor,
    /// One check of a store at a time: they would find each other's probes.
    checking: Arc<Mutex<()>>,
}

impl Gazette {
    pub fn new(visitor: Visitor, checking: Arc<Mutex<()>>) -> Self {
        Gazette { visitor, checking }
    }
}

#[tonic::async_trait]
impl Journal for Gazette {
    type ListStream = BoxStream<'static, Result<gazette::ListResponse, tonic::Status>>;
    type ReadStream = BoxStream<'static, Result<gazette::ReadResponse, tonic::Status>>;
    type ReplicateStream = BoxStream<'static, Result<gazette::ReplicateResponse, tonic::Status>>;

    async fn list(&self, request: Request<gazette::ListRequest>) -> Answer<Self::ListStream> {
        let caller = self.visitor.admit(&request, Capability::LIST)?;
        let request = ListRequest::try_from(request.into_inner())?;
        let pages = list::responses(caller, request);
        Ok(Response::new(pages.map(|page| Ok(page.into())).boxed()))
    }

    async fn apply(
        &self,
        request: Request<gazette::ApplyRequest>,
    ) -> Answer<gazette::ApplyResponse> {
        let caller = self.visitor.admit(&request, Capability::APPLY)?;
        let request = ApplyRequest::try_from(request.into_inner())?;
        let counted = caller.broker.metrics().begin(Operation::Apply);
        let response = apply::apply(&caller, request).await.map_err(call_error)?;
        counted.end(response.status);
        Ok(Response::new(response.into()))
    }

    async fn read(&self, request: Request<gazette::ReadRequest>) -> Answer<Self::ReadStream> {
        let caller = self.visitor.admit(&request, Capability::READ)?;
        let request = ReadRequest::try_from(request.into_inner())?;
        let responses = read::responses(caller, request);
        Ok(Response::new(responses.map_ok(Into::into).map_err(call_error).boxed()))
    }

    async fn append(
        &self,
        request: Request<Streaming<gazette::AppendRequest>>,
    ) -> Answer<gazette::AppendResponse> {
        let caller = self.visitor.admit(&request, Capability::APPEND)?;
        let messages = request.into_inner();
        let counted = caller.broker.metrics().begin(Operation::Append);
        let response = append::append(&caller, messages).await?;
        counted.end(response.status);
        Ok(Response::new(response.into()))
    }

    async fn replicate(
        &self,
        request: Request<Streaming<gazette::ReplicateRequest>>,
    ) -> Answer<Self::ReplicateStream> {
        let caller = self.visitor.admit(&request, Capability::REPLICATE)?;
        drop(caller.broker.metrics().begin(Operation::Replicate));
        Err(tonic::Status::unimplemented("this broker stands alone and has no replicas"))
    }

    async fn list_fragments(
        &self,
        request: Request<gazette::FragmentsRequest>,
    ) -> Answer<gazette::FragmentsResponse> {
        let caller = self.visitor.admit(&request, Capability::READ)?;
        let request = FragmentsRequest::try_from(request.into_inner())?;
        let counted = caller.broker.metrics().begin(Operation::ListFragments);
        let response = fragments::page(&caller, request).await.map_err(call_error)?;
        counted.end(response.status);
        Ok(Response::new(response.into()))
    }

    async fn fragment_store_health(
        &self,
        request: Request<gazette::FragmentStoreHealthRequest>,
    ) -> Answer<gazette::FragmentStoreHealthResponse> {
        let caller = self.visitor.admit(&request, Capability::READ)?;
        let request = FragmentStoreHealthRequest::try_from(request.into_inner())?;
        let counted = caller.broker.metrics().begin(Operation::FragmentStoreHealth);
        let _turn = self.checking.lock().await;
        let checked = health::check(&caller.broker, &request).await;
        let (status, store_health_error) = match checked {
            Ok(()) => (Status::Ok, String::new()),
            Err(why) => (Status::FragmentStoreUnhealthy, why),
        };
        counted.end(status);
        let header = caller.broker.header();
        let response = FragmentStoreHealthResponse { status, header, store_health_error };
        Ok(Response::new(response.into()))
    }
}

/// The error of a call for what has no status. Go clients retry on Unavailable alone, and expect
/// Unknown with a text where asking again does not help.
pub(crate) fn call_error(error: Error) -> tonic::Status {
    let text = error.to_string();
    let is_full =
        error.is_full() || matches!(error, Error::StagingFull { .. } | Error::OverSize { .. });
    match error.remedy() {
        _ if matches!(error, Error::Unauthorized(_)) => tonic::Status::unauthenticated(text),
        _ if is_full => tonic::Status::resource_exhausted(text),
        Remedy::Later | Remedy::Reroute => tonic::Status::unavailable(text),
        Remedy::Lost => tonic::Status::data_loss(text),
        Remedy::Fix => tonic::Status::unknown(text),
    }
}
