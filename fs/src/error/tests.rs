//! Every cause and its errno: the table of docs/SEMANTICS.md, from the side of the code.

use super::*;
use client::Error as E;
use protocol::{Journal, LabelSet, Offset, Span};

#[test]
fn every_cause_has_its_errno() {
    let text = || "why".to_owned();
    let journal = || Journal::new("local/log").unwrap();
    let span = Span::at(Offset::ZERO, 10);
    let invalid = || Journal::new("x").unwrap_err();
    let registers = LabelSet::default();
    // Case: (errno, what ends with it)
    let cases: [(Errno, Vec<Error>); 24] = [
        (Errno::NOENT, vec![Error::NotFound, E::NotFound(journal()).into()]),
        (Errno::EXIST, vec![Error::Exists]),
        (
            Errno::STALE,
            vec![Error::Stale, E::Deleted(journal()).into(), E::Conflict(journal(), 1).into()],
        ),
        (Errno::NOTEMPTY, vec![Error::NotEmpty]),
        (Errno::ISDIR, vec![Error::IsDirectory]),
        (Errno::NOTDIR, vec![Error::NotDirectory]),
        (
            Errno::PERM,
            vec![
                Error::Unchangeable,
                Error::Refused(text()),
                E::Refused(text(), text()).into(),
                E::WrongOffset { journal: journal(), head: Offset::ZERO }.into(),
                E::RegisterMismatch { journal: journal(), registers }.into(),
            ],
        ),
        (
            Errno::INVAL,
            vec![
                Error::BeyondHead { offset: 1 },
                Error::Invalid("no file name"),
                E::Invalid(invalid()).into(),
                E::NoDisk(text()).into(),
                E::Specs(text(), text()).into(),
            ],
        ),
        (Errno::ROFS, vec![Error::ReadOnly]),
        (
            Errno::ACCESS,
            vec![Error::NotReadable, E::NotAllowed { journal: journal(), detail: text() }.into()],
        ),
        (Errno::NAMETOOLONG, vec![Error::NameTooLong]),
        (Errno::BADF, vec![Error::BadHandle]),
        (Errno::AGAIN, vec![Error::WouldBlock]),
        (Errno::INTR, vec![Error::Interrupted]),
        (Errno::NODEV, vec![Error::Unmounted]),
        (Errno::OPNOTSUPP, vec![Error::NotSupported, Error::NoStaging]),
        (
            Errno::NODATA,
            vec![
                Error::NoAttribute,
                E::Trimmed { journal: journal(), span }.into(),
                E::Lost { journal: journal(), span }.into(),
            ],
        ),
        (Errno::RANGE, vec![Error::DoesNotFit]),
        (Errno::NXIO, vec![Error::NoData]),
        (
            Errno::NOSPC,
            vec![
                Error::TooManyPlaceholders,
                Error::StagingFull { what: "bytes", max: 1 },
                Error::Staging { detail: text(), is_full: true },
                E::NoSpace(journal(), text()).into(),
            ],
        ),
        (
            Errno::DQUOT,
            vec![
                E::OverRate { journal: journal(), rate: 1 }.into(),
                E::OverSize { journal: journal(), max: 1 }.into(),
            ],
        ),
        (Errno::FBIG, vec![Error::TooLong { max: 1 }, E::TooLarge(journal(), 2, 1).into()]),
        (
            Errno::TIMEDOUT,
            vec![E::Later(text()).into(), E::Unreachable(text()).into(), E::Unknown.into()],
        ),
        (
            Errno::IO,
            vec![
                E::Damaged { journal: journal(), span, detail: text() }.into(),
                E::SecondWriter(journal(), text()).into(),
                E::StaleSequence(journal(), 1).into(),
                E::Io(text()).into(),
                Error::Staging { detail: text(), is_full: false },
            ],
        ),
    ];
    for (errno, errors) in cases {
        for error in errors {
            assert_eq!(error.errno(), errno, "{error}");
        }
    }
    assert_eq!(Error::from(E::Protocol(text())).errno(), Errno::PROTO);
}
