//! Our own service `courant.v1.Courant`: what Gazette's protocol can't say (its .proto tells why).
//!
//! A cause that a program has to tell apart is a `Fault` in an answer; errors of a call are left
//! to requests that are no requests, and to connections.

mod append;
mod dialog;
mod each;
mod fault;
mod heads;
mod hold;
mod journal;
mod operate;
mod session;
mod status;

use crate::Error;
use crate::gazette::call_error;
use crate::server::caller::{Caller, Visitor};
use crate::specs::Deleted;
use client::NO_JOURNAL;
use client::token::Capability;
use fault::fault_of;
use protocol::Journal;
use protocol::wire::courant::courant_server::Courant as Service;
use protocol::wire::courant::{
    AppendEachRequest, AppendRequest, AppendResponse, AppendsRequest, ChangedTemplate,
    CreateRequest, CreateResponse, DeleteRequest, DeleteResponse, DeleteTemplateRequest,
    HeadsRequest, HeadsResponse, HoldRequest, PruneRequest, PruneResponse, PutTemplateRequest,
    StatusRequest, StatusResponse, SyncRequest, SyncResponse, TemplatesRequest, TemplatesResponse,
};
use tonic::{Request, Response, Streaming};

type Answer<T> = Result<Response<T>, tonic::Status>;

/// The service, for the requests of one connection.
pub struct Courant {
    visitor: Visitor,
}

impl Courant {
    pub fn new(visitor: Visitor) -> Self {
        Courant { visitor }
    }

    /// The caller of a request about the broker as a whole, which no journal's token allows.
    fn admit_to_all<T>(
        &self,
        request: &Request<T>,
        needed: Capability,
    ) -> Result<Caller, tonic::Status> {
        let caller = self.visitor.admit(request, needed)?;
        caller.grant.check_all().map_err(|refused| call_error(refused.into()))?;
        Ok(caller)
    }

    /// The caller of a request of heads. Where a journal ends is known to who may read it or append
    /// to it too, as a read of it or an append tell; all journals are for who may list them.
    fn admit_to_heads(&self, request: &Request<HeadsRequest>) -> Result<Caller, tonic::Status> {
        let HeadsRequest { journals, prefix, .. } = request.get_ref();
        let is_of_some = !journals.is_empty() || prefix == NO_JOURNAL;
        let others = [Capability::READ, Capability::APPEND];
        self.visitor.admit(request, Capability::LIST).or_else(|refused| {
            let others = others.into_iter().filter(|_| is_of_some);
            let admitted = others.map(|other| self.visitor.admit(request, other));
            admitted.flatten().next().ok_or(refused)
        })
    }
}

#[tonic::async_trait]
impl Service for Courant {
    type AppendsStream = session::Answers;
    type AppendEachStream = each::Answers;
    type HoldStream = hold::Answers;

    async fn append(&self, request: Request<Streaming<AppendRequest>>) -> Answer<AppendResponse> {
        let caller = self.visitor.admit(&request, Capability::APPEND)?;
        let messages = request.into_inner();
        append::append(&caller, messages).await.map(Response::new)
    }

    async fn appends(
        &self,
        request: Request<Streaming<AppendsRequest>>,
    ) -> Answer<Self::AppendsStream> {
        let caller = self.visitor.admit(&request, Capability::APPEND)?;
        Ok(Response::new(session::begin(caller, request.into_inner())))
    }

    async fn append_each(
        &self,
        request: Request<Streaming<AppendEachRequest>>,
    ) -> Answer<Self::AppendEachStream> {
        let caller = self.visitor.admit(&request, Capability::APPEND)?;
        Ok(Response::new(each::begin(caller, request.into_inner())))
    }

