//! Apply: specs created, changed and deleted in one transaction.

use crate::Error;
use crate::auth::{Grant, Unauthorized};
use crate::server::caller::Caller;
use cluster::{Expect, Outcome};
use protocol::request::{ApplyRequest, Change};
use protocol::response::ApplyResponse;
use protocol::{Journal, LabelSet, Status};

/// Serves one Apply. The answer's revision is that of the transaction.
///
/// A spec is authorized by the labels that it will have, a deletion by the name alone; one that is
/// not refuses the whole request (gazette-spec 1.5). Unlike with Gazette, the journal that a change
/// would replace or delete must be one that the token sees, too: with a label of its own it could
/// make any journal its bearer's.
pub async fn apply(caller: &Caller, request: ApplyRequest) -> Result<ApplyResponse, Error> {
    let broker = &caller.broker;
    let authorized = request.changes.into_iter().map(|change| authorized(caller, change));
    let changes = authorized.collect::<Result<Vec<_>, _>>()?;
    let outcome = broker.apply(changes).await?;
    let status = match outcome {
        Outcome::Applied { .. } => Status::Ok,
        Outcome::Conflict { .. } => Status::EtcdTransactionFailed,
    };
    let mut header = broker.header();
    header.etcd.revision = outcome.revision();
    Ok(ApplyResponse { status, header })
}

/// The change as the key space takes it, if the caller may make it.
fn authorized(caller: &Caller, change: Change) -> Result<cluster::Change, Unauthorized> {
    check(&caller.grant, &change)?;
    Ok(match change {
        Change::Upsert { spec, expect } => {
            let seen = seen(caller, &spec.name)?;
            let expect = narrowed(caller, expect.into(), seen.map_or(Expect::Absent, Expect::At));
            cluster::Change::Upsert { spec: *spec, expect }
        }
        Change::Delete { journal, expect } => {
            let seen = seen(caller, &journal)?;
            let expect = narrowed(caller, expect.into(), seen.map_or(Expect::Any, Expect::At));
            cluster::Change::Delete { journal, expect }
        }
    })
}

/// The revision of a journal that is there, which must be one that the caller sees.
fn seen(caller: &Caller, journal: &Journal) -> Result<Option<i64>, Unauthorized> {
    let Some(served) = caller.broker.served(journal) else { return Ok(None) };
    let entry = served.entry();
    caller.grant.check(journal, &entry.spec.labels)?;
    Ok(Some(entry.mod_revision))
}

/// Where a caller who may not see all journals expects nothing, he gets what was looked at: a spec
/// that takes its place meanwhile may be one that he does not see.
fn narrowed(caller: &Caller, expect: Expect, seen: Expect) -> Expect {
    if expect == Expect::Any && !caller.grant.is_for_all() { seen } else { expect }
}

fn check(grant: &Grant, change: &Change) -> Result<(), Unauthorized> {
    match change {
        Change::Upsert { spec, .. } => grant.check(&spec.name, &spec.labels),
        Change::Delete { journal, .. } => grant.check(journal, &LabelSet::default()),
    }
}
