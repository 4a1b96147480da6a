//! Replicate: what a primary asks its replicas to agree to.

use crate::invalid::{At, at_least, unset};
use crate::{Fragment, Header, Invalid, LabelSet, wire::gazette};
use bytes::Bytes;

/// A message of a Replicate stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicateRequest {
    Proposal(Box<Proposal>),
    /// More content, not committed until a proposal says so.
    Content {
        /// Never empty.
        content: Bytes,
        /// Bytes of content since the last proposal, before this.
        delta: i64,
    },
}

/// What the replica's fragment and registers shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The route that the pipeline goes by; only in the first message, which is acknowledged.
    pub header: Option<Header>,
    pub fragment: Fragment,
    pub registers: LabelSet,
    /// Whether the replica shall answer.
    pub acknowledge: bool,
}

impl TryFrom<gazette::ReplicateRequest> for ReplicateRequest {
    type Error = Invalid;

    fn try_from(request: gazette::ReplicateRequest) -> Result<Self, Invalid> {
        match request.proposal {
            Some(_) => Proposal::try_from(request).map(Box::new).map(ReplicateRequest::Proposal),
            None => content(request),
        }
    }
}

impl TryFrom<gazette::ReplicateRequest> for Proposal {
    type Error = Invalid;

    fn try_from(request: gazette::ReplicateRequest) -> Result<Self, Invalid> {
        let header = Header::optional(request.header)?;
        if header.is_some() && !request.acknowledge {
            return Err(Invalid::new("expected Acknowledge with Header"));
        }
        let proposal = request.proposal.ok_or_else(|| Invalid::new("expected Proposal"))?;
        let fragment = Fragment::try_from(proposal).at("Proposal")?;
        let journal = request.deprecated_journal;
        if !journal.is_empty() && journal != fragment.journal.as_str() {
            return Err(Invalid::new(format!(
                "DeprecatedJournal and Proposal.Journal mismatch ({journal} vs {})",
                fragment.journal
            )));
        }
        unset("Content", request.content.is_empty())?;
        unset("ContentDelta", request.content_delta == 0)?;
        // Older primaries leave the registers out.
        let registers = request.registers.unwrap_or_default().try_into().at("Registers")?;
        Ok(Proposal { header, fragment, registers, acknowledge: request.acknowledge })
    }
}

fn content(request: gazette::ReplicateRequest) -> Result<ReplicateRequest, Invalid> {
    unset("Header", request.header.is_none())?;
    unset("DeprecatedJournal", request.deprecated_journal.is_empty())?;
    unset("Acknowledge", !request.acknowledge)?;
    unset("Registers", request.registers.is_none())?;
    if request.content.is_empty() {
        return Err(Invalid::new("expected Content or Proposal"));
    }
    let delta = at_least("ContentDelta", request.content_delta, 0)?;
    Ok(ReplicateRequest::Content { content: request.content, delta })
}

impl From<ReplicateRequest> for gazette::ReplicateRequest {
    fn from(request: ReplicateRequest) -> Self {
        match request {
            ReplicateRequest::Proposal(proposal) => (*proposal).into(),
            ReplicateRequest::Content { content, delta } => {
                gazette::ReplicateRequest { content, content_delta: delta, ..Default::default() }
            }
        }
    }
}

impl From<Proposal> for gazette::ReplicateRequest {
    /// The journal is said twice in a stream's first message, for older replicas.
    fn from(proposal: Proposal) -> Self {
        let journal = proposal.header.as_ref().map(|_| proposal.fragment.journal.to_string());
        gazette::ReplicateRequest {
            header: proposal.header.map(Into::into),
            deprecated_journal: journal.unwrap_or_default(),
            proposal: Some(proposal.fragment.into()),
            acknowledge: proposal.acknowledge,
            registers: Some(proposal.registers.into()),
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    type Edit = fn(&mut gazette::ReplicateRequest);

    fn check(base: &gazette::ReplicateRequest, cases: &[(Edit, Option<&str>)]) {
        for (edit, expected) in cases {
            let mut message = base.clone();
            edit(&mut message);
            let found = ReplicateRequest::try_from(message).err();
            assert_eq!(found.map(|invalid| invalid.to_string()).as_deref(), *expected);
        }
    }

    #[test]
    fn proposals_are_checked() {
        let fragment = gazette::Fragment {
            journal: "foo/bar".into(),
            compression_codec: 1,
            sum: Some(Default::default()),
            ..Default::default()
        };
        let base = gazette::ReplicateRequest {
            proposal: Some(fragment),
            registers: Some(Default::default()),
            acknowledge: true,
            ..Default::default()
        };
        let request = ReplicateRequest::try_from(base.clone()).expect("valid");
        assert_eq!(gazette::ReplicateRequest::from(request), base);
        check(
            &base,
            &[
                (|r| r.registers = None, None),
                (|r| r.acknowledge = false, None),
                (|r| r.deprecated_journal = "foo/bar".into(), None),
                (
                    |r| r.deprecated_journal = "foo/baz".into(),
                    Some("DeprecatedJournal and Proposal.Journal mismatch (foo/baz vs foo/bar)"),
                ),
                (|r| r.content = Bytes::from_static(b"x"), Some("unexpected Content")),
                (|r| r.content_delta = 1, Some("unexpected ContentDelta")),
                (
                    |r| r.proposal = Some(Default::default()),
                    Some("Proposal.Journal: invalid length (0; expected 4 <= length <= 512)"),
                ),
            ],
        );
    }

    #[test]
    fn content_comes_alone() {
        let base = gazette::ReplicateRequest {
            content: Bytes::from_static(b"x"),
            content_delta: 5,
            ..Default::default()
        };
        let request = ReplicateRequest::try_from(base.clone()).expect("valid");
        assert_eq!(gazette::ReplicateRequest::from(request), base);
        check(
            &base,
            &[
                (|r| r.content.clear(), Some("expected Content or Proposal")),
                (|r| r.header = Some(Default::default()), Some("unexpected Header")),
                (|r| r.deprecated_journal = "foo/bar".into(), Some("unexpected DeprecatedJournal")),
                (|r| r.acknowledge = true, Some("unexpected Acknowledge")),
                (|r| r.registers = Some(Default::default()), Some("unexpected Registers")),
                (
                    |r| r.content_delta = -1,
                    Some("invalid ContentDelta (-1; expected 0 <= ContentDelta <= MaxInt64)"),
                ),
            ],
        );
    }
}
