//! Read: metadata of a fragment, then content of it, and again.

use crate::invalid::{At, at_least, unset};
use crate::{Fragment, Header, Invalid, Offset, Status, wire::gazette};
use bytes::Bytes;

/// A message of a Read stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadResponse {
    Metadata(Box<ReadMetadata>),
    Content {
        /// Where `content` begins.
        offset: Offset,
        /// Never empty.
        content: Bytes,
    },
}

/// Where the read stands, and what covers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadMetadata {
    pub status: Status,
    /// Only in a stream's first message.
    pub header: Option<Header>,
    /// The offset that content goes on at: the one asked for, or a later one past a gap. 0 where
    /// the status speaks of no offset.
    pub offset: Offset,
    pub write_head: Offset,
    /// Covers `offset`; there exactly when content can follow.
    pub fragment: Option<Fragment>,
    /// Where the stored fragment can be fetched; empty while it is local.
    pub fragment_url: String,
}

impl ReadMetadata {
    /// The answer of a read that is not served.
    pub fn refusal(status: Status, header: Header) -> Self {
        ReadMetadata {
            status,
            header: Some(header),
            offset: Offset::ZERO,
            write_head: Offset::ZERO,
            fragment: None,
            fragment_url: String::new(),
        }
    }

    /// Whether a Gazette client would accept it.
    pub fn validate(&self) -> Result<(), Invalid> {
        match &self.fragment {
            Some(fragment) => self.check_fragment(fragment),
            None if self.status == Status::Ok && self.offset != Offset::ZERO => {
                Err(Invalid::new(format!("unexpected Offset without Fragment ({})", self.offset)))
            }
            None => unset("FragmentUrl without Fragment", self.fragment_url.is_empty()),
        }
    }

    fn check_fragment(&self, fragment: &Fragment) -> Result<(), Invalid> {
        if !fragment.span.contains(self.offset) {
            let (offset, span) = (self.offset, fragment.span);
            return Err(Invalid::new(format!("invalid Offset ({offset}; expected within {span})")));
        }
        if self.write_head < fragment.end() {
            let (head, end) = (self.write_head, fragment.end());
            return Err(Invalid::new(format!("invalid WriteHead ({head}; expected >= {end})")));
        }
        Ok(())
    }
}

impl TryFrom<gazette::ReadResponse> for ReadResponse {
    type Error = Invalid;

    fn try_from(response: gazette::ReadResponse) -> Result<Self, Invalid> {
        let status = Status::try_from(response.status).at("Status")?;
        let offset = Offset::new(response.offset)?;
        if !response.content.is_empty() {
            unset("Status with Content", status == Status::Ok)?;
            unset("Header with Content", response.header.is_none())?;
            unset("WriteHead with Content", response.write_head == 0)?;
            unset("Fragment with Content", response.fragment.is_none())?;
            unset("FragmentUrl with Content", response.fragment_url.is_empty())?;
            return Ok(ReadResponse::Content { offset, content: response.content });
        }
        let write_head = at_least("WriteHead", response.write_head, 0)?;
        let metadata = ReadMetadata {
            status,
            header: Header::optional(response.header)?,
            offset,
            write_head: Offset::new(write_head)?,
            fragment: Fragment::optional(response.fragment).at("Fragment")?,
            fragment_url: response.fragment_url,
        };
        metadata.validate()?;
        Ok(ReadResponse::Metadata(Box::new(metadata)))
    }
}

impl From<ReadResponse> for gazette::ReadResponse {
    fn from(response: ReadResponse) -> Self {
        match response {
            ReadResponse::Metadata(metadata) => (*metadata).into(),
            ReadResponse::Content { offset, content } => {
                gazette::ReadResponse { offset: offset.get(), content, ..Default::default() }
            }
        }
    }
}

impl From<ReadMetadata> for gazette::ReadResponse {
    fn from(metadata: ReadMetadata) -> Self {
        gazette::ReadResponse {
            status: metadata.status.number(),
            header: metadata.header.map(Into::into),
            offset: metadata.offset.get(),
            write_head: metadata.write_head.get(),
            fragment: metadata.fragment.map(Into::into),
            fragment_url: metadata.fragment_url,
            content: Bytes::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    type Edit = fn(&mut gazette::ReadResponse);

    fn check(base: &gazette::ReadResponse, cases: &[(Edit, Option<&str>)]) {
        for (edit, expected) in cases {
            let mut message = base.clone();
            edit(&mut message);
            match (ReadResponse::try_from(message.clone()), expected) {
                (Ok(response), None) => assert_eq!(gazette::ReadResponse::from(response), message),
                (found, expected) => {
                    assert_eq!(found.unwrap_err().to_string(), expected.unwrap_or_default());
                }
            }
        }
    }

    #[test]
    fn metadata_holds_together() {
        let fragment = gazette::Fragment {
            journal: "foo/bar".into(),
            begin: 5,
            end: 10,
            compression_codec: 1,
            sum: Some(Default::default()),
            ..Default::default()
        };
        let base = gazette::ReadResponse {
            offset: 5,
            write_head: 10,
            fragment: Some(fragment),
            fragment_url: "file:///x".into(),
            ..Default::default()
        };
        check(
            &base,
            &[
                (|_| (), None),
                (|r| r.offset = 9, None),
                (|r| r.offset = 10, Some("invalid Offset (10; expected within 5..10)")),
                (|r| r.offset = 4, Some("invalid Offset (4; expected within 5..10)")),
                (|r| r.write_head = 9, Some("invalid WriteHead (9; expected >= 10)")),
                (
                    |r| r.write_head = -1,
                    Some("invalid WriteHead (-1; expected 0 <= WriteHead <= MaxInt64)"),
                ),
                (|r| r.status = 99, Some("Status: invalid Status (99)")),
                (|r| r.fragment = None, Some("unexpected Offset without Fragment (5)")),
                (
                    |r| (r.fragment, r.offset) = (None, 0),
                    Some("unexpected FragmentUrl without Fragment"),
                ),
                // Case: at the head there is an offset and no fragment.
                (
                    |r| {
                        (r.status, r.offset) = (Status::OffsetNotYetAvailable.number(), 10);
                        (r.fragment, r.fragment_url) = (None, String::new());
                    },
                    None,
                ),
            ],
        );
    }

    #[test]
    fn content_comes_with_its_offset_alone() {
        let content = Bytes::from_static(b"hello");
        let base = gazette::ReadResponse { offset: 5, content, ..Default::default() };
        check(
            &base,
            &[
                (|_| (), None),
                (|r| r.status = 1, Some("unexpected Status with Content")),
                (|r| r.header = Some(Default::default()), Some("unexpected Header with Content")),
                (|r| r.write_head = 5, Some("unexpected WriteHead with Content")),
                (
                    |r| r.fragment = Some(Default::default()),
                    Some("unexpected Fragment with Content"),
                ),
                (|r| r.fragment_url = "x".into(), Some("unexpected FragmentUrl with Content")),
            ],
        );
    }
}
