//! Our own service `courant.v1.Courant`: what Gazette's protocol can't say (its .proto tells why).
//!
//! A cause that a program has to tell apart is a `Fault` in an answer; errors of a call are left
//! to requests that are no requests, and to connections.

mod append;
mod fault;
mod heads;
mod status;

use crate::gazette::call_error;
use crate::server::caller::Caller;
use crate::specs::{Deleted, Purge};
use crate::{Error, Served};
use cluster::Expect;
use fault::fault_of;
use protocol::wire::courant::courant_server::Courant as Service;
use protocol::wire::courant::{
    AppendRequest, AppendResponse, CreateRequest, CreateResponse, DeleteRequest, DeleteResponse,
    HeadsRequest, HeadsResponse, StatusRequest, StatusResponse, SyncRequest, SyncResponse,
};
use protocol::{Journal, Offset, Status};
use std::sync::Arc;
use tonic::{Request, Response, Streaming};

type Answer<T> = Result<Response<T>, tonic::Status>;

/// The service, for the requests of one connection.
pub struct Courant {
    caller: Caller,
}

impl Courant {
    pub fn new(caller: Caller) -> Self {
        Courant { caller }
    }

    fn served(&self, name: &str) -> Result<Arc<Served>, Error> {
        let journal = Journal::new(name)?;
        let served = self.caller.broker.served(&journal);
        served.ok_or(Error::Unresolved { journal, status: Status::JournalNotFound })
    }

    /// Makes all below the offset durable; answers how far the journal is then.
    async fn sync_below(&self, request: &SyncRequest) -> Result<Offset, Error> {
        let served = self.served(&request.journal)?;
        self.caller.broker.sync(&served, Offset::new(request.offset)?).await?;
        Ok(served.replica().synced())
    }

    async fn create_by_template(&self, request: &CreateRequest) -> Result<CreateResponse, Error> {
        let (served, created) = self.caller.broker.create(&Journal::new(&request.journal)?).await?;
        let head = Some(heads::head(served.stat()));
        Ok(CreateResponse { head, created, ..CreateResponse::default() })
    }

    async fn delete_as(&self, request: &DeleteRequest) -> Result<Deleted, Error> {
        let journal = Journal::new(&request.journal)?;
        let purge = if request.purge { Purge::Objects } else { Purge::Keep };
        match (request.dry_run, purge) {
            (true, Purge::Objects) => self.caller.broker.would_purge(&journal).await,
            (true, Purge::Keep) => self.served(&request.journal).map(|_| Deleted::default()),
            (false, purge) => {
                let expect = expected(request.expect_mod_revision)?;
                self.caller.broker.delete(&journal, expect, purge).await
            }
        }
    }
}

/// 0 deletes whatever is there.
fn expected(mod_revision: i64) -> Result<Expect, Error> {
    match mod_revision {
        0 => Ok(Expect::Any),
        1.. => Ok(Expect::At(mod_revision)),
        _ => {
            let reason = format!("invalid expect_mod_revision ({mod_revision}; expected >= 0)");
            Err(protocol::Invalid::new(reason).into())
        }
    }
}

#[tonic::async_trait]
impl Service for Courant {
    async fn append(&self, request: Request<Streaming<AppendRequest>>) -> Answer<AppendResponse> {
        let messages = request.into_inner();
        append::append(&self.caller, messages).await.map(Response::new)
    }

    async fn sync(&self, request: Request<SyncRequest>) -> Answer<SyncResponse> {
        let response = match self.sync_below(request.get_ref()).await {
            Ok(synced) => SyncResponse { synced: synced.get(), ..SyncResponse::default() },
            Err(error) => {
                let (fault, detail) = (fault_of(&error).into(), error.to_string());
                SyncResponse { fault, detail, synced: 0 }
            }
        };
        Ok(Response::new(response))
    }

    async fn heads(&self, request: Request<HeadsRequest>) -> Answer<HeadsResponse> {
        let request = request.into_inner();
        if request.wait {
            heads::wait_for_change(&self.caller, &request).await;
        }
        let heads = heads::heads(&self.caller.broker, &request).await;
        heads.map(Response::new).map_err(call_error)
    }

    async fn create(&self, request: Request<CreateRequest>) -> Answer<CreateResponse> {
        let response = self.create_by_template(request.get_ref()).await.unwrap_or_else(|error| {
            let (fault, detail) = (fault_of(&error).into(), error.to_string());
            CreateResponse { fault, detail, head: None, created: false }
        });
        Ok(Response::new(response))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<DeleteResponse> {
        let response = match self.delete_as(request.get_ref()).await {
            Ok(Deleted { fragments }) => DeleteResponse {
                objects: fragments.iter().map(object_of).collect(),
                bytes: fragments.iter().map(|fragment| fragment.span.len()).sum(),
                ..DeleteResponse::default()
            },
            Err(error) => {
                let (fault, detail) = (fault_of(&error).into(), error.to_string());
                DeleteResponse { fault, detail, ..DeleteResponse::default() }
            }
        };
        Ok(Response::new(response))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Answer<StatusResponse> {
        let json = status::status(&self.caller.broker).to_string();
        Ok(Response::new(StatusResponse { json }))
    }
}

/// A fragment's object, by its store and the path below.
fn object_of(fragment: &protocol::Fragment) -> String {
    let path = index::name::paths(fragment).next().expect("every codec has an extension");
    let store = fragment.backing_store.split('?').next().unwrap_or_default();
    format!("{store}{path}")
}
