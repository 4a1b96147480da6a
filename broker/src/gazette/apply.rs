//! Apply: specs created, changed and deleted in one transaction.

use crate::{Broker, Error};
use cluster::Outcome;
use protocol::Status;
use protocol::request::{ApplyRequest, Change, Expect};
use protocol::response::ApplyResponse;

/// Serves one Apply. The answer's revision is that of the transaction.
pub async fn apply(broker: &Broker, request: ApplyRequest) -> Result<ApplyResponse, Error> {
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
