//! Row 7: a thousand journals that are synced together, against one. Row 25: the rate of appends as
//! the number of journals grows.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::samples::Samples;
use crate::wire::{Appends, Wire};
use bytes::Bytes;
use tests::world::Up;

/// Bytes of an append.
const LEN: usize = 100;

/// In flight all the time, at least one a journal.
const IN_FLIGHT: usize = 64;

/// Journals of a measurement.
const MANY: usize = 1000;
const SOME: [usize; 3] = [10, 100, MANY];

pub fn measure(scale: Scale, is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let mut cases = Vec::new();
    if is_wanted(7) {
        let journals = Journals::make("disk");
        cases.push(Case {
            row: 7,
            what: format!("{MANY} journals, disk, 1 in flight each"),
            against: "one journal, disk, 64 in flight",
            unit: "/s",
            samples: journals.against_one(scale, MANY, MANY),
            wanted: Wanted::AtLeast(0.5),
        });
    }
    if is_wanted(25) {
        let journals = Journals::make("memory");
        cases.extend(SOME.map(|count| Case {
            row: 25,
            what: format!("{LEN}-byte Append, memory, {count} journals"),
            against: "one journal",
            unit: "/s",
            samples: journals.against_one(scale, count, IN_FLIGHT),
            wanted: Wanted::Told,
        }));
    }
    cases
}

/// Journals of one broker.
struct Journals {
    // Ended with it.
    _up: Up,
    wire: Wire,
    appends: Vec<Appends>,
}

impl Journals {
    fn make(durability: &str) -> Journals {
        let up = Up::with(&["--durability", durability]);
        let line = "for number in $(seq 0 $(($1 - 1))); do echo begin >> log-$number; done";
        up.bash(line, &[&MANY.to_string()]).ok();
        let wire = Wire::new();
        let first = wire.appends(&up.url(), "local/log-0", &Bytes::from(vec![b'x'; LEN]));
        let appends = (0..MANY).map(|number| first.to(&format!("local/log-{number}"))).collect();
        Journals { _up: up, wire, appends }
    }

    fn against_one(&self, scale: Scale, count: usize, in_flight: usize) -> Samples {
        let rate =
            |count, in_flight| self.wire.rate_of(&self.appends[..count], in_flight, scale.seconds);
        Samples::by_turns(scale.repeats, || rate(count, in_flight), || rate(1, IN_FLIGHT))
    }
}
