//! Waiting for journals to grow: all waiters of a client share a few long polls.
//!
//! A waiter of a journal joins the poll that the journal belongs to. The poll's task asks for the
//! heads of all its journals and is answered when one of them changes; it ends when nobody waits.

use super::door::{Door, NO_JOURNAL};
use super::{gazette, words};
use crate::limits::{POLL_GATHER, POLL_WAIT, POLLS};
use crate::retry::{Pauses, is_worth_a_retry};
use crate::{Error, Stat};
use protocol::wire::courant::{HeadsRequest, HeadsResponse, Known};
use protocol::{Journal, Life, Offset};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// The waiters of a client.
pub(crate) struct Watch {
    door: Arc<Door>,
    runtime: Handle,
    polls: Vec<Arc<Poll>>,
    census: Arc<watch::Sender<u64>>,
    counts_census: AtomicBool,
    /// Ended when the client is dropped.
    tasks: Mutex<JoinSet<()>>,
}

/// What a poll last heard of a journal.
#[derive(Debug, Clone)]
enum Heard {
    Nothing,
    Stat(Box<Stat>),
    Gone,
    Failed(Error),
}

/// A journal that somebody waits for. Its waiters are the receivers of `heard`.
struct Watched {
    known: Known,
    heard: watch::Sender<Heard>,
    /// It had no waiter when the last request was made. A waiter often comes back at once, so that
    /// a journal stays for one more request.
    is_leaving: bool,
}

#[derive(Default)]
struct Poll {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    watched: BTreeMap<Journal, Watched>,
    is_running: bool,
}

impl Watch {
    /// Needs a tokio runtime around it.
    pub fn new(door: Arc<Door>) -> Self {
        Watch {
            door,
            runtime: Handle::current(),
            polls: (0..POLLS).map(|_| Arc::default()).collect(),
            census: Arc::new(watch::Sender::new(0)),
            counts_census: AtomicBool::new(false),
            tasks: Mutex::default(),
        }
    }

    /// Waits until the journal's head is beyond `beyond`, or its life is another one.
    pub async fn grown(
        &self,
        journal: &Journal,
        life: Life,
        beyond: Offset,
    ) -> Result<Stat, Error> {
        let mut heard = self.join(journal, life, beyond);
        loop {
            let last = heard.borrow_and_update().clone();
            match last {
                Heard::Stat(stat) if stat.life != life || stat.head > beyond => return Ok(*stat),
                Heard::Nothing | Heard::Stat(_) => {}
                Heard::Gone => return Err(Error::NotFound(journal.clone())),
                Heard::Failed(error) => return Err(error),
            }
            // A sender that goes has told its end, which the next turn sees.
            let _gone = heard.changed().await;
        }
    }

    fn join(&self, journal: &Journal, life: Life, beyond: Offset) -> watch::Receiver<Heard> {
        let poll = self.polls[number_of(journal)].clone();
        let known = Known { journal: journal.to_string(), head: beyond.get(), life: life.get() };
        let (heard, starts) = poll.join(journal, known);
        if starts {
            let (door, census) = (self.door.clone(), self.census.clone());
            self.spawn(async move { poll.run(&door, &census).await });
        }
        heard
    }

