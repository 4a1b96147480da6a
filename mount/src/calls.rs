//! System calls, told from the requests that the kernel makes of each: all of them together wait no
//! longer than one may.
//!
//! open(2) of a known name is a LOOKUP that revalidates it, another LOOKUP if that one failed
//! (`fuse_dentry_revalidate` of fs/fuse/dir.c drops the name then), and an OPEN. Nothing tells that
//! they belong together but the thread, and that each comes when the one before was answered.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// The longest time between the answer to a request and the next request of the same call: the
/// kernel only has to wake the thread.
const GAP_MAX: Duration = Duration::from_millis(100);

/// Calls that are remembered; the one that was answered first goes first. One is added by each
/// request that has waited, and is of no use a moment later.
const CALLS_MAX: usize = 1_024;

/// Which part of a system call a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A name is looked up: others may follow, and what is done with the file.
    Lookup(Sought),
    /// Attributes that are asked for by name: all of stat(2), or the check of rights of an open.
    Attributes,
    /// What the call is about, and its end: OPEN, CREATE, UNLINK and the like.
    Last,
    /// The call is this one request: READ, WRITE, FSYNC and the like.
    Whole,
}

/// A name in a directory, as a number that hardly any other has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sought(u64);

impl Sought {
    pub fn new(parent: u64, name: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (parent, name).hash(&mut hasher);
        Sought(hasher.finish())
    }
}

/// The calls that have waited, and may go on.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    by_thread: BTreeMap<u32, Call>,
    /// In the order in which they were answered; what went on since is in it twice.
    order: VecDeque<u32>,
}

/// A call as it was when its last request was answered.
#[derive(Debug, Clone, Copy)]
struct Call {
    part: Part,
    has_failed: bool,
    answered: Instant,
    spent: Duration,
}

impl Calls {
    /// What the call of a request has spent on waiting before it. Nothing is remembered of the
    /// thread any more then, unless attributes are asked for: the kernel asks for those of each
    /// directory between look-ups, to check rights.
    pub fn spent(&self, thread: u32, part: Part, now: Instant) -> Duration {
        let mut table = self.table();
        let call = match part {
            Part::Attributes => table.by_thread.get(&thread).copied(),
            Part::Lookup(_) | Part::Last | Part::Whole => table.by_thread.remove(&thread),
        };
        let Some(call) = call else { return Duration::ZERO };
        let goes_on = call.is_followed_by(part) && now - call.answered <= GAP_MAX;
        if goes_on { call.spent } else { Duration::ZERO }
    }

    /// A request that has waited is answered `now`. Its call has `spent` so much with it.
    pub fn answered(&self, thread: u32, part: Part, now: Instant, spent: Duration, end: End) {
        // Nothing follows those, and what follows a look-up that failed a second time is a program
        // that asks again.
        let is_over = match (part, end) {
            (Part::Lookup(_), End::Failed { is_again }) => is_again,
            (Part::Lookup(_) | Part::Attributes, End::Done) => false,
            (Part::Attributes, End::Failed { .. }) | (Part::Last | Part::Whole, _) => true,
        };
        if is_over || thread == 0 {
            return;
        }
        let has_failed = end != End::Done;
        self.table().add(thread, Call { part, has_failed, answered: now, spent });
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().expect("no holder panics")
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Done,
    /// `is_again`: the call had waited before.
    Failed {
        is_again: bool,
    },
}

impl Table {
    fn add(&mut self, thread: u32, call: Call) {
        self.by_thread.insert(thread, call);
        self.order.push_back(thread);
        if self.order.len() > CALLS_MAX
            && let Some(oldest) = self.order.pop_front()
            && !self.order.contains(&oldest)
        {
            self.by_thread.remove(&oldest);
        }
    }
}

impl Call {
    /// Whether such a request may be the next one of the call.
    fn is_followed_by(&self, next: Part) -> bool {
        match (self.part, next) {
            (_, Part::Whole) => false,
            (Part::Lookup(_), next) if self.has_failed => next == self.part,
            (Part::Lookup(_), _) => true,
            (Part::Attributes, next) => next == Part::Last,
            (Part::Last | Part::Whole, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lookup(name: &str) -> Part {
        Part::Lookup(Sought::new(1, name.as_bytes()))
    }

    #[test]
    fn the_requests_of_a_call_are_told_from_those_of_the_next() {
        let failed = End::Failed { is_again: false };
        let again = End::Failed { is_again: true };
        // Case: what waited, how it ended, what comes next, whether that is of the same call
        let cases = [
            (lookup("a"), End::Done, Part::Last, true),
            (lookup("a"), End::Done, lookup("b"), true),
            (lookup("a"), End::Done, Part::Attributes, true),
            (lookup("a"), End::Done, Part::Whole, false),
            (lookup("a"), failed, lookup("a"), true),
            (lookup("a"), failed, lookup("b"), false),
            (lookup("a"), failed, Part::Last, false),
            (lookup("a"), again, lookup("a"), false),
            (Part::Attributes, End::Done, Part::Last, true),
            (Part::Attributes, End::Done, lookup("a"), false),
            (Part::Attributes, failed, Part::Last, false),
            (Part::Last, End::Done, lookup("a"), false),
            (Part::Whole, End::Done, Part::Whole, false),
        ];
        for (part, end, next, is_same) in cases {
            let (calls, now) = (Calls::default(), Instant::now());
            calls.answered(7, part, now, SECOND, end);
            let spent = calls.spent(7, next, now);
            assert_eq!(spent == SECOND, is_same, "{part:?} {end:?}, then {next:?}");
            let is_told_again = is_same && next == Part::Attributes;
            assert_eq!(calls.spent(7, next, now) == SECOND, is_told_again, "{part:?}, {next:?}");
        }
    }

    #[test]
    fn rights_are_checked_on_the_way() {
        let (calls, now) = (Calls::default(), Instant::now());
        // Case: how the look-up ended, what its call has spent when the attributes are asked for
        let failed = End::Failed { is_again: false };
        for (end, expected) in [(End::Done, SECOND), (failed, Duration::ZERO)] {
            calls.answered(7, lookup("a"), now, SECOND, end);
            assert_eq!(calls.spent(7, Part::Attributes, now), expected);
            assert_eq!(calls.spent(7, lookup("a"), now), SECOND);
        }
    }

    #[test]
    fn another_thread_and_a_later_moment_are_other_calls() {
        let (calls, now) = (Calls::default(), Instant::now());
        calls.answered(7, lookup("a"), now, SECOND, End::Done);
        assert_eq!(calls.spent(8, Part::Last, now), Duration::ZERO);
        let later = now + GAP_MAX + Duration::from_millis(1);
        assert_eq!(calls.spent(7, Part::Last, later), Duration::ZERO);
        // Case: a thread that can't be told from others
        calls.answered(0, lookup("a"), now, SECOND, End::Done);
        assert_eq!(calls.spent(0, Part::Last, now), Duration::ZERO);
    }

    #[test]
    fn memory_is_bounded() {
        let (calls, now) = (Calls::default(), Instant::now());
        for thread in 1..=5_000 {
            calls.answered(thread, lookup("a"), now, SECOND, End::Done);
        }
        assert_eq!(calls.table().by_thread.len(), CALLS_MAX);
        for _ in 0..5_000 {
            calls.answered(5_000, lookup("a"), now, SECOND, End::Done);
        }
        assert_eq!(calls.table().order.len(), CALLS_MAX);
        assert_eq!(calls.spent(5_000, Part::Last, now), SECOND);
    }
}
