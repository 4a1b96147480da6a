//! How long the caller of a gRPC call waits: the header `grpc-timeout`.

use http::{HeaderMap, HeaderValue};
use std::time::Duration;
use tonic::Status;

const HEADER: &str = "grpc-timeout";

/// The most digits of a value, as gRPC has it.
const DIGITS_MAX: usize = 8;

/// The time that the call has from its begin; `None` where its caller waits for ever. What is no
/// time is refused with Internal, as Go's servers do.
pub fn timeout_of(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    match parse(value) {
        Some(timeout) => Ok(Some(timeout)),
        None => Err(Status::internal(format!("malformed grpc-timeout: {value:?}"))),
    }
}

/// What a call gets that is not over in time.
pub fn exceeded() -> Status {
    Status::deadline_exceeded("the call is not over at its deadline")
}

fn parse(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > DIGITS_MAX || !is_number {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_digits_and_a_unit() {
        let cases = [
            ("1H", Some(Duration::from_secs(3600))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("30S", Some(Duration::from_secs(30))),
            ("250m", Some(Duration::from_millis(250))),
            ("7u", Some(Duration::from_micros(7))),
            ("00000000n", Some(Duration::ZERO)),
            ("", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("+1S", None),
            ("1.5S", None),
            ("1 S", None),
            ("123456789S", None),
            // Case: a unit of more than one byte.
            ("1\u{b5}", None),
        ];
        for (text, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_bytes(text.as_bytes()).expect("a header"));
            match (timeout_of(&headers), expected) {
                (Ok(found), Some(_)) => assert_eq!(found, expected, "{text}"),
                (Err(refused), None) => {
                    assert_eq!(refused.code(), tonic::Code::Internal, "{text}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert_eq!(timeout_of(&HeaderMap::new()).expect("none is fine"), None);
    }
}
