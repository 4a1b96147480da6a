//! Append: a first message that says where and when, then content, then an empty message.

use crate::invalid::{At, unset};
use crate::{Header, Invalid, LabelSet, MetaJournal, Offset, Selector, wire::gazette};
use bytes::Bytes;

/// The first message of an Append stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRequest {
    /// Set by a broker that passes the request on.
    pub header: Option<Header>,
    pub journal: MetaJournal,
    /// Whether another broker may answer in this one's place.
    pub may_proxy: bool,
    /// The append happens only if the journal ends here. The wire's 0 asserts nothing, so that
    /// `Some(Offset::ZERO)` cannot come from it.
    pub offset: Option<Offset>,
    /// The append happens only if the registers match.
    pub check_registers: Option<Selector>,
    pub union_registers: Option<LabelSet>,
    pub subtract_registers: Option<LabelSet>,
    pub suspend: AppendSuspend,
    /// The key space must be read through this revision first.
    pub min_revision: i64,
}

/// A message of an Append stream after the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendPart {
    /// More content, never empty.
    Content(Bytes),
    /// The content is complete: the empty message.
    Commit,
}

/// What an append does with a suspended journal, or to suspend one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AppendSuspend {
    /// Resume a suspended journal, then append.
    #[default]
    Resume,
    /// Fail with `SUSPENDED`.
    NoResume,
    /// Suspend the journal if all its content is persisted.
    IfFlushed,
    /// Suspend the journal.
    Now,
    /// Leave the journal as suspended as it is.
    Keep,
}

impl AppendSuspend {
    pub const ALL: [AppendSuspend; 5] = [
        AppendSuspend::Resume,
        AppendSuspend::NoResume,
        AppendSuspend::IfFlushed,
        AppendSuspend::Now,
        AppendSuspend::Keep,
    ];

    /// The wire's number.
    pub const fn number(self) -> i32 {
        match self {
            AppendSuspend::Resume => 0,
            AppendSuspend::NoResume => 1,
            AppendSuspend::IfFlushed => 2,
            AppendSuspend::Now => 3,
            AppendSuspend::Keep => 4,
        }
    }
    /// Whether the append is there to suspend the journal.
    pub const fn suspends(self) -> bool {
        matches!(self, AppendSuspend::IfFlushed | AppendSuspend::Now)
    }

    /// Whether such an append may carry content: those that suspend may not (gazette-spec 2.2).
    pub const fn may_have_content(self) -> bool {
        matches!(self, AppendSuspend::Resume | AppendSuspend::NoResume)
    }
}

impl TryFrom<i32> for AppendSuspend {
    type Error = Invalid;

    fn try_from(number: i32) -> Result<Self, Invalid> {
        AppendSuspend::ALL
            .into_iter()
            .find(|suspend| suspend.number() == number)
            .ok_or_else(|| Invalid::new(format!("invalid Suspend ({number})")))
    }
}

impl AppendRequest {
    /// The append to a journal's end, wherever that is.
    pub fn new(journal: impl Into<MetaJournal>) -> Self {
        AppendRequest {
            header: None,
            journal: journal.into(),
            may_proxy: true,
            offset: None,
            check_registers: None,
            union_registers: None,
            subtract_registers: None,
            suspend: AppendSuspend::Resume,
            min_revision: 0,
        }
    }

    /// Whether a commit would change registers, which an append of no bytes may not.
    pub fn changes_registers(&self) -> bool {
        self.union_registers.is_some() || self.subtract_registers.is_some()
    }
}

impl TryFrom<gazette::AppendRequest> for AppendRequest {
    type Error = Invalid;

    fn try_from(request: gazette::AppendRequest) -> Result<Self, Invalid> {
        let header = Header::optional(request.header)?;
        let journal = MetaJournal::new(&request.journal).at("Journal")?;
        unset("Content", request.content.is_empty())?;
        let offset = Offset::new(request.offset)?;
        let check = request.check_registers.map(Selector::try_from).transpose();
        let union = request.union_registers.map(LabelSet::try_from).transpose();
        let subtract = request.subtract_registers.map(LabelSet::try_from).transpose();
        Ok(AppendRequest {
            header,
            journal,
            may_proxy: !request.do_not_proxy,
            offset: (offset != Offset::ZERO).then_some(offset),
            check_registers: check.at("CheckRegisters")?,
            union_registers: union.at("UnionRegisters")?,
            subtract_registers: subtract.at("SubtractRegisters")?,
            suspend: AppendSuspend::try_from(request.suspend)?,
            min_revision: request.min_etcd_revision,
        })
    }
}

impl From<AppendRequest> for gazette::AppendRequest {
    fn from(request: AppendRequest) -> Self {
        gazette::AppendRequest {
            header: request.header.map(Into::into),
            journal: request.journal.to_string(),
            do_not_proxy: !request.may_proxy,
            content: Bytes::new(),
            offset: request.offset.map_or(0, Offset::get),
            check_registers: request.check_registers.map(Into::into),
            union_registers: request.union_registers.map(Into::into),
            subtract_registers: request.subtract_registers.map(Into::into),
            suspend: request.suspend.number(),
            min_etcd_revision: request.min_revision,
        }
    }
}

