//! The URL of a fragment store, as a spec names it.

use crate::{Invalid, url};

/// Where a store is, by the scheme of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    S3,
    Gs,
    Azure,
    AzureAd,
    File,
}

impl Scheme {
    pub const ALL: [Scheme; 5] =
        [Scheme::S3, Scheme::Gs, Scheme::Azure, Scheme::AzureAd, Scheme::File];

    pub const fn name(self) -> &'static str {
        match self {
            Scheme::S3 => "s3",
            Scheme::Gs => "gs",
            Scheme::Azure => "azure",
            Scheme::AzureAd => "azure-ad",
            Scheme::File => "file",
        }
    }
}

/// A store's URL, valid by gazette-spec 1.4: `scheme://host/path/?arguments`.
///
/// The whole text is the store's identity: the same bucket with other arguments is another store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreUrl {
    text: String,
    scheme: Scheme,
    host: String,
    path: String,
    query: String,
}

impl StoreUrl {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let url = url::split(text)?;
        let refused = |why: String| Err(Invalid::new(why));
        let scheme = Scheme::ALL.into_iter().find(|scheme| scheme.name() == url.scheme);
        let Some(scheme) = scheme else {
            return refused(format!("invalid scheme ({})", url.scheme));
        };
        match (scheme, url.host.is_empty()) {
            (Scheme::File, false) => {
                return refused(format!("file scheme cannot have host ({text})"));
            }
            (Scheme::S3 | Scheme::Gs | Scheme::Azure, true) => {
                return refused(format!("missing bucket ({text})"));
            }
            (Scheme::AzureAd, true) => return refused(format!("missing tenant ({text})")),
            (Scheme::File, true) | (_, false) => {}
        }
        if scheme == Scheme::AzureAd && !names_account_and_container(url.path) {
            return refused(format!("missing storage account or container ({text})"));
        }
        if !url.path.starts_with('/') || !url.path.ends_with('/') {
            return refused(format!("path component doesn't end in '/' ({})", url.path));
        }
        if url.path.split('/').any(|part| part == "..") {
            return refused(format!("path component must not traverse upward ({})", url.path));
        }
        Ok(StoreUrl {
            text: text.to_string(),
            scheme,
            host: url.host.to_string(),
            path: url.path.to_string(),
            query: url.query.to_string(),
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Bucket, container or tenant; empty for files.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// From the first `/` to the last, both included.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The arguments, still escaped, without the `?`.
    pub fn query(&self) -> &str {
        &self.query
    }
}

fn names_account_and_container(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_start_matches('/').splitn(3, '/').collect();
    matches!(parts[..], [account, container, _] if !account.is_empty() && !container.is_empty())
}

impl std::str::FromStr for StoreUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        StoreUrl::parse(text)
    }
}

impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_have_a_known_scheme_a_host_that_fits_and_a_directory() {
        let cases = [
            ("file:///", None),
            ("file:///sub/dir/?find=a&replace=b", None),
            ("s3://bucket/pre/fix/", None),
            ("gs://bucket/", None),
            ("azure://container/prefix/", None),
            ("azure-ad://tenant/account/container/prefix/", None),
            ("azure-ad://tenant/account/container/", None),
            ("bucket/", Some("not absolute: bucket/")),
            ("http://bucket/", Some("invalid scheme (http)")),
            ("file://host/x/", Some("file scheme cannot have host (file://host/x/)")),
            ("s3:///x/", Some("missing bucket (s3:///x/)")),
            ("gs:///x/", Some("missing bucket (gs:///x/)")),
            ("azure:///x/", Some("missing bucket (azure:///x/)")),
            ("azure-ad:///a/c/", Some("missing tenant (azure-ad:///a/c/)")),
            (
                "azure-ad://t/account/",
                Some("missing storage account or container (azure-ad://t/account/)"),
            ),
            ("s3://bucket", Some("path component doesn't end in '/' ()")),
            ("s3://bucket/x", Some("path component doesn't end in '/' (/x)")),
            ("file:///a/../../", Some("path component must not traverse upward (/a/../../)")),
        ];
        for (text, expected) in cases {
            let found = StoreUrl::parse(text).err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn parts_are_kept_as_written() {
        let url = StoreUrl::parse("s3://bucket/pre/?region=eu%2D1").expect("valid");
        assert_eq!((url.scheme(), url.host()), (Scheme::S3, "bucket"));
        assert_eq!((url.path(), url.query()), ("/pre/", "region=eu%2D1"));
        assert_eq!(url.to_string(), "s3://bucket/pre/?region=eu%2D1");
    }
}
