//! Groups on a broker that has no sessions: each an Append of its own, one at a time of a journal.

use super::Shared;
use super::lanes::ONE_BY_ONE;
use crate::limits::PLAIN_AT_ONCE;
use crate::{Append, Appended, Error, Journals, Writer};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use protocol::wire::courant::AppendGroup;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::time::Instant;

type Answer = (u32, u64, Result<Appended, Error>);

/// Sends groups until something was given up that is under way, and says so.
pub(super) async fn serve(shared: &Arc<Shared>) -> Error {
    let connection = shared.lanes().connect(ONE_BY_ONE);
    let mut asked = FuturesUnordered::new();
    loop {
        while asked.len() < PLAIN_AT_ONCE
            && let Some((append, group)) = next(shared)
        {
            asked.push(ask(shared.clone(), append, group));
        }
        let may_ask = asked.len() < PLAIN_AT_ONCE;
        let ready = poll_fn(|cx| shared.lanes().poll_ready(connection, cx));
        let (handle, sequence, answer) = tokio::select! {
            biased;
            Some(answer) = asked.next() => answer,
            () = shared.cut.notified() => return Error::Unknown,
            _ready = ready, if may_ask => continue,
        };
        let taken = shared.lanes().answered(handle, sequence, answer, Instant::now());
        match taken {
            Ok(freed) => shared.freed(freed),
            Err(error) => return error,
        }
        shared.turned.notify_one();
    }
}

fn next(shared: &Shared) -> Option<(Append, AppendGroup)> {
    let mut lanes = shared.lanes();
    let (lane, group) = lanes.next_group()?;
    let append = Append {
        durability: lane.terms.durability,
        life: lane.terms.life,
        rate_wait: lane.terms.rate_wait,
        writer: Some(Writer { id: of_groups(shared.id), sequence: group.sequence }),
        ..Append::new(lane.journal.clone(), group.content.clone())
    };
    Some((append, group))
}

async fn ask(shared: Arc<Shared>, append: Append, group: AppendGroup) -> Answer {
    (group.handle, group.sequence, shared.remote.append(append).await)
}

/// The writer of groups: another than that of appends that go by themselves, which have numbers of
/// their own.
fn of_groups(mut id: [u8; 16]) -> [u8; 16] {
    id[15] ^= 1 << 7;
    id
}
