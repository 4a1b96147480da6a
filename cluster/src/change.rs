//! One transaction's changes: what is compared, and what is put or deleted.

use crate::Error;
use protocol::wire::gazette::apply_request;
use protocol::{Invalid, Journal, JournalSpec, Suspend, request};
use std::collections::BTreeSet;

/// Changes in one transaction: etcd's default limit of operations (gazette-spec 1.9).
pub const CHANGES_MAX: usize = 128;

/// What must be there for a change to be made: `expect_mod_revision` of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there (-1).
    Any,
    /// Nothing (0).
    Absent,
    /// A spec that was last changed at this revision, which is positive.
    At(i64),
}

impl Expect {
    /// Whether what is there is what is expected: a spec's revision of its last change, or nothing.
    pub fn holds(self, mod_revision: Option<i64>) -> bool {
        match self {
            Expect::Any => true,
            Expect::Absent => mod_revision.is_none(),
            Expect::At(revision) => mod_revision == Some(revision),
        }
    }
}

impl TryFrom<i64> for Expect {
    type Error = Invalid;

    fn try_from(revision: i64) -> Result<Self, Invalid> {
        match revision {
            -1 => Ok(Expect::Any),
            0 => Ok(Expect::Absent),
            1.. => Ok(Expect::At(revision)),
            _ => Err(Invalid::new(format!(
                "invalid ExpectModRevision ({revision}; expected >= 0 or -1)"
            ))),
        }
    }
}

impl From<request::Expect> for Expect {
    fn from(expect: request::Expect) -> Self {
        match expect {
            request::Expect::Absent => Expect::Absent,
            request::Expect::At(revision) => Expect::At(revision),
            request::Expect::Any => Expect::Any,
        }
    }
}

/// One change of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Creates the journal, or replaces its spec.
    ///
    /// A spec without `suspend` keeps the one that is there, and an offset in it is never lowered:
    /// it is where the journal's next byte goes when no replica remembers, and a spec applied from
    /// a file would otherwise make the journal use its offsets again (gazette-spec 9.2).
    Upsert { spec: JournalSpec, expect: Expect },
    /// Deletes the spec. With [`Expect::Any`] a missing journal is a success that changes nothing.
    Delete { journal: Journal, expect: Expect },
}

impl From<request::Change> for Change {
    fn from(change: request::Change) -> Self {
        match change {
            request::Change::Upsert { spec, expect } => {
                Change::Upsert { spec: *spec, expect: expect.into() }
            }
            request::Change::Delete { journal, expect } => {
                Change::Delete { journal, expect: expect.into() }
            }
        }
    }
}

impl Change {
    pub fn journal(&self) -> &Journal {
        match self {
            Change::Upsert { spec, .. } => &spec.name,
            Change::Delete { journal, .. } => journal,
        }
    }

    pub fn expect(&self) -> Expect {
        match self {
            Change::Upsert { expect, .. } | Change::Delete { expect, .. } => *expect,
        }
    }
}

/// One change of an `ApplyRequest`; the caller adds which one to the path of the error.
impl TryFrom<apply_request::Change> for Change {
    type Error = Invalid;

    fn try_from(change: apply_request::Change) -> Result<Self, Invalid> {
        let apply_request::Change { expect_mod_revision, upsert, delete } = change;
        match (upsert, delete.is_empty()) {
            (Some(spec), true) => Ok(Change::Upsert {
                spec: spec.try_into().map_err(|invalid: Invalid| invalid.within("Upsert"))?,
                expect: expect_mod_revision.try_into()?,
            }),
            (None, false) => Ok(Change::Delete {
                journal: Journal::new(&delete).map_err(|invalid| invalid.within("Delete"))?,
                expect: deletable(expect_mod_revision.try_into()?)?,
            }),
            (Some(_), false) | (None, true) => {
                Err(Invalid::new("expected exactly one of Upsert and Delete"))
            }
        }
    }
}

/// Only what is there can be deleted, so its absence can't be what is expected.
fn deletable(expect: Expect) -> Result<Expect, Invalid> {
    match expect {
        Expect::Absent => Err(Invalid::new("invalid ExpectModRevision (0; expected > 0 or -1)")),
        Expect::Any | Expect::At(_) => Ok(expect),
    }
}

