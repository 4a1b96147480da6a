//! What a failed gRPC request means.

use crate::Error;
use protocol::Invalid;
use tonic::{Code, Status};

/// The error of a request that bears being made twice.
pub(crate) fn error(url: &str, status: Status) -> Error {
    if let Some(source) = std::error::Error::source(&status) {
        // A status with a source was not sent by a broker: the connection failed.
        return Error::Unreachable(format!("{url}: {}", cause(source)));
    }
    let text = status.message().to_owned();
    match status.code() {
        // Whoever says why it can not answer was reached.
        Code::Unavailable if text.is_empty() => Error::Unreachable(format!("{url}: unavailable")),
        Code::Unavailable
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted => Error::Later(text),
        // How Gazette refuses what breaks a rule of its protocol (gazette-spec 1.1).
        Code::Unknown | Code::InvalidArgument | Code::OutOfRange => {
            Error::Invalid(Invalid::new(text))
        }
        Code::Unauthenticated | Code::PermissionDenied => {
            Error::Unauthorized(format!("{url}: {text}"))
        }
        Code::Ok
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => Error::Protocol(format!("{url}: {}: {text}", status.code())),
    }
}

/// The error of an append that must not be made twice: `Unknown` where it may have been applied.
pub(crate) fn append_error(url: &str, status: Status) -> Error {
    let was_sent = !is_connect_error(&status);
    match error(url, status) {
        Error::Unreachable(_) | Error::Later(_) if was_sent => Error::Unknown,
        error => error,
    }
}

/// The error of a read. Its request was checked here, so that what the broker can't say by a code
/// is what befell it: its disk, or a store.
pub(crate) fn read_error(url: &str, status: Status) -> Error {
    let is_unknown = status.code() == Code::Unknown;
    match error(url, status) {
        Error::Invalid(why) if is_unknown => Error::Io(why.to_string()),
        error => error,
    }
}

/// Whether no connection came about, so that nothing was asked.
fn is_connect_error(status: &Status) -> bool {
    chain(status).any(|error| error.is::<tonic::ConnectError>())
}

/// The innermost cause, which is the one that says something.
pub(crate) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

fn chain<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Remedy;

    #[test]
    fn codes_ask_for_a_retry_or_not() {
        // Case: the code, what to do about it, and about an append
        let cases = [
            (Code::Unavailable, Remedy::Later, Remedy::Fix),
            (Code::ResourceExhausted, Remedy::Later, Remedy::Fix),
            (Code::Unknown, Remedy::Fix, Remedy::Fix),
            (Code::Internal, Remedy::Fix, Remedy::Fix),
            (Code::Unauthenticated, Remedy::Fix, Remedy::Fix),
        ];
        for (code, remedy, of_append) in cases {
            let status = || Status::new(code, "why");
            let of_read = read_error("url", status());
            assert_eq!(matches!(of_read, Error::Io(_)), code == Code::Unknown, "{of_read}");
            assert_eq!(error("http://b", status()).remedy(), remedy, "{code:?}");
            assert_eq!(append_error("http://b", status()).remedy(), of_append, "{code:?}");
            assert!(error("http://b", status()).to_string().contains("why"));
        }
    }

    #[test]
    fn what_the_connection_says_is_told() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(refused));
        let text = error("http://b:1", status).to_string();
        assert_eq!(text, "the broker can't be reached: http://b:1: connection refused");
    }
}
