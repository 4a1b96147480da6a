//! The URL of a fragment store: where it is, and how paths are rewritten on the way (gazette-spec
//! 1.4 and 3.8).

use super::StoreError;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::collections::BTreeMap;
use url::Url;

/// What would be read as something else in the path of a URL.
const PATH_ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    File,
    S3,
    Gs,
    Azure,
    AzureAd,
}

impl Scheme {
    const ALL: [Scheme; 5] = [Scheme::File, Scheme::S3, Scheme::Gs, Scheme::Azure, Scheme::AzureAd];

    pub fn name(self) -> &'static str {
        match self {
            Scheme::File => "file",
            Scheme::S3 => "s3",
            Scheme::Gs => "gs",
            Scheme::Azure => "azure",
            Scheme::AzureAd => "azure-ad",
        }
    }

    /// The arguments that the scheme knows beside `find` and `replace`.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Scheme::S3 => {
                &["profile", "endpoint", "region", "acl", "storageclass", "sse", "ssekmskeyid"]
            }
            Scheme::File | Scheme::Gs | Scheme::Azure | Scheme::AzureAd => &[],
        }
    }
}

/// A valid store URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreUrl {
    /// Exactly as it was given.
    pub text: String,
    pub scheme: Scheme,
    /// Bucket, container or tenant; empty for files.
    pub host: String,
    /// The path without its first slash, percent-decoded: empty, or ending in a slash.
    pub prefix: String,
    find: String,
    replace: String,
    /// The arguments that only the scheme knows, by their names in lower case.
    arguments: BTreeMap<String, String>,
}

impl StoreUrl {
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let invalid = |reason: String| StoreError::Url { url: text.to_owned(), reason };
        let url = Url::parse(text).map_err(|error| invalid(error.to_string()))?;
        let scheme = Scheme::ALL
            .into_iter()
            .find(|scheme| scheme.name() == url.scheme())
            .ok_or_else(|| invalid(format!("unknown scheme {}", url.scheme())))?;
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        match (scheme, has_host) {
            (Scheme::File, true) => return Err(invalid("a file store has no host".into())),
            (Scheme::File, false) | (_, true) => {}
            (_, false) => return Err(invalid("it names no bucket".into())),
        }
        if !url.path().ends_with('/') {
            return Err(invalid("its path must end in '/'".into()));
        }
        let path = percent_decode_str(url.path())
            .decode_utf8()
            .map_err(|error| invalid(error.to_string()))?;
        // An escaped slash hides dots from the URL's own clean-up.
        if path.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(invalid("its path must be clean".into()));
        }
        let mut arguments = arguments(&url, scheme).map_err(invalid)?;
        let prefix = path.strip_prefix('/').unwrap_or(&path).to_owned();
        Ok(StoreUrl {
            text: text.to_owned(),
            scheme,
            host: url.host_str().unwrap_or_default().to_owned(),
            prefix,
            find: arguments.remove("find").unwrap_or_default(),
            replace: arguments.remove("replace").unwrap_or_default(),
            arguments,
        })
    }

    /// The value of an argument of the scheme; an empty one is as if it was not given.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Account and container of an `azure-ad` store.
    pub fn account_and_container(&self) -> Option<(&str, &str)> {
        let mut parts = self.prefix.split('/');
        let (account, container) = (parts.next()?, parts.next()?);
        (!account.is_empty() && !container.is_empty()).then_some((account, container))
    }

    /// What each key of the store begins with. A file store's objects are keyed below its own
    /// directory.
    pub fn key_prefix(&self) -> &str {
        match self.scheme {
            Scheme::File => "",
            Scheme::S3 | Scheme::Gs | Scheme::Azure => &self.prefix,
            // The first two segments are the account and the container.
            Scheme::AzureAd => self.prefix.splitn(3, '/').nth(2).unwrap_or(""),
        }
    }

    /// `path` with the first `find` replaced.
    pub fn rewrite(&self, path: &str) -> String {
        if self.find.is_empty() {
            path.to_owned()
        } else {
            path.replacen(&self.find, &self.replace, 1)
        }
    }

    /// The path that is rewritten to `path`; `None` where no such is found.
    pub fn restore(&self, path: &str) -> Option<String> {
        let restored = match self.replace.is_empty() {
            true => None,
            false => Some(path.replacen(&self.replace, &self.find, 1)),
        };
        let mut candidates = restored.into_iter().chain([path.to_owned()]);
        candidates.find(|candidate| self.rewrite(candidate) == path)
    }

    /// The URL of an object of a file store, without the root that the store's process knows.
    pub fn file_url(&self, path: &str) -> String {
        let path = format!("{}{}", self.prefix, self.rewrite(path));
        format!("file:///{}", utf8_percent_encode(&path, PATH_ESCAPED))
    }
}