/// How a transaction ended that was decided by its compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All changes are durable and visible, at this revision. A transaction that changed nothing
    /// has the current one.
    Applied { revision: i64 },
    /// `journal`'s compare failed; nothing was changed. `revision` is the current one.
    Conflict { revision: i64, journal: Journal },
}

impl Outcome {
    /// The revision for the answer's header, which both outcomes have.
    pub fn revision(&self) -> i64 {
        match self {
            Outcome::Applied { revision } | Outcome::Conflict { revision, .. } => *revision,
        }
    }
}

/// Refuses what no state of the key space could make right.
pub(crate) fn check(changes: &[Change]) -> Result<(), Error> {
    if changes.len() > CHANGES_MAX {
        return Err(Error::TooManyChanges { changes: changes.len(), limit: CHANGES_MAX });
    }
    let mut seen = BTreeSet::new();
    for change in changes {
        match change {
            Change::Upsert { spec, .. } => {
                let valid = spec.validate().and_then(|()| spec.check_storable());
                valid.map_err(|invalid| invalid.within("Upsert"))?;
            }
            Change::Delete { expect, .. } => drop(deletable(*expect)?),
        }
        if !seen.insert(change.journal()) {
            return Err(Error::Repeated { journal: change.journal().clone() });
        }
    }
    Ok(())
}

/// The `suspend` of a spec that replaces another, by the rule of [`Change::Upsert`].
pub(crate) fn kept_suspend(applied: Option<Suspend>, there: Option<Suspend>) -> Option<Suspend> {
    match (applied, there) {
        (Some(applied), Some(there)) => {
            Some(Suspend { level: applied.level, offset: applied.offset.max(there.offset) })
        }
        (applied, there) => applied.or(there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Offset, SuspendLevel};

    #[test]
    fn expectations_are_numbered_as_on_the_wire() {
        // Case: number, meaning, holds for nothing, holds for a spec of revision 7
        for (number, expect, absent, seven) in [
            (-1, Expect::Any, true, true),
            (0, Expect::Absent, true, false),
            (7, Expect::At(7), false, true),
            (6, Expect::At(6), false, false),
        ] {
            assert_eq!(Expect::try_from(number), Ok(expect));
            assert_eq!((expect.holds(None), expect.holds(Some(7))), (absent, seven), "{number}");
        }
        assert!(Expect::try_from(-2).is_err());
    }

    #[test]
    fn changes_come_from_the_wire() {
        let spec = crate::Templates::default()
            .spec_for(&Journal::new("logs/a").expect("a valid name"))
            .expect("a name nobody refuses");
        let journal = spec.name.clone();
        let upsert = Change::Upsert { spec: spec.clone(), expect: Expect::Absent };
        let delete = Change::Delete { journal, expect: Expect::At(7) };
        // Case: upsert, delete, expected revision, the change
        for (put, name, revision, expected) in [
            (true, "", 0, Some(upsert)),
            (false, "logs/a", 7, Some(delete)),
            (false, "logs/a", 0, None),
            (true, "", -2, None),
            (true, "logs/a", -1, None),
            (false, "", -1, None),
            (false, "/logs", -1, None),
        ] {
            let change = Change::try_from(apply_request::Change {
                expect_mod_revision: revision,
                upsert: put.then(|| spec.clone().into()),
                delete: name.into(),
            });
            assert_eq!(change.ok(), expected, "{put} {name} {revision}");
        }
    }

    #[test]
    fn a_suspend_offset_is_never_lowered() {
        let of = |level, offset| {
            Some(Suspend { level, offset: Offset::new(offset).expect("a valid offset") })
        };
        use SuspendLevel::{Full, None as Awake, Partial};
        // Case: applied, there, kept
        for (applied, there, kept) in [
            (None, None, None),
            (of(Full, 5), None, of(Full, 5)),
            (None, of(Full, 5), of(Full, 5)),
            (of(Awake, 0), of(Full, 5), of(Awake, 5)),
            (of(Partial, 9), of(Awake, 5), of(Partial, 9)),
        ] {
            assert_eq!(kept_suspend(applied, there), kept);
        }
    }
}
