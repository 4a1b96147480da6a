//! Operations by chance, from a seed: the same seed makes the same ones.

use super::{At, How, MOUNTS, Model, Op, SLOTS};
use crate::limits::ATOMIC_MAX;

/// Files that are never deleted, with or without a byte.
const KEPT: [&str; 5] = ["aa", "bb", "d/x", "d/y", "e/z"];

/// Journals that may be deleted. No mount has a placeholder of such a name for long: what a mount
/// believes of a name that came and went without its looking is not fixed.
const DELETED: [&str; 2] = ["del1", "del2"];

const REFUSED: &str = "new.tmp";
const DIRECTORIES: [&str; 3] = ["d", "e", "f"];

/// A sequence of numbers from a seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("it is small");
        usize::try_from(self.next() % bound).expect("it is below the bound")
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn name(&mut self) -> &'static str {
        match self.below(8) {
            0 => self.pick(&DELETED),
            1 if self.one_in(2) => REFUSED,
            _ => self.pick(&KEPT),
        }
    }

    fn content(&mut self) -> Vec<u8> {
        let len = match self.below(40) {
            0 => ATOMIC_MAX + self.below(2),
            1..=4 => 4_096 * (1 + self.below(4)) - self.below(2),
            _ => 1 + self.below(60),
        };
        let first = self.below(256);
        // Never a zero: zeros are what a fault shows.
        (0..len).map(|at| u8::try_from((first + at) % 255 + 1).expect("it is below 256")).collect()
    }

    fn how(&mut self, name: &str) -> How {
        let (reads, writes) =
            self.pick(&[(true, false), (false, true), (false, true), (true, true)]);
        let create = writes && !DELETED.contains(&name) && self.one_in(2);
        How {
            reads,
            writes,
            append: writes && !self.one_in(3),
            create,
            exclusive: create && self.one_in(6),
            truncate: writes && self.one_in(8),
        }
    }

    /// An offset at the end of the file, or about it, or anywhere.
    fn at(&mut self, size: u64) -> At {
        match self.below(6) {
            0 => 0,
            1 => size + 1 + self.next() % 3,
            2 => size.saturating_sub(1 + self.next() % 5_000),
            3 => self.next() % (size + 1),
            _ => size,
        }
    }

    /// The next operation that makes sense where the model stands.
    pub fn op(&mut self, model: &Model) -> Op {
        loop {
            let (mount, slot) = (self.below(MOUNTS), self.below(SLOTS));
            let op = match model.handle(mount, slot) {
                Some(handle) if !self.one_in(3) => self.on_handle(model, mount, slot, handle.how),
                _ => self.on_name(model, mount, slot),
            };
            if let Some(op) = op {
                return op;
            }
        }
    }

    fn on_handle(&mut self, model: &Model, mount: usize, slot: usize, how: How) -> Option<Op> {
        let at = self.at(model.handle_size(mount, slot));
        Some(match self.below(12) {
            0..=3 if how.writes => Op::Write { mount, slot, at, content: self.content() },
            4..=6 if how.reads => {
                let len = self.pick(&[1, 100, 4_096, 131_072, ATOMIC_MAX]);
                Op::Read { mount, slot, at: at.saturating_sub(self.next() % 300), len }
            }
            7 => Op::SeekData { mount, slot, at },
            8 => Op::SeekHole { mount, slot, at },
            9 if how.writes => Op::SetAppend { mount, slot, append: self.one_in(2) },
            10 if how.writes => Op::Fsync { mount, slot },
            11 => Op::Close { mount, slot },
            _ => return None,
        })
    }

    fn on_name(&mut self, model: &Model, mount: usize, slot: usize) -> Option<Op> {
        let name = self.name();
        Some(match self.below(20) {
            0..=5 if model.handle(mount, slot).is_none() => {
                Op::Open { mount, slot, name, how: self.how(name) }
            }
            6..=8 => Op::Size { mount, name },
            9..=10 => Op::List { mount, directory: self.pick(&["", "d", "e", "f"]) },
            11..=12 if name != REFUSED => Op::Elsewhere { name, content: self.content() },
            13 => Op::Truncate { mount, name, size: self.next() % 3 },
            14 if !DELETED.contains(&name) => {
                let from = self.pick(&KEPT);
                (from != name).then_some(Op::Rename { mount, from, to: name })?
            }
            15 if self.may_unlink(model, mount, name) => Op::Unlink { mount, name },
            16 => Op::Mkdir { mount, name: self.pick(&DIRECTORIES) },
            18 if self.one_in(10) => Op::Restart { mount },
            17 => Op::Rmdir { mount, name: self.pick(&DIRECTORIES) },
            _ => return None,
        })
    }

    fn may_unlink(&mut self, model: &Model, mount: usize, name: &str) -> bool {
        mount != 0 || DELETED.contains(&name) || !model.is_journal(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;
    use rustix::io::Errno;
    use std::collections::BTreeSet;

    /// What seeds come to: each kind of operation with each kind of its answers.
    fn reached() -> BTreeSet<(String, String)> {
        let mut reached = BTreeSet::new();
        for seed in 0..300 {
            let (mut chance, mut model) = (Chance::new(seed), Model::default());
            for _ in 0..120 {
                let op = chance.op(&model);
                let outcome = &model.apply(&op)[0];
                let kind = format!("{op:?}").split(' ').next().map(str::to_owned);
                let answer = match outcome {
                    Outcome::Failed(errno) => format!("{errno:?}"),
                    Outcome::Bytes(bytes) if bytes.is_empty() => "nothing".to_owned(),
                    _ => "success".to_owned(),
                };
                reached.insert((kind.expect("it has a name"), answer));
            }
        }
        reached
    }

    #[test]
    fn every_answer_is_reached() {
        let reached = reached();
        let errno = |errno: Errno| format!("{errno:?}");
        // Case: operation, answers
        let cases: [(&str, &[Errno]); 13] = [
            ("Open", &[Errno::NOENT, Errno::EXIST, Errno::PERM]),
            ("Write", &[Errno::PERM, Errno::INVAL, Errno::STALE]),
            ("Read", &[Errno::STALE]),
            ("SeekData", &[Errno::NXIO, Errno::STALE]),
            ("SeekHole", &[Errno::NXIO]),
            ("Fsync", &[Errno::STALE]),
            ("Size", &[Errno::NOENT]),
            ("List", &[Errno::NOENT]),
            ("Truncate", &[Errno::PERM, Errno::INVAL, Errno::NOENT]),
            ("Rename", &[Errno::PERM, Errno::NOENT]),
            ("Unlink", &[Errno::PERM, Errno::NOENT]),
            ("Mkdir", &[Errno::EXIST]),
            ("Rmdir", &[Errno::NOTEMPTY, Errno::NOENT]),
        ];
        for (op, errnos) in cases {
            let answers = errnos.iter().map(|one| errno(*one)).chain(["success".to_owned()]);
            for answer in answers {
                let wanted = (op.to_owned(), answer);
                assert!(reached.contains(&wanted), "no seed comes to {wanted:?}");
            }
        }
    }
}
