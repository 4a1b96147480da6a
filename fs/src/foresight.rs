//! The state of many journals with one request, for a thread that looks up a directory's one after
//! another: `ls -l`, `find`, `du`. Over a network each look-up would cost a round trip, and each
//! `GETATTR` that follows it another.
//!
//! A thread that looks names up in the order of a listing is on a **run**, until it opens one. On a
//! run the next names are asked for together. What was foreseen of a journal is let go of as soon
//! as this mount knows better: when the journal is opened, closed, written or deleted through it.
//! So a size is at most [`FORESEEN_AGE`] behind an append from elsewhere, on a run alone, and never
//! below one that this mount told or let read.

use crate::limits::{FORESEEN_AGE, FORESEEN_AT_ONCE, LISTED_MAX, LISTINGS_MAX, RUN_MIN, RUNS_MAX};
use client::Stat;
use protocol::Journal;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::time::Instant;

/// What a mount knows of the runs of its callers.
#[derive(Debug, Default)]
pub(crate) struct Foresight(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The journals of directories as they were listed, by name, the newest listing last.
    listings: VecDeque<Arc<[Journal]>>,
    /// One a thread, that which began last at the end.
    runs: VecDeque<Run>,
}

#[derive(Debug)]
struct Run {
    thread: u32,
    listing: Arc<[Journal]>,
    /// Where in the listing the last look-up was.
    at: usize,
    len: usize,
    foreseen: BTreeMap<Journal, Stat>,
    /// When that was told.
    since: Instant,
    /// While the thread asks: what this mount did something to since it began to.
    disturbed: Option<Vec<Journal>>,
}

/// What a look-up goes by.
#[derive(Debug, PartialEq)]
pub(crate) enum Ahead {
    /// It asks for itself.
    Nothing,
    /// The answer is here.
    Foreseen(Box<Stat>),
    /// It asks for these, its own first, and the run [learns](Foresight::learn) them.
    Ask(Vec<Journal>),
}

impl Foresight {
    /// A directory was listed: these are its journals.
    pub fn listed(&self, mut journals: Vec<Journal>) {
        if journals.len() <= RUN_MIN || journals.len() > LISTED_MAX {
            return;
        }
        journals.sort_unstable();
        let mut table = self.table();
        table.listings.push_back(journals.into());
        let mut names: usize = table.listings.iter().map(|listing| listing.len()).sum();
        while table.listings.len() > LISTINGS_MAX || names > LISTED_MAX {
            names -= table.listings.pop_front().map_or(0, |oldest| oldest.len());
        }
    }

    /// A thread looks a journal up. Thread 0 is anyone, and on no run.
    pub fn look_up(&self, thread: u32, journal: &Journal) -> Ahead {
        let mut table = self.table();
        if thread == 0 || table.listings.is_empty() {
            return Ahead::Nothing;
        }
        match table.of(thread).and_then(|run| run.step(journal)) {
            Some(ahead) => ahead,
            None => {
                table.begin(thread, journal);
                Ahead::Nothing
            }
        }
    }

    /// What a thread asked for on its run, as it was while it asked.
    pub fn learn(&self, thread: u32, stats: &[Stat]) {
        let mut table = self.table();
        let Some(run) = table.of(thread) else { return };
        let Some(disturbed) = run.disturbed.take() else { return };
        run.since = Instant::now();
        let stats = stats.iter().filter(|stat| !disturbed.contains(&stat.journal));
        run.foreseen = stats.map(|stat| (stat.journal.clone(), stat.clone())).collect();
    }

    /// What the thread's last look-up was answered from, where that was foreseen of this journal.
    pub fn recall(&self, thread: u32, journal: &Journal) -> Option<Stat> {
        let mut table = self.table();
        let run = table.of(thread).filter(|run| run.is_at(journal))?;
        run.foreseen().cloned()
    }

    /// This mount did something to a journal, or let it be read: what was foreseen of it is void.
    pub fn disturb(&self, journal: &Journal) {
        for run in &mut self.table().runs {
            run.foreseen.remove(journal);
            // Past the bound nothing is learnt of what is being asked for.
            run.disturbed.take_if(|disturbed| disturbed.len() == FORESEEN_AT_ONCE);
            if let Some(disturbed) = &mut run.disturbed {
                disturbed.push(journal.clone());
            }
        }
    }

    /// A thread opens a journal. Its run is over: what it does takes more than attributes.
    pub fn opened(&self, thread: u32, journal: &Journal) {
        self.disturb(journal);
        self.table().runs.retain(|run| run.thread != thread);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().expect("no holder panics")
    }
}

impl Table {
    fn of(&mut self, thread: u32) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.thread == thread)
    }

    /// Begins a run in the newest listing that has the journal; of the thread's last one nothing is
    /// left then.
    fn begin(&mut self, thread: u32, journal: &Journal) {
        let place = |listing: &Arc<[Journal]>| {
            Some((listing.clone(), listing.binary_search(journal).ok()?))
        };
        let Some((listing, at)) = self.listings.iter().rev().find_map(place) else { return };
        self.runs.retain(|run| run.thread != thread);
        if self.runs.len() == RUNS_MAX {
            self.runs.pop_front();
        }
        let (foreseen, since) = (BTreeMap::new(), Instant::now());
        self.runs.push_back(Run { thread, listing, at, len: 1, foreseen, since, disturbed: None });
    }
}

impl Run {
    /// The next look-up of the run, if it is one.
    fn step(&mut self, journal: &Journal) -> Option<Ahead> {
        let is_again = self.is_at(journal);
        if !is_again {
            if self.listing.get(self.at + 1) != Some(journal) {
                return None;
            }
            (self.at, self.len) = (self.at + 1, self.len + 1);
        }
        if let Some(stat) = self.foreseen() {
            return Some(Ahead::Foreseen(Box::new(stat.clone())));
        }
        // Who asks for one name again wants to know how it is now. And who waits for an answer
        // looks nothing up: then this thread is another, with the id of one that is gone.
        if is_again || self.len < RUN_MIN || self.disturbed.is_some() {
            return Some(Ahead::Nothing);
        }
        self.disturbed = Some(Vec::new());
        let next = self.listing.iter().skip(self.at).take(FORESEEN_AT_ONCE);
        Some(Ahead::Ask(next.cloned().collect()))
    }

    fn is_at(&self, journal: &Journal) -> bool {
        self.listing.get(self.at) == Some(journal)
    }

    /// What is known of the journal that was looked up last.
    fn foreseen(&self) -> Option<&Stat> {
        let is_young = self.since.elapsed() <= FORESEEN_AGE;
        self.foreseen.get(self.listing.get(self.at)?).filter(|_| is_young)
    }
}