impl TryFrom<gazette::AppendRequest> for AppendPart {
    type Error = Invalid;

    fn try_from(request: gazette::AppendRequest) -> Result<Self, Invalid> {
        unset("Header", request.header.is_none())?;
        unset("Journal", request.journal.is_empty())?;
        unset("DoNotProxy", !request.do_not_proxy)?;
        unset("Offset", request.offset == 0)?;
        unset("CheckRegisters", request.check_registers.is_none())?;
        unset("UnionRegisters", request.union_registers.is_none())?;
        unset("SubtractRegisters", request.subtract_registers.is_none())?;
        unset("Suspend", request.suspend == 0)?;
        unset("MinEtcdRevision", request.min_etcd_revision == 0)?;
        let content = request.content;
        Ok(if content.is_empty() { AppendPart::Commit } else { AppendPart::Content(content) })
    }
}

impl From<AppendPart> for gazette::AppendRequest {
    fn from(part: AppendPart) -> Self {
        let content = match part {
            AppendPart::Content(content) => content,
            AppendPart::Commit => Bytes::new(),
        };
        gazette::AppendRequest { content, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    type Edit = fn(&mut gazette::AppendRequest);

    fn label(name: &str) -> gazette::LabelSet {
        let label = gazette::Label { name: name.into(), ..Default::default() };
        gazette::LabelSet { labels: vec![label] }
    }

    #[test]
    fn the_first_message_says_where_and_carries_nothing() {
        let cases: [(Edit, Option<&str>); 10] = [
            (|_| (), None),
            (|r| r.journal = "foo/bar;meta".into(), None),
            (|r| r.offset = 5, None),
            (|r| (r.do_not_proxy, r.suspend, r.min_etcd_revision) = (true, 4, 9), None),
            (|r| r.union_registers = Some(label("author")), None),
            (
                |r| r.journal = String::new(),
                Some("Journal: invalid length (0; expected 4 <= length <= 512)"),
            ),
            (|r| r.content = Bytes::from_static(b"x"), Some("unexpected Content")),
            (|r| r.offset = -1, Some("invalid Offset (-1; expected 0 <= Offset <= MaxInt64)")),
            (
                |r| r.subtract_registers = Some(label("x")),
                Some(
                    "SubtractRegisters.Labels[0].Name: \
                     invalid length (1; expected 2 <= length <= 64)",
                ),
            ),
            (|r| r.suspend = 5, Some("invalid Suspend (5)")),
        ];
        for (edit, expected) in cases {
            let mut message =
                gazette::AppendRequest { journal: "foo/bar".into(), ..Default::default() };
            edit(&mut message);
            match (AppendRequest::try_from(message.clone()), expected) {
                (Ok(request), None) => assert_eq!(gazette::AppendRequest::from(request), message),
                (found, expected) => {
                    assert_eq!(found.unwrap_err().to_string(), expected.unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn later_messages_carry_content_and_nothing_else() {
        let cases: [(Edit, Option<&str>); 10] = [
            (|_| (), None),
            (|r| r.header = Some(Default::default()), Some("unexpected Header")),
            (|r| r.journal = "foo/bar".into(), Some("unexpected Journal")),
            (|r| r.do_not_proxy = true, Some("unexpected DoNotProxy")),
            (|r| r.offset = 1, Some("unexpected Offset")),
            (|r| r.check_registers = Some(Default::default()), Some("unexpected CheckRegisters")),
            (|r| r.union_registers = Some(Default::default()), Some("unexpected UnionRegisters")),
            (
                |r| r.subtract_registers = Some(Default::default()),
                Some("unexpected SubtractRegisters"),
            ),
            (|r| r.suspend = 1, Some("unexpected Suspend")),
            (|r| r.min_etcd_revision = 1, Some("unexpected MinEtcdRevision")),
        ];
        for (edit, expected) in cases {
            let content = Bytes::from_static(b"hello");
            let mut message =
                gazette::AppendRequest { content: content.clone(), ..Default::default() };
            edit(&mut message);
            match (AppendPart::try_from(message), expected) {
                (Ok(part), None) => assert_eq!(part, AppendPart::Content(content)),
                (found, expected) => {
                    assert_eq!(found.unwrap_err().to_string(), expected.unwrap_or_default());
                }
            }
        }
        let empty = gazette::AppendRequest::default();
        assert_eq!(AppendPart::try_from(empty.clone()), Ok(AppendPart::Commit));
        assert_eq!(gazette::AppendRequest::from(AppendPart::Commit), empty);
    }

    #[test]
    fn suspensions_are_those_of_the_wire() {
        for suspend in AppendSuspend::ALL {
            assert!(gazette::append_request::Suspend::try_from(suspend.number()).is_ok());
            assert_eq!(AppendSuspend::try_from(suspend.number()), Ok(suspend));
        }
    }
}
