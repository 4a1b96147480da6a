//! Apply: specs created, changed and deleted, all or none.

use crate::invalid::At;
use crate::{Invalid, Journal, JournalSpec, wire::gazette};

/// `protocol.ApplyRequest`: one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApplyRequest {
    pub changes: Vec<Change>,
}

/// What shall become of one spec, on a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Upsert {
        spec: Box<JournalSpec>,
        expect: Expect,
    },
    /// Never with [`Expect::Absent`].
    Delete {
        journal: Journal,
        expect: Expect,
    },
}

/// What must hold of a spec for its change to be made (`expect_mod_revision`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It must not exist; the wire's 0.
    Absent,
    /// It was last changed at this revision, which is positive.
    At(i64),
    /// Nothing; the wire's -1.
    Any,
}

impl Expect {
    fn from_wire(revision: i64, minimum: i64) -> Result<Self, Invalid> {
        match revision {
            -1 => Ok(Expect::Any),
            0 if minimum == 0 => Ok(Expect::Absent),
            1.. => Ok(Expect::At(revision)),
            _ => Err(Invalid::new(format!(
                "invalid ExpectModRevision ({revision}; expected >= {minimum} or -1)"
            ))),
        }
    }

    /// The wire's number.
    pub const fn number(self) -> i64 {
        match self {
            Expect::Absent => 0,
            Expect::At(revision) => revision,
            Expect::Any => -1,
        }
    }

    /// Whether it holds of a spec last changed at `mod_revision`; `None` is one that is not there.
    pub fn holds(self, mod_revision: Option<i64>) -> bool {
        match self {
            Expect::Absent => mod_revision.is_none(),
            Expect::At(revision) => mod_revision == Some(revision),
            Expect::Any => true,
        }
    }
}

impl Change {
    /// The journal that is changed.
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

impl TryFrom<gazette::apply_request::Change> for Change {
    type Error = Invalid;

    fn try_from(change: gazette::apply_request::Change) -> Result<Self, Invalid> {
        let revision = change.expect_mod_revision;
        match (change.upsert, change.delete.as_str()) {
            (Some(spec), "") => {
                let spec = Box::new(JournalSpec::try_from(spec).at("Upsert")?);
                Ok(Change::Upsert { spec, expect: Expect::from_wire(revision, 0)? })
            }
            (None, delete) if !delete.is_empty() => {
                let journal = Journal::new(delete).at("Delete")?;
                Ok(Change::Delete { journal, expect: Expect::from_wire(revision, 1)? })
            }
            (Some(_), _) => {
                Err(Invalid::new("both Upsert and Delete are set (expected exactly one)"))
            }
            (None, _) => {
                Err(Invalid::new("neither Upsert nor Delete are set (expected exactly one)"))
            }
        }
    }
}

impl From<Change> for gazette::apply_request::Change {
    fn from(change: Change) -> Self {
        let expect_mod_revision = change.expect().number();
        let (upsert, delete) = match change {
            Change::Upsert { spec, .. } => (Some((*spec).into()), String::new()),
            Change::Delete { journal, .. } => (None, journal.to_string()),
        };
        gazette::apply_request::Change { expect_mod_revision, upsert, delete }
    }
}

impl TryFrom<gazette::ApplyRequest> for ApplyRequest {
    type Error = Invalid;

    fn try_from(request: gazette::ApplyRequest) -> Result<Self, Invalid> {
        let change = |(at, change)| Change::try_from(change).at(format_args!("Changes[{at}]"));
        let changes = request.changes.into_iter().enumerate().map(change).collect::<Result<_, _>>();
        changes.map(|changes| ApplyRequest { changes })
    }
}

impl From<ApplyRequest> for gazette::ApplyRequest {
    fn from(request: ApplyRequest) -> Self {
        gazette::ApplyRequest { changes: request.changes.into_iter().map(Into::into).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> gazette::JournalSpec {
        gazette::JournalSpec {
            name: "foo/bar".into(),
            replication: 1,
            labels: Some(Default::default()),
            fragment: Some(gazette::journal_spec::Fragment {
                length: 4096,
                compression_codec: 1,
                refresh_interval: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
                retention: Some(Default::default()),
                flush_interval: Some(Default::default()),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn change(
        expect_mod_revision: i64,
        upsert: Option<gazette::JournalSpec>,
        delete: &str,
    ) -> gazette::apply_request::Change {
        gazette::apply_request::Change { expect_mod_revision, upsert, delete: delete.into() }
    }

    #[test]
    fn changes_are_checked() {
        let invalid = gazette::JournalSpec { replication: 0, ..spec() };
        let cases = [
            (change(0, Some(spec()), ""), None),
            (change(5, Some(spec()), ""), None),
            (change(-1, Some(spec()), ""), None),
            (change(5, None, "foo/bar"), None),
            (change(-1, None, "foo/bar"), None),
            (
                change(-2, Some(spec()), ""),
                Some("Changes[1]: invalid ExpectModRevision (-2; expected >= 0 or -1)"),
            ),
            // Case: what must not exist can't be deleted.
            (
                change(0, None, "foo/bar"),
                Some("Changes[1]: invalid ExpectModRevision (0; expected >= 1 or -1)"),
            ),
            (change(5, None, "foo/"), Some("Changes[1].Delete: must be a clean path (foo/)")),
            (
                change(0, Some(invalid), ""),
                Some(
                    "Changes[1].Upsert: \
                     invalid Replication (0; expected 1 <= Replication <= 5)",
                ),
            ),
            (
                change(1, Some(spec()), "foo/bar"),
                Some("Changes[1]: both Upsert and Delete are set (expected exactly one)"),
            ),
            (
                change(1, None, ""),
                Some("Changes[1]: neither Upsert nor Delete are set (expected exactly one)"),
            ),
        ];
        for (second, expected) in cases {
            let message =
                gazette::ApplyRequest { changes: vec![change(0, Some(spec()), ""), second] };
            match (ApplyRequest::try_from(message.clone()), expected) {
                (Ok(request), None) => assert_eq!(gazette::ApplyRequest::from(request), message),
                (found, expected) => {
                    assert_eq!(found.unwrap_err().to_string(), expected.unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn expectations_hold_or_do_not() {
        let cases = [
            (Expect::Absent, None, true),
            (Expect::Absent, Some(5), false),
            (Expect::At(5), Some(5), true),
            (Expect::At(5), Some(6), false),
            (Expect::At(5), None, false),
            (Expect::Any, Some(5), true),
            (Expect::Any, None, true),
        ];
        for (expect, mod_revision, holds) in cases {
            assert_eq!(expect.holds(mod_revision), holds, "{expect:?} {mod_revision:?}");
        }
    }
}
