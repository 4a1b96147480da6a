//! A stored or growing span of a journal, with what identifies its content.

use crate::alphabet::check_path;
use crate::invalid::At;
use crate::{Codec, Invalid, Journal, Offset, Span, Sum, wire::gazette};

/// The longest path postfix, in bytes (gazette-spec 1.4).
pub const POSTFIX_LEN_MAX: usize = 512;

/// A contiguous span of a journal and the sum of its bytes (`protocol.Fragment`).
///
/// Two fragments are the same content when journal, span and sum agree; where they are kept and how
/// they are compressed does not matter: see [`same_content`](Fragment::same_content).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    pub journal: Journal,
    pub span: Span,
    /// SHA1 of the uncompressed bytes; zero while the span is empty.
    pub sum: Sum,
    pub codec: Codec,
    /// The store's URL as the spec gives it; empty while the fragment is only local.
    pub backing_store: String,
    /// Last modification in the store, in unix seconds; 0 while only local.
    pub mod_time: i64,
    /// Path between journal and name, from the spec's postfix template; often empty.
    pub path_postfix: String,
}

impl Fragment {
    /// A fragment that is only local.
    pub fn local(journal: Journal, span: Span, sum: Sum, codec: Codec) -> Self {
        let (backing_store, path_postfix) = (String::new(), String::new());
        Fragment { journal, span, sum, codec, backing_store, mod_time: 0, path_postfix }
    }

    /// Whether the fragment lies in a store, as opposed to only in local files.
    pub fn is_persisted(&self) -> bool {
        self.mod_time != 0
    }

    /// Whether both are the same bytes of the same journal.
    pub fn same_content(&self, other: &Fragment) -> bool {
        self.journal == other.journal && self.span == other.span && self.sum == other.sum
    }

    pub fn begin(&self) -> Offset {
        self.span.begin()
    }

    pub fn end(&self) -> Offset {
        self.span.end()
    }

    /// A fragment that may be absent.
    pub(crate) fn optional(fragment: Option<gazette::Fragment>) -> Result<Option<Self>, Invalid> {
        fragment.map(Fragment::try_from).transpose()
    }
}

impl std::fmt::Display for Fragment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.journal, self.span, self.sum)
    }
}

impl TryFrom<gazette::Fragment> for Fragment {
    type Error = Invalid;

    fn try_from(fragment: gazette::Fragment) -> Result<Self, Invalid> {
        let journal = Journal::new(&fragment.journal).at("Journal")?;
        let begin = Offset::new(fragment.begin).at("Begin")?;
        let end = Offset::new(fragment.end).at("End")?;
        let codec = Codec::try_from(fragment.compression_codec).at("CompressionCodec")?;
        if !fragment.path_postfix.is_empty() {
            check_path(&fragment.path_postfix, 1, POSTFIX_LEN_MAX).at("PathPostfix")?;
        }
        Ok(Fragment {
            journal,
            span: Span::new(begin, end)?,
            sum: fragment.sum.unwrap_or_default().into(),
            codec,
            backing_store: fragment.backing_store,
            mod_time: fragment.mod_time,
            path_postfix: fragment.path_postfix,
        })
    }
}

impl From<Fragment> for gazette::Fragment {
    fn from(fragment: Fragment) -> Self {
        gazette::Fragment {
            journal: fragment.journal.as_str().to_string(),
            begin: fragment.begin().get(),
            end: fragment.end().get(),
            sum: Some(fragment.sum.into()),
            compression_codec: fragment.codec.number(),
            backing_store: fragment.backing_store,
            mod_time: fragment.mod_time,
            path_postfix: fragment.path_postfix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> gazette::Fragment {
        gazette::Fragment {
            journal: "foo/bar".into(),
            begin: 5,
            end: 10,
            compression_codec: 2,
            path_postfix: "date=2026-01-02".into(),
            ..Default::default()
        }
    }

    #[test]
    fn fragments_are_checked() {
        type Edit = fn(&mut gazette::Fragment);
        let cases: [(Edit, Option<&str>); 8] = [
            (|_| (), None),
            (|f| f.end = 5, None),
            (
                |f| f.journal = "bar".into(),
                Some("Journal: invalid length (3; expected 4 <= length <= 512)"),
            ),
            // Case: fragments never carry the suffix of a request.
            (|f| f.journal = "foo/bar;x".into(), Some("Journal: not a valid path (foo/bar;x)")),
            (|f| f.end = 4, Some("invalid span (begin 5 > end 4)")),
            (
                |f| f.begin = -1,
                Some("Begin: invalid Offset (-1; expected 0 <= Offset <= MaxInt64)"),
            ),
            // Case: not even an empty proposal goes without a codec.
            (|f| f.compression_codec = 0, Some("CompressionCodec: invalid CompressionCodec (0)")),
            (|f| f.path_postfix = "a//b".into(), Some("PathPostfix: must be a clean path (a//b)")),
        ];
        for (edit, expected) in cases {
            let mut message = message();
            edit(&mut message);
            let found = Fragment::try_from(message).err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected);
        }
    }

    #[test]
    fn content_is_equal_wherever_it_is_kept() {
        let one = Fragment::try_from(message()).expect("valid");
        let stored = Fragment {
            codec: Codec::Snappy,
            backing_store: "file:///".into(),
            mod_time: 7,
            path_postfix: String::new(),
            ..one.clone()
        };
        assert!(one.same_content(&stored) && one != stored);
        assert!(stored.is_persisted() && !one.is_persisted());
        let other = Fragment { sum: Sum::new([1; 20]), ..one.clone() };
        assert!(!one.same_content(&other));
    }
}
