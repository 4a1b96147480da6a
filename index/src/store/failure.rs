//! What the answer of a store that failed means, in one line that names the store.
//!
//! Clouds tell their errors in XML or JSON, and mean the same by different words: the words are
//! looked for here and nowhere else (gazette-spec 3.8, "Authorization errors").

use super::error::{Doing, StoreError};
use crate::file_store::MissingRoot;
use object_store::Error;

/// The longest answer that is told whole, in characters: some stores answer with a web page.
const DETAIL_MAX: usize = 300;

/// The bucket itself is missing: S3, Azure, GCS. They answer 404, as for an object.
const NO_BUCKET: [&str; 4] = [
    "NoSuchBucket",
    "ContainerNotFound",
    "The specified bucket does not exist",
    "The specified container does not exist",
];

/// The credentials are at fault, in answers that have no kind of their own: listings, S3 by other
/// numbers than 401 and 403, and the token services of Google and of Azure.
const REFUSED: [&str; 12] = [
    "status code: 401",
    "status code: 403",
    "ExpiredToken",
    "InvalidToken",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AuthorizationHeaderMalformed",
    "AccountIsDisabled",
    "ContainerDisabled",
    "invalid_grant",
    "invalid_client",
    "AADSTS",
];

/// The error of a store that failed, by its kind.
pub(super) fn told(store: &str, doing: Doing, key: &str, source: Error) -> StoreError {
    if let Some(MissingRoot(dir)) =
        std::error::Error::source(&source).and_then(|it| it.downcast_ref())
    {
        let (store, dir) = (store.to_owned(), dir.display().to_string());
        return StoreError::NoDirectory { store, dir };
    }
    let text = whole_text(&source);
    let (store, detail) = (store.to_owned(), detail_of(&text));
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // A cloud has no directories: what is missing where something is put is the bucket.
    let is_bucket = matches!(source, Error::NotFound { .. })
        && matches!(doing, Doing::Put | Doing::List)
        && !store.starts_with("file:");
    if is_bucket || says(&NO_BUCKET) {
        return StoreError::NoBucket { store, detail };
    }
    let key = key.to_owned();
    match source {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            StoreError::Refused { store, doing, key, detail }
        }
        _ if says(&REFUSED) => StoreError::Refused { store, doing, key, detail },
        source => StoreError::Failed { store, doing, key, detail, source: Box::new(source) },
    }
}

/// Whether an object is not there, in a bucket that is.
pub(super) fn is_missing_object(error: &Error) -> bool {
    match error {
        Error::NotFound { .. } => {
            let text = whole_text(error);
            !NO_BUCKET.iter().any(|word| text.contains(word))
        }
        _ => false,
    }
}

/// Whether a store does not know how to do what was asked at all.
pub(super) fn is_not_supported(error: &Error) -> bool {
    match error {
        Error::NotSupported { .. } | Error::NotImplemented { .. } => true,
        Error::Generic { .. } => whole_text(error).contains("NotImplemented"),
        _ => false,
    }
}

/// An error's text, and what caused it in the end where the text does not say so.
fn whole_text(error: &Error) -> String {
    let text = error.to_string();
    let mut root: &dyn std::error::Error = error;
    while let Some(source) = root.source() {
        root = source;
    }
    let cause = root.to_string();
    if text.contains(&cause) { text } else { format!("{text}: {cause}") }
}

/// The part of an answer that is for people, in one line.
fn detail_of(text: &str) -> String {
    let coded = between(text, "<Code>", "</Code>").map(|code| {
        let message = between(text, "<Message>", "</Message>").unwrap_or_default();
        format!("{code}: {message}")
    });
    let described = || {
        let quoted = |name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\""))?;
            between(rest, "\"", "\"")
        };
        quoted("error_description").or_else(|| quoted("message")).map(str::to_owned)
    };
    // An answer to HEAD has nothing but its status.
    let numbered = || text.rsplit_once("status code: ").map(|(_, status)| status.to_owned());
    let detail = coded.or_else(described).or_else(numbered).unwrap_or_else(|| text.to_owned());
    let detail = detail.trim_end_matches([' ', ':']);
    let mut line = String::new();
    for word in detail.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if line.chars().count() > DETAIL_MAX {
        line = line.chars().take(DETAIL_MAX).chain("...".chars()).collect();
    }
    line
}

fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    fn not_found(text: &str) -> Error {
        Error::NotFound { path: "a/key".to_owned(), source: text.to_owned().into() }
    }

    fn denied(text: &str) -> Error {
        Error::PermissionDenied { path: "a/key".to_owned(), source: text.to_owned().into() }
    }

    #[test]
    fn answers_are_told_in_one_line_with_the_store_and_the_remedy() {
        let xml = |code: &str, message: &str| {
            format!("404 Not Found: <Error>\n<Code>{code}</Code><Message>{message}</Message>")
        };
        let cases = [
            (
                not_found(&xml("NoSuchBucket", "It is not there")),
                "store s3://b/: its bucket is not there (NoSuchBucket: It is not there): \
                 create it, or correct the URL",
            ),
            (
                denied(&xml("AccessDenied", "Access Denied.")),
                "store s3://b/: putting k is refused (AccessDenied: Access Denied.): check the \
                 credentials that the broker has, and what they may do there",
            ),
            (
                generic(r#"{"error": "invalid_grant", "error_description": "Bad\n assertion"}"#),
                "store s3://b/: putting k is refused (Bad\\n assertion): check the credentials \
                 that the broker has, and what they may do there",
            ),
            (
                denied("Error performing HEAD http://h/k in 1ms - non-2xx status code: 403 No: "),
                "store s3://b/: putting k is refused (403 No): check the credentials that the \
                 broker has, and what they may do there",
            ),
            (
                generic("503 Service Unavailable:  \n slow down "),
                "store s3://b/: putting k: Generic S3 error: 503 Service Unavailable: slow down",
            ),
        ];
        for (error, expected) in cases {
            let told = told("s3://b/", Doing::Put, "k", error);
            assert_eq!(told.to_string(), expected);
        }
    }

    #[test]
    fn a_missing_directory_is_told_with_what_makes_it() {
        let missing = MissingRoot("/srv/store/sub".into());
        let error = Error::Generic { store: "file", source: missing.into() };
        let told = told("file:///sub/", Doing::List, "a/log/", error);
        assert_eq!(told.remedy(), protocol::Remedy::Fix);
        assert_eq!(
            told.to_string(),
            "store file:///sub/: its directory /srv/store/sub is not there: mkdir -p \
             /srv/store/sub, mount what has it, or correct the URL"
        );
    }

    #[test]
    fn a_long_answer_is_cut() {
        let told = told("s3://b/", Doing::Put, "k", generic(&"<p>page</p> ".repeat(100)));
        assert!(told.to_string().len() < DETAIL_MAX + 50, "{told}");
    }

    #[test]
    fn a_missing_object_is_no_missing_bucket() {
        assert!(is_missing_object(&not_found("<Code>NoSuchKey</Code>")));
        assert!(!is_missing_object(&not_found("<Code>NoSuchBucket</Code>")));
        assert!(!is_missing_object(&denied("<Code>AccessDenied</Code>")));
        assert!(is_not_supported(&generic("501: <Code>NotImplemented</Code>")));
        assert!(!is_not_supported(&generic("503")));
    }
}
