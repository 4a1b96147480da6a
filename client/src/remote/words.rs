//! Answers of `courant.v1` as words, and its faults as errors.

use crate::{Durability, Error, Stat};
use protocol::wire::courant::{self, Fault};
use protocol::{Invalid, Journal, LabelSet, Life, Offset};
use std::time::{Duration, UNIX_EPOCH};

/// What a broker sent and may not send.
pub(crate) fn broken(invalid: Invalid) -> Error {
    Error::Protocol(invalid.to_string())
}

pub(crate) fn durability(durability: Option<Durability>) -> courant::Durability {
    match durability {
        None => courant::Durability::Unspecified,
        Some(Durability::Memory) => courant::Durability::Memory,
        Some(Durability::Disk) => courant::Durability::Disk,
    }
}

pub(crate) fn stat(head: courant::Head) -> Result<Stat, Error> {
    let offset = |value| Offset::new(value).map_err(broken);
    let modified = Duration::from_micros(head.modified_us.max(0).unsigned_abs());
    let registers = head.registers.as_deref().map(LabelSet::from_bytes);
    Ok(Stat {
        journal: Journal::new(&head.journal).map_err(broken)?,
        life: Life::new(head.life),
        first: offset(head.first)?,
        // A broker that does not tell them apart.
        trimmed: offset(head.trimmed.unwrap_or(head.first))?,
        head: offset(head.head)?,
        synced: offset(head.synced)?,
        persisted: offset(head.persisted)?,
        modified: UNIX_EPOCH + modified,
        create_revision: head.create_revision,
        mod_revision: head.mod_revision,
        content_type: (!head.content_type.is_empty()).then_some(head.content_type),
        may_read: head.may_read,
        may_write: head.may_write,
        fragments: head.fragments,
        gaps: head.gaps,
        registers: registers.transpose().map_err(broken)?,
    })
}

/// What a fault is about, as far as the request knows.
pub(crate) struct About<'r> {
    pub journal: &'r Journal,
    /// Bytes of an append.
    pub len: u64,
    /// The writer's sequence.
    pub sequence: u64,
    /// What an answer gives as the limit of one append, or of those of a second.
    pub limit: u64,
    /// The revision that the caller expected.
    pub revision: i64,
}

impl<'r> About<'r> {
    pub fn journal(journal: &'r Journal) -> Self {
        About { journal, len: 0, sequence: 0, limit: 0, revision: 0 }
    }

    /// The error of an answer's fault, if it has one. `head` is where the answer says that the
    /// journal ends.
    pub fn check(self, fault: i32, detail: String, head: i64) -> Result<(), Error> {
        let journal = self.journal.clone();
        let fault = Fault::try_from(fault)
            .map_err(|_| Error::Protocol(format!("{journal}: unknown fault {fault} ({detail})")))?;
        Err(match fault {
            Fault::None => return Ok(()),
            Fault::NotFound => Error::NotFound(journal),
            Fault::WrongOffset => {
                Error::WrongOffset { journal, head: Offset::new(head).map_err(broken)? }
            }
            Fault::RegisterMismatch => {
                Error::RegisterMismatch { journal, registers: LabelSet::default() }
            }
            Fault::NotAllowed => {
                let detail = without_name(&journal, detail);
                Error::NotAllowed { journal, detail }
            }
            Fault::NoSpace => {
                let detail = without_name(&journal, detail);
                Error::NoSpace(journal, detail)
            }
            Fault::TooLarge => Error::TooLarge(journal, self.len, self.limit),
            Fault::OverRate => Error::OverRate { journal, rate: self.limit },
            Fault::OverSize => Error::OverSize { journal, max: self.limit },
            Fault::Deleted => Error::Deleted(journal),
            Fault::Later => Error::Later(detail),
            Fault::Refused => Error::Refused(journal.to_string(), detail),
            Fault::Io => Error::Io(detail),
            Fault::Conflict => Error::Conflict(journal, self.revision),
            Fault::SecondWriter => {
                let detail = without_name(&journal, detail);
                Error::SecondWriter(journal, detail)
            }
            Fault::StaleSequence => Error::StaleSequence(journal, self.sequence),
        })
    }
}

