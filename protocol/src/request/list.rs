//! List: the journals that a selector means.

use crate::invalid::At;
use crate::{Header, Invalid, Selector, wire::gazette};

/// `protocol.ListRequest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRequest {
    /// Without the legacy label `prefix`, which is rewritten as it comes in.
    pub selector: Selector,
    /// Whether to answer again after each change, for ever.
    pub watch: bool,
    /// The header of the last answer the caller has; the next one waits for a later revision.
    pub watch_resume: Option<Header>,
}

impl TryFrom<gazette::ListRequest> for ListRequest {
    type Error = Invalid;

    fn try_from(request: gazette::ListRequest) -> Result<Self, Invalid> {
        let selector = Selector::try_from(request.selector.unwrap_or_default()).at("Selector")?;
        selector.check_legacy_prefix().at("Selector")?;
        let resume = request.watch_resume.map(Header::try_from).transpose().at("WatchResume")?;
        Ok(ListRequest {
            selector: selector.without_legacy_prefix(),
            watch: request.watch,
            watch_resume: resume,
        })
    }
}

impl From<ListRequest> for gazette::ListRequest {
    fn from(request: ListRequest) -> Self {
        gazette::ListRequest {
            selector: Some(request.selector.into()),
            watch: request.watch,
            watch_resume: request.watch_resume.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> gazette::ListRequest {
        let selector: Selector = text.parse().expect(text);
        gazette::ListRequest { selector: Some(selector.into()), ..Default::default() }
    }

    #[test]
    fn the_legacy_prefix_is_checked_and_rewritten() {
        let request = ListRequest::try_from(message("prefix=foo/")).expect("valid");
        assert_eq!(request.selector.to_string(), "name:prefix=foo/");
        assert_eq!(
            ListRequest::try_from(message("prefix=foo")).unwrap_err().to_string(),
            "Selector.Include: prefix must end in '/' (foo)"
        );
    }

    #[test]
    fn no_selector_means_everything() {
        let request = ListRequest::try_from(gazette::ListRequest::default()).expect("valid");
        assert_eq!(request.selector, Selector::default());
        assert_eq!((request.watch, request.watch_resume), (false, None));
    }

    #[test]
    fn the_header_to_resume_from_is_checked() {
        let resume = Some(gazette::Header::default());
        let invalid =
            ListRequest::try_from(gazette::ListRequest { watch_resume: resume, ..message("") })
                .unwrap_err();
        assert_eq!(invalid.path(), "WatchResume.Route");
    }
}
