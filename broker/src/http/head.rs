//! Statuses and headers of the gateway's answers, as Gazette's has them (gazette-spec 6.1).

use crate::Error;
use http::StatusCode;
use http::header::{CONTENT_RANGE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use index::name::content_name;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::response::ReadMetadata;
use protocol::{Fragment, Header, Journal, Offset, Remedy, Route, Span, Status, Sum};
use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

pub const CLOSE_ERROR: HeaderName = HeaderName::from_static("x-close-error");
const WRITE_HEAD: HeaderName = HeaderName::from_static("x-write-head");
const ROUTE_TOKEN: HeaderName = HeaderName::from_static("x-route-token");
const FRAGMENT_NAME: HeaderName = HeaderName::from_static("x-fragment-name");
const FRAGMENT_LOCATION: HeaderName = HeaderName::from_static("x-fragment-location");
const FRAGMENT_LAST_MODIFIED: HeaderName = HeaderName::from_static("x-fragment-last-modified");
const COMMIT_BEGIN: HeaderName = HeaderName::from_static("x-commit-begin");
const COMMIT_END: HeaderName = HeaderName::from_static("x-commit-end");
const COMMIT_SUM: HeaderName = HeaderName::from_static("x-commit-sha1-sum");

/// What a path of a URL holds as it is; a journal's other bytes are escaped.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'+').remove(b'=');

/// The HTTP status of an outcome.
pub fn code_of(status: Status) -> StatusCode {
    match status {
        Status::Ok => StatusCode::PARTIAL_CONTENT,
        Status::JournalNotFound => StatusCode::NOT_FOUND,
        Status::InsufficientJournalBrokers => StatusCode::SERVICE_UNAVAILABLE,
        Status::OffsetNotYetAvailable => StatusCode::RANGE_NOT_SATISFIABLE,
        Status::NoJournalPrimaryBroker
        | Status::NotJournalPrimaryBroker
        | Status::NotJournalBroker
        | Status::WrongRoute
        | Status::ProposalMismatch
        | Status::EtcdTransactionFailed
        | Status::NotAllowed
        | Status::WrongAppendOffset
        | Status::IndexHasGreaterOffset
        | Status::RegisterMismatch
        | Status::Suspended
        | Status::FragmentStoreUnhealthy => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The HTTP status of a failure. What has a status of Gazette's has that one's; the others tell
/// more than its 500 where the client can act on it.
pub fn code_of_error(error: &Error) -> StatusCode {
    if let Some(status) = error.status() {
        return code_of(status);
    }
    match error {
        Error::Invalid(_) | Error::RegistersWithoutContent => StatusCode::BAD_REQUEST,
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::OverRate { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::OverSize { .. } => StatusCode::INSUFFICIENT_STORAGE,
        Error::Idle { .. } | Error::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
        Error::Unauthorized(refused) if refused.is_forbidden() => StatusCode::FORBIDDEN,
        Error::Unauthorized(_) => StatusCode::UNAUTHORIZED,
        full if full.is_full() => StatusCode::INSUFFICIENT_STORAGE,
        other => match other.remedy() {
            Remedy::Later | Remedy::Reroute => StatusCode::SERVICE_UNAVAILABLE,
            Remedy::Fix | Remedy::Lost => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

/// Adds what a read's first metadata says.
pub fn put_metadata(headers: &mut HeaderMap, metadata: &ReadMetadata) {
    if metadata.status == Status::Ok {
        let range = format!("bytes {}-{max}/{max}", metadata.offset, max = i64::MAX);
        put(headers, CONTENT_RANGE, &range);
    }
    if metadata.write_head.get() != 0 {
        put(headers, WRITE_HEAD, &metadata.write_head.to_string());
    }
    if let Some(fragment) = &metadata.fragment {
        put_fragment(headers, fragment);
    }
    if !metadata.fragment_url.is_empty() {
        put(headers, FRAGMENT_LOCATION, &metadata.fragment_url);
    }
}

/// Says which bytes of how many an answer has; without a span, that it has none of those asked for.
pub fn put_range(headers: &mut HeaderMap, span: Option<Span>, head: Offset) {
    let range = match span {
        Some(span) => format!("bytes {}-{}/{head}", span.begin(), span.end().get() - 1),
        None => format!("bytes */{head}"),
    };
    put(headers, CONTENT_RANGE, &range);
}

fn put_fragment(headers: &mut HeaderMap, fragment: &Fragment) {
    put(headers, FRAGMENT_NAME, &content_name(fragment));
    if let Ok(seconds @ 1..) = u64::try_from(fragment.mod_time) {
        let modified = UNIX_EPOCH + Duration::from_secs(seconds);
        put(headers, FRAGMENT_LAST_MODIFIED, &httpdate::fmt_http_date(modified));
    }
}

/// Adds who serves the journal.
pub fn put_route(headers: &mut HeaderMap, journal: &Journal, header: &Header) {
    if !header.route.members.is_empty() {
        put(headers, ROUTE_TOKEN, &route_token(&header.route));
    }
    if let Some(endpoint) = header.route.primary_endpoint() {
        let path = utf8_percent_encode(journal.as_str(), PATH);
        put(headers, LOCATION, &format!("{}/{path}", endpoint.trim_end_matches('/')));
    }
}

/// Adds where an append went.
pub fn put_commit(headers: &mut HeaderMap, span: Span, sum: Sum) {
    put(headers, COMMIT_BEGIN, &span.begin().to_string());
    put(headers, COMMIT_END, &span.end().to_string());
    put(headers, WRITE_HEAD, &span.end().to_string());
    put(headers, COMMIT_SUM, &sum.to_string());
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // Names may hold letters of any language, which are no text in a header but may be sent.
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name, value);
    }
}

/// The route in the compact text form of its message.
fn route_token(route: &Route) -> String {
    let mut token = String::new();
    for member in &route.members {
        let _ = write!(token, "members:<zone:{:?} suffix:{:?} > ", member.zone, member.suffix);
    }
    match route.primary {
        Some(0) => {}
        Some(at) => drop(write!(token, "primary:{at} ")),
        None => token.push_str("primary:-1 "),
    }
    for endpoint in &route.endpoints {
        let _ = write!(token, "endpoints:{endpoint:?} ");
    }
    token
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Codec, ProcessId};

    fn member(suffix: &str) -> ProcessId {
        ProcessId::new("a", suffix).expect("a valid id")
    }

    #[test]
    fn routes_are_told_as_text() {
        let endpoint = || "http://host:1".to_owned();
        let alone = Route::alone(member("broker"), endpoint());
        let led = Route {
            members: vec![member("aaaa"), member("bbbb")],
            primary: Some(1),
            endpoints: vec![endpoint(), endpoint()],
        };
        let cases = [
            (alone, "members:<zone:\"a\" suffix:\"broker\" > endpoints:\"http://host:1\" "),
            (
                led,
                "members:<zone:\"a\" suffix:\"aaaa\" > members:<zone:\"a\" suffix:\"bbbb\" > \
                 primary:1 endpoints:\"http://host:1\" endpoints:\"http://host:1\" ",
            ),
        ];
        for (route, expected) in cases {
            assert_eq!(route_token(&route), expected);
        }
    }

    #[test]
    fn metadata_becomes_headers() {
        let journal: Journal = "foo/bar".parse().expect("a valid name");
        let span = Span::at(16.into(), 16);
        let fragment = Fragment {
            mod_time: 784_111_777,
            backing_store: "file:///".into(),
            ..Fragment::local(journal, span, Sum::ZERO, Codec::Gzip)
        };
        let metadata = ReadMetadata {
            status: Status::Ok,
            header: None,
            offset: 20.into(),
            write_head: 99.into(),
            fragment: Some(fragment),
            fragment_url: "file:///x".into(),
        };
        let mut headers = HeaderMap::new();
        put_metadata(&mut headers, &metadata);
        let name = format!("{:016x}-{:016x}-{:040x}.gz", 16, 32, 0);
        let expected = [
            ("content-range", "bytes 20-9223372036854775807/9223372036854775807"),
            ("x-write-head", "99"),
            ("x-fragment-name", name.as_str()),
            ("x-fragment-last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-fragment-location", "file:///x"),
        ];
        assert_eq!(headers.len(), expected.len());
        for (name, value) in expected {
            assert_eq!(headers[name], value);
        }
    }
}
