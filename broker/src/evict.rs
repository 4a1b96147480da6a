//! Evicting: local bytes that a store has are freed when space is short, oldest first.
//!
//! The order is fixed (design, section 2): stored and recorded so, that record synced, the eviction
//! recorded, that synced too, and only then the bytes.

mod early;

use crate::stores::Stores;
use crate::{Broker, Error, Served, limits};
use index::blocking::off_thread;
use index::record::Position;
use index::{DataDir, Replica};
use protocol::Span;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

const LOOK: Duration = Duration::from_secs(1);

/// How soon after a fragment was stored it is looked where the budget is full: once for several.
const SOON: Duration = Duration::from_millis(50);

/// Spans of journals.
type Spans = Vec<(Arc<Replica>, Span)>;

/// Spans that were given up durably, and whose bytes are still to be freed.
#[derive(Debug, Default)]
pub(crate) struct Unfreed {
    spans: Mutex<Spans>,
}

impl Unfreed {
    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().expect("no holder of the unfreed spans panics")
    }

    /// The index has given the span up: a sync returned since the record.
    pub fn add(&self, replica: Arc<Replica>, span: Span) {
        self.spans().push((replica, span));
    }

    /// Frees what can be freed, and keeps in mind what handles of an earlier life of a mount may
    /// still read. Blocks.
    fn free(&self) -> Result<(), Error> {
        let spans = std::mem::take(&mut *self.spans());
        for (replica, span) in spans {
            // Not while the head is held, which an append raises under the journal's lock.
            let is_gone = replica.watch().borrow().is_gone;
            if !is_gone && !replica.free(span)? {
                self.add(replica, span);
            }
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.spans().iter().map(|(_, span)| span.len()).sum()
    }
}

/// Keeps the local bytes within their bounds, until the broker closes.
pub(crate) async fn run(broker: Broker) {
    let mut last_error = String::new();
    let mut next_look = Instant::now() + LOOK;
    loop {
        tokio::select! {
            biased;
            () = broker.closed() => return,
            () = sleep_until(next_look) => {}
            // Who appends now is refused, and need not be any longer.
            () = broker.shared.stored.notified(), if broker.is_over_budget() => sleep(SOON).await,
        }
        let is_look = Instant::now() >= next_look;
        if is_look {
            next_look = Instant::now() + LOOK;
        }
        let shared = broker.shared.clone();
        let served = broker.all_served();
        let round = move || -> Result<(), Error> {
            let (data, unfreed) = (&shared.data, &shared.unfreed);
            unfreed.free()?;
            let room = Room::of(data, unfreed)?;
            data.set_room(room.for_journals(data));
            evict(data, &served, unfreed, &room, || match data.is_held() {
                true => held(&served),
                false => to_come(&shared.stores, &served),
            })?;
            if data.is_held() {
                // Nothing can be freed now, so nothing is done for the sake of it.
                return Ok(());
            }
            let soon = short_soon(data, unfreed, &room)?;
            early::roll(&served, &shared.stores, soon, shared.config.clock.now_us())?;
            let needs_loans = needs_loans(data, &served, soon);
            // Its pauses are counted in rounds.
            if is_look {
                shared.revocations.round(data, &served, needs_loans);
            }
            Ok(())
        };
        match off_thread(round).await {
            Ok(()) => last_error.clear(),
            Err(error) => {
                let text = error.to_string();
                if text != last_error {
                    tracing::warn!(%error, "local bytes can't be evicted");
                }
                last_error = text;
            }
        }
    }
}

/// Bytes that were stored, of journals whose stores are still to be listed, as after a start: they
/// can be freed once a listing has them. None while a store fails, whose listing may never come.
fn to_come(stores: &Stores, served: &[Arc<Served>]) -> u64 {
    if stores.health().iter().any(|store| store.failures > 0) {
        return 0;
    }
    let unlisted = served.iter().filter(|served| !served.stored().is_listed());
    unlisted.flat_map(|served| served.replica().evictable()).map(|span| span.len()).sum()
}

/// Bytes that can be freed when the backup is over that keeps them.
fn held(served: &[Arc<Served>]) -> u64 {
    served.iter().map(|served| served.freeable_len()).sum()
}

/// Whether the disk is so short of room that a backup may not keep any longer what could be freed.
pub(crate) fn is_too_full(broker: &Broker) -> Result<bool, Error> {
    let room = Room::of(&broker.shared.data, &broker.shared.unfreed)?;
    Ok(room.really_free < room.min_free / limits::HOLD_FREE_SHARE)
}

/// Frees what is over the bounds, as far as stores have it. The budget is full when neither that
/// nor what is `to_come` makes room. Blocks.
fn evict(
    data: &DataDir,
    served: &[Arc<Served>],
    unfreed: &Unfreed,
    room: &Room,
    to_come: impl FnOnce() -> u64,
) -> Result<(), Error> {
    let (over, needed) = needed(data, room);
    // Before the choice: what is listed between the two looks is counted twice, and never missed.
    let to_come = if over > 0 { to_come() } else { 0 };
    let mut found = 0;
    if needed > 0 {
        let chosen = choose(served, needed);
        found = chosen.iter().map(|(_, span)| span.len()).sum();
        if !chosen.is_empty() {
            give_up(data, chosen, unfreed)?;
            unfreed.free()?;
        }
        if found < needed {
            // What is idle in staging goes as well.
            data.shrink()?;
        }
    }
    // What was appended meanwhile is the next round's: only what can't be freed is a full budget.
    let over = over.saturating_sub(found).saturating_sub(to_come);
    if data.set_over_budget(over > 0) != (over > 0) {
        match over {
            0 => tracing::info!("appends go on: local bytes are within the budget again"),
            over => tracing::warn!(
                over,
                "appends get ENOSPC: the local budget is full of bytes \
                                   that no store has, or that are open"
            ),
        }
    }
    Ok(())
}

