//! ListFragments: what a journal's index holds.

use crate::invalid::{At, at_least, bounded};
use crate::{Header, Invalid, MetaJournal, Offset, duration, wire::gazette};
use std::time::Duration;

/// Fragments of an answer when the request does not say.
pub const PAGE_LIMIT_DEFAULT: usize = 1000;
/// The most a request can ask for (gazette-spec 1.4).
pub const PAGE_LIMIT_MAX: i32 = 10_000;

/// `protocol.FragmentsRequest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentsRequest {
    /// Set by a broker that passes the request on.
    pub header: Option<Header>,
    pub journal: MetaJournal,
    /// Stored fragments modified before this are left out; unix seconds.
    pub begin_mod_time: i64,
    /// Local fragments and those modified later than this are left out; `None` keeps all.
    pub end_mod_time: Option<i64>,
    /// Fragments that begin below are left out: the last answer's `next_page_token`.
    pub next_page_token: Offset,
    /// Fragments of one answer; `None` for the default.
    pub page_limit: Option<usize>,
    /// How long signed URLs shall work; `None` asks for no such URLs.
    pub signature_ttl: Option<Duration>,
    /// Whether another broker may answer in this one's place.
    pub may_proxy: bool,
}

impl FragmentsRequest {
    /// All fragments of a journal, a page at a time.
    pub fn new(journal: impl Into<MetaJournal>) -> Self {
        FragmentsRequest {
            header: None,
            journal: journal.into(),
            begin_mod_time: 0,
            end_mod_time: None,
            next_page_token: Offset::ZERO,
            page_limit: None,
            signature_ttl: None,
            may_proxy: true,
        }
    }

    /// The most fragments that one answer may hold.
    pub fn page_len(&self) -> usize {
        self.page_limit.unwrap_or(PAGE_LIMIT_DEFAULT)
    }
}

impl TryFrom<gazette::FragmentsRequest> for FragmentsRequest {
    type Error = Invalid;

    fn try_from(request: gazette::FragmentsRequest) -> Result<Self, Invalid> {
        let header = Header::optional(request.header)?;
        let journal = MetaJournal::new(&request.journal).at("Journal")?;
        let (begin, end) = (request.begin_mod_time, request.end_mod_time);
        if end != 0 && end < begin {
            return Err(Invalid::new(format!(
                "invalid EndModTime ({end}; expected 0 or >= BeginModTime {begin})"
            )));
        }
        let token = at_least("NextPageToken", request.next_page_token, 0)?;
        let limit = bounded("PageLimit", request.page_limit, 0, PAGE_LIMIT_MAX)?;
        let limit = usize::try_from(limit).expect("bounded above zero");
        Ok(FragmentsRequest {
            header,
            journal,
            begin_mod_time: begin,
            end_mod_time: (end != 0).then_some(end),
            next_page_token: Offset::new(token)?,
            page_limit: (limit != 0).then_some(limit),
            signature_ttl: request.signature_ttl.map(signature_ttl).transpose()?,
            may_proxy: !request.do_not_proxy,
        })
    }
}

fn signature_ttl(ttl: prost_types::Duration) -> Result<Duration, Invalid> {
    match duration::from_wire(Some(ttl)) {
        Ok(ttl) if !ttl.is_zero() => Ok(ttl),
        _ => Err(Invalid::new(format!("invalid SignatureTTL ({}s; expected > 0s)", ttl.seconds))),
    }
}

impl From<FragmentsRequest> for gazette::FragmentsRequest {
    fn from(request: FragmentsRequest) -> Self {
        let limit = request.page_limit.map(|limit| i32::try_from(limit).unwrap_or(PAGE_LIMIT_MAX));
        gazette::FragmentsRequest {
            header: request.header.map(Into::into),
            journal: request.journal.to_string(),
            begin_mod_time: request.begin_mod_time,
            end_mod_time: request.end_mod_time.unwrap_or_default(),
            next_page_token: request.next_page_token.get(),
            page_limit: limit.unwrap_or_default(),
            signature_ttl: request.signature_ttl.map(duration::to_wire),
            do_not_proxy: !request.may_proxy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked() {
        type Edit = fn(&mut gazette::FragmentsRequest);
        let ttl = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let cases: [(Edit, Option<&str>); 10] = [
            (|_| (), None),
            (|r| (r.begin_mod_time, r.end_mod_time) = (5, 5), None),
            (|r| (r.page_limit, r.next_page_token) = (10_000, 7), None),
            (|r| (r.journal, r.do_not_proxy) = ("foo/bar;x".into(), true), None),
            (
                |r| (r.begin_mod_time, r.end_mod_time) = (5, 4),
                Some("invalid EndModTime (4; expected 0 or >= BeginModTime 5)"),
            ),
            (
                |r| r.next_page_token = -1,
                Some("invalid NextPageToken (-1; expected 0 <= NextPageToken <= MaxInt64)"),
            ),
            (
                |r| r.page_limit = 10_001,
                Some("invalid PageLimit (10001; expected 0 <= PageLimit <= 10000)"),
            ),
            (
                |r| r.page_limit = -1,
                Some("invalid PageLimit (-1; expected 0 <= PageLimit <= 10000)"),
            ),
            (
                |r| r.signature_ttl = Some(Default::default()),
                Some("invalid SignatureTTL (0s; expected > 0s)"),
            ),
            (
                |r| r.journal = "foo".into(),
                Some("Journal: invalid length (3; expected 4 <= length <= 512)"),
            ),
        ];
        for (edit, expected) in cases {
            let mut message = gazette::FragmentsRequest {
                journal: "foo/bar".into(),
                signature_ttl: ttl(60),
                ..Default::default()
            };
            edit(&mut message);
            match (FragmentsRequest::try_from(message.clone()), expected) {
                (Ok(request), None) => {
                    assert_eq!(gazette::FragmentsRequest::from(request), message);
                }
                (found, expected) => {
                    assert_eq!(found.unwrap_err().to_string(), expected.unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn a_page_has_a_thousand_unless_told() {
        let request = FragmentsRequest::new("foo/bar".parse::<MetaJournal>().expect("valid"));
        assert_eq!(request.page_len(), 1000);
        assert_eq!(FragmentsRequest { page_limit: Some(7), ..request }.page_len(), 7);
    }
}