/// All arguments. Names are of either case, and unknown ones an error.
fn arguments(url: &Url, scheme: Scheme) -> Result<BTreeMap<String, String>, String> {
    let mut arguments = BTreeMap::new();
    for (name, value) in url.query_pairs() {
        let name = name.to_ascii_lowercase();
        let is_known = matches!(name.as_str(), "find" | "replace")
            || scheme.arguments().contains(&name.as_str());
        if !is_known {
            return Err(format!("unknown argument {name}"));
        }
        if arguments.insert(name.clone(), value.into_owned()).is_some() {
            return Err(format!("argument {name} is given twice"));
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_urls() {
        let cases = [
            ("file:///", Scheme::File, "", ""),
            ("file:///sub/dir/", Scheme::File, "sub/dir/", ""),
            ("file:///with%20space/", Scheme::File, "with space/", ""),
            ("s3://bucket/", Scheme::S3, "", ""),
            ("s3://bucket/pre/fix/?Region=x&ENDPOINT=y", Scheme::S3, "pre/fix/", "pre/fix/"),
            ("gs://bucket/a/", Scheme::Gs, "a/", "a/"),
            ("azure://container/a/", Scheme::Azure, "a/", "a/"),
            (
                "azure-ad://tenant/account/container/a/",
                Scheme::AzureAd,
                "account/container/a/",
                "a/",
            ),
        ];
        for (text, scheme, prefix, key_prefix) in cases {
            let url = StoreUrl::parse(text).unwrap();
            assert_eq!((url.scheme, &*url.prefix), (scheme, prefix), "{text}");
            assert_eq!(url.key_prefix(), key_prefix, "{text}");
            assert_eq!(url.text, text);
        }
    }

    #[test]
    fn invalid_urls() {
        let cases = [
            // Case: not absolute, unknown scheme.
            ("/a/path/", "relative URL"),
            ("http://host/", "unknown scheme http"),
            // Case: a host where none may be, and none where one must be.
            ("file://host/path/", "no host"),
            ("s3:///prefix/", "no bucket"),
            // Case: no slash at the end.
            ("file:///path", "must end in '/'"),
            ("s3://bucket", "must end in '/'"),
            // Case: a path that leads out of the file root.
            ("file:///a%2F..%2F..%2Fb/", "must be clean"),
            // Case: arguments.
            ("file:///?frob=1", "unknown argument frob"),
            ("file:///?region=x", "unknown argument region"),
            ("gs://bucket/?acl=x", "unknown argument acl"),
            ("file:///?find=a&FIND=b", "given twice"),
            ("s3://bucket/?region=a&Region=b", "given twice"),
        ];
        for (text, expected) in cases {
            let error = StoreUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(text), "{text}: {error}");
        }
    }

    #[test]
    fn arguments_of_a_scheme() {
        let url = StoreUrl::parse("s3://bucket/a/?Profile=p&region=&find=x&ACL=private").unwrap();
        assert_eq!((url.host.as_str(), url.argument("profile")), ("bucket", Some("p")));
        assert_eq!(url.argument("acl"), Some("private"));
        // Case: empty, absent, and those that are no business of the scheme.
        for name in ["region", "endpoint", "find"] {
            assert_eq!(url.argument(name), None, "{name}");
        }
        let url = StoreUrl::parse("azure-ad://tenant/account/container/a/").unwrap();
        assert_eq!(url.account_and_container(), Some(("account", "container")));
    }

    #[test]
    fn the_first_find_is_replaced() {
        let cases = [
            ("file:///", "a/b/a/b", "a/b/a/b"),
            ("file:///?find=a/b&replace=x", "a/b/a/b", "x/a/b"),
            ("file:///?FIND=b&Replace=", "a/b/a/b", "a//a/b"),
            ("file:///?find=none&replace=x", "a/b", "a/b"),
            // Case: no find means no rewriting.
            ("file:///?replace=x", "a/b", "a/b"),
            ("file:///?find=%2Fb%2F&replace=%2Fc+d%2F", "a/b/e", "a/c d/e"),
        ];
        for (text, path, expected) in cases {
            assert_eq!(StoreUrl::parse(text).unwrap().rewrite(path), expected, "{text}");
        }
    }

    #[test]
    fn a_rewritten_path_is_restored_where_that_leads_back() {
        let cases = [
            ("file:///", "a/b", Some("a/b")),
            ("file:///?find=a/&replace=x/", "x/b", Some("a/b")),
            // Case: not a path that was rewritten.
            ("file:///?find=a/&replace=x/", "c/d", Some("c/d")),
            // Case: no path leads there.
            ("file:///?find=a/&replace=x/", "a/b", None),
            // Case: what was left out can't be known; what had nothing to leave out can.
            ("file:///?find=a/&replace=", "b/c", Some("b/c")),
        ];
        for (text, path, expected) in cases {
            let url = StoreUrl::parse(text).unwrap();
            assert_eq!(url.restore(path).as_deref(), expected, "{text} {path}");
        }
    }

    #[test]
    fn urls_of_files() {
        let url = StoreUrl::parse("file:///sub/?find=a/&replace=b/").unwrap();
        assert_eq!(url.file_url("a/c/day=1/x.raw"), "file:///sub/b/c/day=1/x.raw");
        assert_eq!(url.file_url("z/50%/x"), "file:///sub/z/50%25/x");
    }
}