    /// A number that changes with each creation and deletion.
    pub fn census(&self) -> watch::Receiver<u64> {
        if !self.counts_census.swap(true, Ordering::Relaxed) {
            let (door, census) = (self.door.clone(), self.census.clone());
            self.spawn(async move { count_census(&door, &census).await });
        }
        self.census.subscribe()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().expect("no holder panics");
        // Those that ended are let go, so that the set does not grow.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }
}

/// Which poll a journal belongs to.
fn number_of(journal: &Journal) -> usize {
    let bytes = journal.as_str().bytes();
    bytes.fold(0, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % POLLS
}

impl Poll {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// A waiter's receiver, and whether the poll has to be started.
    fn join(&self, journal: &Journal, known: Known) -> (watch::Receiver<Heard>, bool) {
        let mut state = self.state();
        let watched = state.watched.get_mut(journal);
        let is_answered = watched.is_some_and(|watched| {
            watched.is_leaving = false;
            watched.answers(&known)
        });
        if !is_answered {
            // What is asked for may be content with what the request under way holds back.
            state.ask(journal, known);
            self.changed.notify_one();
        }
        let heard = state.watched[journal].heard.subscribe();
        (heard, !std::mem::replace(&mut state.is_running, true))
    }

    /// Asks until nobody waits any more.
    async fn run(&self, door: &Door, census: &watch::Sender<u64>) {
        let mut pauses = Pauses::new(0x0063_6f75_7261_6e74);
        loop {
            let known = *census.borrow();
            let Some(request) = self.request(known) else { return };
            let asked = request.known.clone();
            tokio::select! {
                biased;
                answer = door.poll(request) => match answer {
                    Ok(answer) => {
                        pauses.reset();
                        census.send_if_modified(|known| replace(known, answer.census));
                        self.hear(&asked, answer);
                    }
                    Err(error) if is_worth_a_retry(&error) => pauses.pause().await,
                    Err(error) => self.tell(&asked, |_| Heard::Failed(error.clone())),
                },
                () = self.changed.notified() => tokio::time::sleep(POLL_GATHER).await,
            }
        }
    }

    /// The next request; `None` ends the poll.
    fn request(&self, census: u64) -> Option<HeadsRequest> {
        let mut state = self.state();
        state.watched.retain(|_, watched| {
            let is_alone = watched.heard.receiver_count() == 0;
            let leaves = is_alone && watched.is_leaving;
            watched.is_leaving = is_alone;
            !leaves
        });
        if state.watched.is_empty() {
            // No names would mean all journals.
            state.is_running = false;
            return None;
        }
        let known = state.watched.values().map(|watched| watched.known.clone());
        Some(HeadsRequest { known: known.collect(), census, ..waiting(&state) })
    }

    /// Hands the heads on. A name of the request without a head is a journal that is gone.
    fn hear(&self, asked: &[Known], answer: HeadsResponse) {
        let mut heads: BTreeMap<String, _> =
            answer.heads.into_iter().map(|head| (head.journal.clone(), head)).collect();
        self.tell(asked, |watched| match heads.remove(&watched.known.journal).map(words::stat) {
            Some(Ok(stat)) => {
                watched.known.head = stat.head.get();
                watched.known.life = stat.life.get();
                Heard::Stat(Box::new(stat))
            }
            Some(Err(error)) => Heard::Failed(error),
            None => Heard::Gone,
        });
    }

    /// Tells those that a request asked for, in the order of their names. Whoever is asked for anew
    /// since then may know more than the answer. Journals that are told an end are not asked for
    /// again.
    fn tell(&self, asked: &[Known], mut heard: impl FnMut(&mut Watched) -> Heard) {
        self.state().watched.retain(|name, watched| {
            let at = asked.binary_search_by(|known| known.journal.as_str().cmp(name.as_str()));
            if !at.is_ok_and(|at| asked[at] == watched.known) {
                return true;
            }
            let heard = heard(watched);
            let goes_on = matches!(heard, Heard::Stat(_));
            watched.heard.send_replace(heard);
            goes_on
        });
    }
}

impl Watched {
    /// Whether what was heard, or what is asked, is all that a waiter who knows `known` needs.
    fn answers(&self, known: &Known) -> bool {
        let is_known = matches!(*self.heard.borrow(), Heard::Stat(_));
        self.known.life == known.life && (is_known || self.known.head <= known.head)
    }
}

impl State {
    /// Asks for a journal anew, from what a waiter knows.
    fn ask(&mut self, journal: &Journal, known: Known) {
        let anew = || Watched {
            known: known.clone(),
            heard: watch::Sender::new(Heard::Nothing),
            is_leaving: false,
        };
        let watched = self.watched.entry(journal.clone()).or_insert_with(anew);
        watched.known = known;
        watched.heard.send_replace(Heard::Nothing);
    }
}

/// A request that is kept back, for the journals of a state, which are sorted.
fn waiting(state: &State) -> HeadsRequest {
    HeadsRequest {
        journals: state.watched.keys().map(ToString::to_string).collect(),
        wait: true,
        wait_ms: wait_ms(),
        ..Default::default()
    }
}

fn wait_ms() -> u32 {
    u32::try_from(POLL_WAIT.as_millis()).expect("seconds fit")
}

fn replace(known: &mut u64, census: u64) -> bool {
    std::mem::replace(known, census) != census
}

/// Follows the census for as long as the client lives.
async fn count_census(door: &Door, census: &watch::Sender<u64>) {
    let mut pauses = Pauses::new(0x0063_656e_7375_7321);
    loop {
        let known = *census.borrow();
        let counted = match door.is_courant().await {
            Ok(true) => next_census(door, known).await,
            Ok(false) => gazette::follow_census(door, census).await,
            Err(error) => Err(error),
        };
        match counted {
            Ok(counted) => {
                pauses.reset();
                census.send_if_modified(|known| replace(known, counted));
            }
            Err(error) => {
                tracing::debug!(%error, "the census is not known");
                pauses.pause().await;
            }
        }
    }
}

/// The census, when it is another than the known one or the time is up.
async fn next_census(door: &Door, known: u64) -> Result<u64, Error> {
    let request = HeadsRequest {
        prefix: NO_JOURNAL.to_owned(),
        wait: true,
        census: known,
        wait_ms: wait_ms(),
        ..Default::default()
    };
    door.poll(request).await.map(|answer| answer.census)
}
