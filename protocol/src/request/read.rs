//! Read: content from an offset on.

use crate::invalid::{At, at_least};
use crate::{Header, Invalid, MetaJournal, Offset, wire::gazette};

/// Where a read begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// At the write head as it is when the read is served; the wire's -1.
    Head,
    At(Offset),
}

/// `protocol.ReadRequest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRequest {
    /// Set by a broker that passes the request on.
    pub header: Option<Header>,
    pub journal: MetaJournal,
    pub from: ReadFrom,
    /// Where the read ends; `None` goes on for ever.
    pub end: Option<Offset>,
    /// Whether to wait at the head for more.
    pub block: bool,
    /// Whether another broker may answer in this one's place.
    pub may_proxy: bool,
    /// Whether only the first metadata response is wanted.
    pub metadata_only: bool,
    /// Stored fragments modified before this are skipped; unix seconds, 0 skips none.
    pub begin_mod_time: i64,
    /// The key space must be read through this revision first.
    pub min_revision: i64,
}

impl ReadRequest {
    /// The read of a journal from an offset on, with nothing special.
    pub fn new(journal: impl Into<MetaJournal>, from: ReadFrom) -> Self {
        ReadRequest {
            header: None,
            journal: journal.into(),
            from,
            end: None,
            block: false,
            may_proxy: true,
            metadata_only: false,
            begin_mod_time: 0,
            min_revision: 0,
        }
    }
}

impl ReadFrom {
    fn from_wire(offset: i64) -> Result<Self, Invalid> {
        match at_least("Offset", offset, -1)? {
            -1 => Ok(ReadFrom::Head),
            offset => Offset::new(offset).map(ReadFrom::At),
        }
    }

    fn number(self) -> i64 {
        match self {
            ReadFrom::Head => -1,
            ReadFrom::At(offset) => offset.get(),
        }
    }
}

impl TryFrom<gazette::ReadRequest> for ReadRequest {
    type Error = Invalid;

    fn try_from(request: gazette::ReadRequest) -> Result<Self, Invalid> {
        let header = Header::optional(request.header)?;
        let journal = MetaJournal::new(&request.journal).at("Journal")?;
        let from = ReadFrom::from_wire(request.offset)?;
        let end = at_least("EndOffset", request.end_offset, 0)?;
        if end != 0 && end < request.offset {
            return Err(Invalid::new(format!(
                "invalid EndOffset ({end}; expected EndOffset >= Offset {})",
                request.offset
            )));
        }
        Ok(ReadRequest {
            header,
            journal,
            from,
            end: if end == 0 { None } else { Some(Offset::new(end)?) },
            block: request.block,
            may_proxy: !request.do_not_proxy,
            metadata_only: request.metadata_only,
            begin_mod_time: request.begin_mod_time,
            min_revision: request.min_etcd_revision,
        })
    }
}

impl From<ReadRequest> for gazette::ReadRequest {
    fn from(request: ReadRequest) -> Self {
        gazette::ReadRequest {
            header: request.header.map(Into::into),
            journal: request.journal.to_string(),
            offset: request.from.number(),
            block: request.block,
            do_not_proxy: !request.may_proxy,
            metadata_only: request.metadata_only,
            end_offset: request.end.map_or(0, Offset::get),
            begin_mod_time: request.begin_mod_time,
            min_etcd_revision: request.min_revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_checked() {
        let message = |journal: &str, offset, end_offset| gazette::ReadRequest {
            journal: journal.into(),
            offset,
            end_offset,
            ..Default::default()
        };
        let cases = [
            (message("foo/bar", 0, 0), None),
            (message("foo/bar;meta/x", -1, 0), None),
            (message("foo/bar", 5, 5), None),
            (message("foo/bar", -1, 5), None),
            (message("foo/bar/", 0, 0), Some("Journal: must be a clean path (foo/bar/)")),
            (
                message("foo/bar", -2, 0),
                Some("invalid Offset (-2; expected -1 <= Offset <= MaxInt64)"),
            ),
            (
                message("foo/bar", 0, -1),
                Some("invalid EndOffset (-1; expected 0 <= EndOffset <= MaxInt64)"),
            ),
            (
                message("foo/bar", 6, 5),
                Some("invalid EndOffset (5; expected EndOffset >= Offset 6)"),
            ),
            (
                gazette::ReadRequest {
                    header: Some(Default::default()),
                    ..message("foo/bar", 0, 0)
                },
                Some("Header.Route: invalid Primary (0; expected -1 <= Primary < 0)"),
            ),
        ];
        for (message, expected) in cases {
            match (ReadRequest::try_from(message.clone()), expected) {
                (Ok(request), None) => assert_eq!(gazette::ReadRequest::from(request), message),
                (found, expected) => {
                    assert_eq!(found.unwrap_err().to_string(), expected.unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn minus_one_is_the_head() {
        let journal: MetaJournal = "foo/bar".parse().expect("valid");
        let request = ReadRequest::new(journal, ReadFrom::Head);
        let message = gazette::ReadRequest::from(request.clone());
        assert_eq!((message.offset, message.do_not_proxy), (-1, false));
        assert_eq!(ReadRequest::try_from(message), Ok(request));
    }
}
