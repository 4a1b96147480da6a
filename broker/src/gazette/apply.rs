//! Apply: specs created, changed and deleted in one transaction.

use crate::Error;
use crate::auth::{Grant, Unauthorized};
use crate::server::caller::Caller;
use cluster::Outcome;
use protocol::request::{ApplyRequest, Change, Expect};
use protocol::response::ApplyResponse;
use protocol::{LabelSet, Status};

/// Serves one Apply. The answer's revision is that of the transaction.
///
/// A spec is authorized by the labels that it will have, a deletion by the name alone; one that is
/// not refuses the whole request (gazette-spec 1.5).
pub async fn apply(caller: &Caller, request: ApplyRequest) -> Result<ApplyResponse, Error> {
    for change in &request.changes {
        check(&caller.grant, change)?;
    }
    let broker = &caller.broker;
    let changes = request.changes.into_iter().map(change).collect();
    let outcome = broker.apply(changes).await?;
    let status = match outcome {
        Outcome::Applied { .. } => Status::Ok,
        Outcome::Conflict { .. } => Status::EtcdTransactionFailed,
    };
    let mut header = broker.header();
    header.etcd.revision = outcome.revision();
    Ok(ApplyResponse { status, header })
}

fn check(grant: &Grant, change: &Change) -> Result<(), Unauthorized> {
    match change {
        Change::Upsert { spec, .. } => grant.check(&spec.name, &spec.labels),
        Change::Delete { journal, .. } => grant.check(journal, &LabelSet::default()),
    }
}

/// The change as the key space takes it.
fn change(change: Change) -> cluster::Change {
    match change {
        Change::Upsert { spec, expect } => {
            cluster::Change::Upsert { spec: *spec, expect: expected(expect) }
        }
        Change::Delete { journal, expect } => {
            cluster::Change::Delete { journal, expect: expected(expect) }
        }
    }
}

fn expected(expect: Expect) -> cluster::Expect {
    match expect {
        Expect::Absent => cluster::Expect::Absent,
        Expect::At(revision) => cluster::Expect::At(revision),
        Expect::Any => cluster::Expect::Any,
    }
}