    async fn sync(&self, request: Request<SyncRequest>) -> Answer<SyncResponse> {
        let caller = self.visitor.admit(&request, Capability::APPEND)?;
        let response = match journal::sync(&caller, request.get_ref()).await {
            Ok(synced) => SyncResponse { synced: synced.get(), ..SyncResponse::default() },
            Err(error) => {
                let (fault, detail) = (fault_of(&error).into(), error.to_string());
                SyncResponse { fault, detail, synced: 0 }
            }
        };
        Ok(Response::new(response))
    }

    async fn heads(&self, request: Request<HeadsRequest>) -> Answer<HeadsResponse> {
        let caller = self.admit_to_heads(&request)?;
        let request = request.into_inner();
        if request.wait {
            heads::wait_for_change(&caller, &request).await;
        }
        let heads = heads::heads(&caller, &request).await;
        heads.map(Response::new).map_err(call_error)
    }

    async fn create(&self, request: Request<CreateRequest>) -> Answer<CreateResponse> {
        let caller = self.visitor.admit(&request, Capability::APPLY)?;
        let created = journal::create(&caller, request.get_ref()).await;
        let response = created.unwrap_or_else(|error| {
            let (fault, detail) = (fault_of(&error).into(), error.to_string());
            CreateResponse { fault, detail, head: None, created: false }
        });
        Ok(Response::new(response))
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Answer<DeleteResponse> {
        let caller = self.visitor.admit(&request, Capability::APPLY)?;
        let response = match journal::delete(&caller, request.get_ref()).await {
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

    async fn status(&self, request: Request<StatusRequest>) -> Answer<StatusResponse> {
        let name = &request.get_ref().journal;
        let status = if name.is_empty() {
            status::status(&self.admit_to_all(&request, Capability::LIST)?.broker)
        } else {
            let caller = self.visitor.admit(&request, Capability::LIST)?;
            let journal = Journal::new(name)?;
            let served = caller.served(&journal);
            let missing = || tonic::Status::not_found(format!("{journal} does not exist"));
            status::journal(&*served.ok_or_else(missing)?)
        };
        Ok(Response::new(StatusResponse { json: status.to_string() }))
    }

    async fn prune(&self, request: Request<PruneRequest>) -> Answer<PruneResponse> {
        let caller = self.visitor.admit(&request, Capability::APPLY)?;
        let pruned = journal::prune(&caller, request.get_ref()).await;
        Ok(Response::new(operate::pruned(pruned)))
    }

    async fn templates(&self, request: Request<TemplatesRequest>) -> Answer<TemplatesResponse> {
        let caller = self.admit_to_all(&request, Capability::LIST)?;
        let templates = operate::templates(&caller.broker);
        Ok(Response::new(TemplatesResponse { templates }))
    }

    async fn put_template(&self, request: Request<PutTemplateRequest>) -> Answer<ChangedTemplate> {
        let caller = self.admit_to_all(&request, Capability::APPLY)?;
        let put = operate::put_template(&caller.broker, request.into_inner()).await;
        Ok(Response::new(operate::changed(put)))
    }

    async fn hold(&self, request: Request<Streaming<HoldRequest>>) -> Answer<Self::HoldStream> {
        let caller = self.admit_to_all(&request, Capability::APPLY)?;
        hold::begin(caller, request.into_inner()).map(Response::new).map_err(call_error)
    }

    async fn delete_template(
        &self,
        request: Request<DeleteTemplateRequest>,
    ) -> Answer<ChangedTemplate> {
        let caller = self.admit_to_all(&request, Capability::APPLY)?;
        let prefix = request.into_inner().prefix;
        let removed = caller.broker.key_space().remove_template(prefix).await;
        Ok(Response::new(operate::changed(removed.map_err(Error::from))))
    }
}

/// A fragment's object, by its store and the path below.
fn object_of(fragment: &protocol::Fragment) -> String {
    let path = index::name::paths(fragment).next().expect("every codec has an extension");
    let store = fragment.backing_store.split('?').next().unwrap_or_default();
    format!("{store}{path}")
}
