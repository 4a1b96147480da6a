//! What is asked of one journal, within the grant of who asks: sync, create, prune, delete.

use super::heads;
use crate::prune::Pruned;
use crate::server::caller::Caller;
use crate::specs::{Deleted, Purge};
use crate::{Error, Served};
use cluster::Expect;
use protocol::wire::courant::{
    CreateRequest, CreateResponse, DeleteRequest, PruneRequest, SyncRequest,
};
use protocol::{Journal, Offset, Status};
use std::sync::Arc;

/// The journal of a name, if the caller may see it.
fn served(caller: &Caller, name: &str) -> Result<Arc<Served>, Error> {
    let journal = Journal::new(name)?;
    let served = caller.served(&journal);
    served.ok_or(Error::Unresolved { journal, status: Status::JournalNotFound })
}

/// Makes all below the offset durable; answers how far the journal is then.
pub async fn sync(caller: &Caller, request: &SyncRequest) -> Result<Offset, Error> {
    let served = served(caller, &request.journal)?;
    caller.broker.sync(&served, Offset::new(request.offset)?).await?;
    Ok(served.replica().synced())
}

/// Creates a journal by the template of its name, or finds it. The caller must be authorized to
/// the spec that it has, or would get.
pub async fn create(caller: &Caller, request: &CreateRequest) -> Result<CreateResponse, Error> {
    let journal = Journal::new(&request.journal)?;
    let labels = match caller.broker.served(&journal) {
        Some(served) => served.entry().spec.labels.clone(),
        None => {
            let proposed = caller.broker.key_space().propose(&journal);
            proposed.map_err(cluster::Error::Refused)?.labels
        }
    };
    caller.grant.check(&journal, &labels)?;
    let (served, created) = caller.broker.create(&journal).await?;
    let head = Some(heads::head(served.stat()));
    Ok(CreateResponse { head, created, ..CreateResponse::default() })
}

/// Deletes what is older than the journal's retention, or says what that would be.
pub async fn prune(caller: &Caller, request: &PruneRequest) -> Result<Pruned, Error> {
    let served = served(caller, &request.journal)?;
    caller.broker.prune(served.journal(), request.dry_run).await
}

/// Deletes a journal, or says what that would remove.
pub async fn delete(caller: &Caller, request: &DeleteRequest) -> Result<Deleted, Error> {
    let served = served(caller, &request.journal)?;
    let journal = served.journal();
    let purge = if request.purge { Purge::Objects } else { Purge::Keep };
    match (request.dry_run, purge) {
        (true, Purge::Objects) => caller.broker.would_purge(journal).await,
        (true, Purge::Keep) => Ok(Deleted::default()),
        (false, purge) => {
            let expect = expected(request.expect_mod_revision)?;
            caller.broker.delete(journal, expect, purge).await
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