/// Bytes that have to go soon: before appends are refused, since what has to be done first takes a
/// while.
fn short_soon(data: &DataDir, unfreed: &Unfreed, before: &Room) -> Result<u64, Error> {
    let nearly_full = |budget| budget - budget / limits::SHORT_SHARE;
    let over = data.options().local_budget.map_or(0, |budget| beyond(data, nearly_full(budget)));
    // What was scarce before the round may have been freed in it.
    let scarce = match before.scarce() {
        0 => 0,
        _ => Room::of(data, unfreed)?.scarce(),
    };
    Ok(over.max(scarce))
}

/// Whether more than half of the room is lent, and bytes have to go soon that nobody else could
/// give.
fn needs_loans(data: &DataDir, served: &[Arc<Served>], soon: u64) -> bool {
    if data.over_lent() == 0 {
        return false;
    }
    let others = served.iter().filter(|served| !served.replica().is_pinned());
    soon > others.map(|served| served.freeable_len()).sum()
}

fn local_len(data: &DataDir) -> u64 {
    data.replicas().iter().map(|replica| replica.local_len()).sum()
}

/// Local bytes beyond a bound. They are counted only where an estimate says that there are any.
fn beyond(data: &DataDir, bound: u64) -> u64 {
    if data.local_len() > bound { local_len(data).saturating_sub(bound) } else { 0 }
}

/// Bytes beyond the budget, and those that have to go, beside those that are about to: some more,
/// so that a journal that grows does not have to be looked at each time.
fn needed(data: &DataDir, room: &Room) -> (u64, u64) {
    let over = data.options().local_budget.map_or(0, |budget| beyond(data, budget));
    let ahead = match over {
        0 => 0,
        _ => data.options().local_budget.unwrap_or(0) / limits::FREED_AHEAD_SHARE,
    };
    (over, (over + ahead).max(room.scarce()))
}

/// The disk of the data directory at one moment.
struct Room {
    /// Free bytes, with those that are about to be.
    free: u64,
    /// Free bytes at this moment.
    really_free: u64,
    /// How many are to stay free.
    min_free: u64,
}

impl Room {
    fn of(data: &DataDir, unfreed: &Unfreed) -> Result<Room, Error> {
        let space = data.disk().space().map_err(|source| index::Error::Disk {
            operation: "stat",
            path: "the data directory".into(),
            source,
        })?;
        let share = (space.total / limits::FREE_SHARE).min(limits::FREE_MIN);
        let min_free = data.options().min_free.unwrap_or(share);
        let free = space.free.saturating_add(unfreed.len());
        Ok(Room { free, really_free: space.free, min_free })
    }

    /// Bytes by which the disk is below its least free room.
    fn scarce(&self) -> u64 {
        self.min_free.saturating_sub(self.free)
    }

    /// How many bytes journals may have, by the disk and by the budget.
    fn for_journals(&self, data: &DataDir) -> u64 {
        let on_disk = self.free.saturating_add(data.local_len()).saturating_sub(self.min_free);
        data.options().local_budget.unwrap_or(u64::MAX).min(on_disk)
    }
}

/// What was stored longest ago, up to the bytes that have to go.
///
/// That a span was stored once is not enough: what somebody deleted from the store since is here
/// alone, and stays.
fn choose(served: &[Arc<Served>], needed: u64) -> Spans {
    let mut candidates = Vec::new();
    for served in served {
        let replica = served.replica();
        let mut evictable = replica.evictable();
        evictable.retain(|span| served.stored().covers(*span));
        if evictable.is_empty() {
            continue;
        }
        let ledger = replica.ledger();
        let stored: BTreeMap<Span, i64> = ledger
            .closed
            .iter()
            .filter_map(|closed| Some((closed.span, closed.persisted.as_ref()?.mod_time)))
            .collect();
        let aged =
            |span: Span| (stored.get(&span).copied().unwrap_or_default(), replica.clone(), span);
        candidates.extend(evictable.into_iter().map(aged));
    }
    candidates.sort_by_key(|(mod_time, replica, span)| (*mod_time, span.begin(), replica.life()));
    let mut taken = 0;
    let is_wanted = |(_, _, span): &(i64, Arc<Replica>, Span)| {
        let is_wanted = taken < needed;
        taken += span.len();
        is_wanted
    };
    let wanted = candidates.into_iter().take_while(is_wanted);
    wanted.map(|(_, replica, span)| (replica, span)).collect()
}

/// Has reads of the chosen spans go to their stores, durably.
fn give_up(data: &DataDir, chosen: Spans, unfreed: &Unfreed) -> Result<(), Error> {
    sync_beyond(data, data.log().position())?;
    let mut evicted = Spans::new();
    let mut last = Position::default();
    for (replica, span) in chosen {
        // `None`: somebody was lent the mirror meanwhile.
        if let Some(position) = replica.evict(span)? {
            last = last.max(position);
            evicted.push((replica, span));
        }
    }
    sync_beyond(data, last)?;
    unfreed.spans().append(&mut evicted);
    Ok(())
}

/// Makes the record at `position` durable, if there is one.
fn sync_beyond(data: &DataDir, position: Position) -> Result<(), Error> {
    if data.log().synced() <= position {
        data.sync_round()?;
    }
    Ok(())
}