/// A detail without the journal that it begins with, for errors that name it themselves.
fn without_name(journal: &Journal, detail: String) -> String {
    let rest = detail.strip_prefix(journal.as_str()).and_then(|rest| rest.strip_prefix(": "));
    rest.map(str::to_owned).unwrap_or(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Remedy;

    #[test]
    fn every_fault_is_an_error() {
        let journal: Journal = "local/log".parse().expect("valid");
        // Case: the fault, its remedy, what its text says
        let cases = [
            (Fault::NotFound, Remedy::Fix, "local/log does not exist"),
            (Fault::WrongOffset, Remedy::Fix, "ends at 7"),
            (Fault::RegisterMismatch, Remedy::Fix, "registers"),
            (Fault::NotAllowed, Remedy::Fix, "because 5"),
            (Fault::NoSpace, Remedy::Fix, "no space"),
            (Fault::TooLarge, Remedy::Fix, "of 9 bytes is over the limit of 5"),
            (Fault::OverRate, Remedy::Fix, "takes 5 bytes a second"),
            (Fault::OverSize, Remedy::Fix, "may have 5 bytes"),
            (Fault::Later, Remedy::Later, "because 5"),
            (Fault::Refused, Remedy::Fix, "refused"),
            (Fault::Io, Remedy::Fix, "because 5"),
            (Fault::Conflict, Remedy::Fix, "revision 3"),
            (Fault::SecondWriter, Remedy::Fix, "because 5"),
            (Fault::StaleSequence, Remedy::Fix, "sequence 4"),
        ];
        for (fault, remedy, expected) in cases {
            let about = About { journal: &journal, len: 9, sequence: 4, limit: 5, revision: 3 };
            let error = about.check(fault as i32, "because 5".into(), 7).unwrap_err();
            assert_eq!(error.remedy(), remedy, "{fault:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        // Case: what was sent as it came has no length that is known
        let error = About::journal(&journal).check(Fault::TooLarge as i32, String::new(), 0);
        assert!(!error.unwrap_err().to_string().contains("of 0 bytes is"));
        assert!(About::journal(&journal).check(0, String::new(), 0).is_ok());
        assert!(About::journal(&journal).check(99, String::new(), 0).is_err());
    }

    #[test]
    fn an_error_names_its_journal_once() {
        let journal: Journal = "local/log".parse().expect("valid");
        for fault in [Fault::NotAllowed, Fault::NoSpace, Fault::SecondWriter] {
            for detail in ["local/log: because 5", "because 5"] {
                let about = About::journal(&journal);
                let error = about.check(fault as i32, detail.into(), 7).unwrap_err().to_string();
                assert_eq!(error.matches("local/log").count(), 1, "{error}");
                assert!(error.ends_with(": because 5"), "{error}");
            }
        }
    }

    #[test]
    fn heads_are_checked() {
        let head = courant::Head { journal: "local/log".into(), head: 5, ..Default::default() };
        let found = stat(head.clone()).expect("valid");
        assert_eq!((found.head.get(), found.modified), (5, UNIX_EPOCH));
        assert_eq!(found.registers, None, "an older broker does not tell them");
        let registers = LabelSet::default().with("owner", "me").expect("valid");
        let told = courant::Head { registers: Some(registers.to_bytes().into()), ..head.clone() };
        assert_eq!(stat(told).expect("valid").registers, Some(registers));
        let broken = courant::Head { registers: Some("\u{1}".into()), ..head.clone() };
        assert!(stat(broken).is_err());
        assert!(stat(courant::Head { head: -1, ..head.clone() }).is_err());
        assert!(stat(courant::Head { journal: "x".into(), ..head }).is_err());
    }
}
