//! What runs by itself: the log's syncs and the moving of large appends on threads, everything
//! else as tasks. On a runtime of one thread those are tasks as well.

use crate::stored::refresh;
use crate::trouble::Trouble;
use crate::{Broker, Served, evict, limits, persist, retain};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use index::DataDir;
use index::blocking::{may_start_threads, off_thread};
use protocol::Life;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Each second the log is synced, wanted or not: what `memory` appends may lose is that much.
const SYNC: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_secs(1);
/// Small appends at full speed fill a segment in seconds: the next one must be there by then.
const PREPARE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(1);

/// The threads and the tasks of an open broker.
#[derive(Debug)]
pub(crate) struct Drivers {
    threads: Vec<JoinHandle<()>>,
    tasks: JoinSet<()>,
}

impl Drivers {
    pub fn start(broker: &Broker) -> io::Result<Self> {
        let (mut threads, mut tasks) = (Vec::new(), JoinSet::new());
        let (syncs, moves) = ("the log's sync", "the moving of large appends");
        if may_start_threads() {
            threads.push(until_closed(broker, "courant-log", syncs, DataDir::wait_and_sync)?);
            threads.push(until_closed(broker, "courant-move", moves, DataDir::wait_and_move)?);
        } else {
            tasks.spawn(when(broker.clone(), syncs, Round::Sync));
            tasks.spawn(when(broker.clone(), moves, Round::Move));
        }
        tasks.spawn(every(broker.clone(), PREPARE, "the log's next segment", |data| {
            data.prepare_log()
        }));
        tasks.spawn(every(broker.clone(), TICK, "the work of each second", |data| data.tick()));
        tasks.spawn(every(broker.clone(), TICK, "a checkpoint", |data| {
            if data.needs_checkpoint() { data.checkpoint() } else { Ok(()) }
        }));
        tasks.spawn(persist::run(broker.clone()));
        tasks.spawn(evict::run(broker.clone()));
        tasks.spawn(retain::run(broker.clone()));
        tasks.spawn(list(broker.clone()));
        Ok(Drivers { threads, tasks })
    }

    /// Ends the tasks, which have been told to. The threads end when the data directory closes.
    pub async fn end_tasks(mut self) -> Vec<JoinHandle<()>> {
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(limits::CLOSE_WAIT, ended).await.is_err() {
            tracing::warn!("work under way is given up");
            self.tasks.shutdown().await;
        }
        self.threads
    }
}

/// A thread that does `rounds` until the data directory closes.
fn until_closed(
    broker: &Broker,
    name: &str,
    what: &'static str,
    rounds: fn(&DataDir, Duration) -> Result<(), index::Error>,
) -> io::Result<JoinHandle<()>> {
    let data = broker.shared.data.clone();
    let mut trouble = Trouble::of_appends(what, &broker.shared.troubles);
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        while !data.is_closing() {
            trouble.note(rounds(&data, SYNC));
        }
    })
}

/// What a thread of its own does, where there may be one.
#[derive(Clone, Copy)]
enum Round {
    Sync,
    Move,
}

/// Does the rounds of such a thread as a task: when they are wanted, and each second.
async fn when(broker: Broker, what: &'static str, round: Round) {
    let mut trouble = Trouble::of_appends(what, &broker.shared.troubles);
    let data = broker.shared.data.clone();
    loop {
        let wanted = async {
            match round {
                Round::Sync => data.sync_wanted().await,
                Round::Move => data.move_wanted().await,
            }
        };
        tokio::select! {
            biased;
            () = broker.closed() => return,
            () = wanted => {}
            () = sleep(SYNC) => {}
        }
        trouble.note(match round {
            Round::Sync => data.sync_round(),
            Round::Move => data.move_round(),
        });
        // A round that fails may want the next one at once.
        tokio::task::yield_now().await;
    }
}

/// Does `work` again and again, where it may block.
async fn every(
    broker: Broker,
    period: Duration,
    what: &'static str,
    work: fn(&DataDir) -> Result<(), index::Error>,
) {
    let mut trouble = Trouble::new(what);
    loop {
        let data = broker.shared.data.clone();
        trouble.note(off_thread(move || work(&data)).await);
        tokio::select! {
            biased;
            () = broker.closed() => return,
            () = sleep(period) => {}
        }
    }
}

/// Lists the stores of each journal when it is due, a few at a time.
async fn list(broker: Broker) {
    let mut listings: FuturesUnordered<BoxFuture<'static, Life>> = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    let mut waiting: VecDeque<Arc<Served>> = broker.all_served().into();
    loop {
        while listings.len() < limits::LISTINGS
            && let Some(served) = next_to_list(&broker, &mut waiting)
        {
            if may_list(&broker, &served) && busy.insert(served.life()) {
                listings.push(Box::pin(list_one(broker.clone(), served)));
            }
        }
        tokio::select! {
            biased;
            () = broker.closed() => return,
            Some(life) = listings.next(), if !listings.is_empty() => {
                busy.remove(&life);
            }
            () = broker.shared.listings.told() => {
                if waiting.is_empty() {
                    waiting = broker.all_served().into();
                }
            }
            () = sleep(LOOK), if waiting.is_empty() => {
                waiting = broker.all_served().into();
            }
        }
    }
}

/// A journal that somebody waits for, else the next one of the round.
fn next_to_list(broker: &Broker, waiting: &mut VecDeque<Arc<Served>>) -> Option<Arc<Served>> {
    let wanted = std::iter::from_fn(|| broker.shared.listings.next_wanted());
    let wanted = wanted.filter_map(|journal| broker.served(&journal)).next();
    wanted.or_else(|| waiting.pop_front())
}

/// Whether a listing is due, and none of the stores rests after a failure.
fn may_list(broker: &Broker, served: &Served) -> bool {
    let stores = &broker.shared.stores;
    served.stored().is_due()
        && served.entry().spec.fragment.stores.iter().all(|url| stores.may_ask(url))
}

async fn list_one(broker: Broker, served: Arc<Served>) -> Life {
    let entry = served.entry();
    let urls = &entry.spec.fragment.stores;
    let permits: Option<Vec<_>> = urls.iter().map(|url| broker.shared.stores.ask(url)).collect();
    if permits.is_none() {
        return served.life();
    }
    let spread = broker.spread(served.life());
    let journal = served.journal();
    if let Err(error) = refresh(&served, &broker.shared.stores, spread).await {
        // The store has said so already, once.
        tracing::debug!(%journal, %error, "the stores can't be listed");
    }
    served.life()
}
