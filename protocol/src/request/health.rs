//! FragmentStoreHealth: whether a store can be written.

use crate::alphabet::check_path;
use crate::invalid::{At, unset};
use crate::{Invalid, StoreUrl, wire::gazette};

/// `protocol.FragmentStoreHealthRequest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentStoreHealthRequest {
    pub store: StoreUrl,
    /// Whether to try a deletion too, and below which prefix: empty, or ending in `/`.
    pub check_delete: Option<String>,
}

impl TryFrom<gazette::FragmentStoreHealthRequest> for FragmentStoreHealthRequest {
    type Error = Invalid;

    fn try_from(request: gazette::FragmentStoreHealthRequest) -> Result<Self, Invalid> {
        let store = StoreUrl::parse(&request.fragment_store).at("FragmentStore")?;
        let prefix = request.check_delete_prefix;
        if !request.check_delete {
            unset("CheckDeletePrefix", prefix.is_empty())?;
        }
        check_prefix(&prefix).at("CheckDeletePrefix")?;
        Ok(FragmentStoreHealthRequest {
            store,
            check_delete: request.check_delete.then_some(prefix),
        })
    }
}

fn check_prefix(prefix: &str) -> Result<(), Invalid> {
    if prefix.is_empty() {
        return Ok(());
    }
    let Some(path) = prefix.strip_suffix('/') else {
        return Err(Invalid::new(format!("must end in '/' ({prefix})")));
    };
    check_path(path, 1, 512)
}

impl From<FragmentStoreHealthRequest> for gazette::FragmentStoreHealthRequest {
    fn from(request: FragmentStoreHealthRequest) -> Self {
        gazette::FragmentStoreHealthRequest {
            fragment_store: request.store.to_string(),
            check_delete: request.check_delete.is_some(),
            check_delete_prefix: request.check_delete.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked() {
        let message =
            |store: &str, check_delete, prefix: &str| gazette::FragmentStoreHealthRequest {
                fragment_store: store.into(),
                check_delete,
                check_delete_prefix: prefix.into(),
            };
        let cases = [
            (message("file:///", false, ""), None),
            (message("file:///", true, ""), None),
            (message("file:///", true, "foo/bar/"), None),
            (
                message("file:///x", false, ""),
                Some("FragmentStore: path component doesn't end in '/' (/x)"),
            ),
            (message("file:///", false, "foo/"), Some("unexpected CheckDeletePrefix")),
            (message("file:///", true, "foo"), Some("CheckDeletePrefix: must end in '/' (foo)")),
            (
                message("file:///", true, "../foo/"),
                Some("CheckDeletePrefix: must not lead out of its directory (../foo)"),
            ),
            (
                message("file:///", true, "/"),
                Some("CheckDeletePrefix: invalid length (0; expected 1 <= length <= 512)"),
            ),
        ];
        for (message, expected) in cases {
            match (FragmentStoreHealthRequest::try_from(message.clone()), expected) {
                (Ok(request), None) => {
                    assert_eq!(gazette::FragmentStoreHealthRequest::from(request), message);
                }
                (found, expected) => {
                    assert_eq!(found.unwrap_err().to_string(), expected.unwrap_or_default());
                }
            }
        }
    }
}
