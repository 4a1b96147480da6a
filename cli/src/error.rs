//! Why a command failed: one line, with what to do about it.

use crate::denied::Denied;
use broker::KeySpaceError;
use protocol::{Journal, Offset, Remedy};
use std::io;
use std::path::Path;

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Client(#[from] client::Error),
    /// What a data directory says against being opened.
    #[error("{0}: {1}")]
    Data(String, Box<dyn std::error::Error + Send + Sync>),
    #[error("{0}: {1}: `courant repair {0}` makes it open again, and says what is gone")]
    Unopened(String, Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Cache(#[from] client::cache::Refused),
    #[error(transparent)]
    Broker(#[from] broker::Error),
    #[error(transparent)]
    Tls(#[from] broker::server::TlsError),
    #[error(transparent)]
    Listen(#[from] broker::server::CannotListen),
    #[error(transparent)]
    Mount(#[from] mount::Error),
    #[error(transparent)]
    MountPoint(#[from] mount::mountpoint::Error),
    #[error("can't {0}: {1}")]
    Io(String, io::Error),
    #[error(
        "another mount keeps what waits to be committed in {0}: end that one, or give this one a \
         --cache of its own"
    )]
    StagingInUse(String),
    /// The reader of our output went away.
    #[error("nobody reads the output")]
    OutputClosed,
    #[error("no journal matches the selector {0}: courant journals list shows what there is")]
    NoMatch(String),
    #[error("{0}: {1}")]
    Specs(String, String),
    #[error(
        "not confirmed (journals to delete: {0}): say --yes, or --dry-run to see what that means"
    )]
    Unconfirmed(usize),
    #[error("{0} and {1} lie in each other: choose separate directories")]
    Nested(String, String),
    #[error(
        "{0} lies in the mount {1}, where files are journals: name a directory outside of mounts \
         of courant"
    )]
    Mounted(String, String),
    #[error(
        "{0} is no data directory, and holds {1}: name an empty or a new directory (--data), so \
         that nothing of yours is mixed with it"
    )]
    Foreign(String, String),
    /// A permission that lacks for a data directory or for a part of it.
    #[error("{0}")]
    Denied(Denied),
    #[error(
        "{0} holds damage, listed above: what is damaged reads as an error, the rest is whole; \
         `courant repair --dry-run {0}` says what would be done about it"
    )]
    Damage(String),
    #[error("{0} could not be verified whole: the lines above say what was found")]
    Findings(String),
    #[error("{1}: apply {0} changes in several transactions, with --max-txn-size 128")]
    TooManyChanges(usize, protocol::Invalid),
    /// The file that was to be edited.
    #[error("the editor failed, and nothing was applied: the text is in {0}")]
    Editor(String),
    /// The command that was run.
    #[error(
        "the editor {0} failed, and nothing was applied: GAZ_EDITOR or EDITOR names another one"
    )]
    NoEditor(String),
    #[error("nothing was applied: {1}: the text is in {0}")]
    NotApplied(String, String),
    #[error("{0} can't be used: {1}")]
    Unhealthy(String, String),
    #[error("{0}: nothing was reset: {cause}", cause = without_name(.0, .1))]
    NotReset(Journal, Box<client::Error>),
    #[error(
        "{0} exists, at revision {1}, and its spec has no revision: nothing was applied; say \
         revision: {1} to replace it, or change it by courant journals edit {0}"
    )]
    Exists(Journal, i64),
    #[error(
        "{0} is at revision {2}, and not at {1} any more: nothing was applied; begin with what is \
         there (courant journals list -o yaml), or say revision: -1 to replace it unseen"
    )]
    Superseded(Journal, i64, i64),
    #[error(
        "{0} does not exist, and its spec has revision {1}: nothing was applied; take the revision \
         out to create it"
    )]
    Vanished(Journal, i64),
    #[error("no text was right after {1} times, and nothing was applied: the last one is in {0}")]
    EditedTooOften(String, usize),
    #[error(
        "no template has the prefix {0:?}: courant journals templates list shows what there is"
    )]
    NoTemplate(String),
    #[error("{0}: offset {1} is beyond its end, {2}{3}")]
    Beyond(Journal, Offset, Offset, &'static str),
    #[error("the input at byte {0}: {1}")]
    Record(u64, String),
    #[error("--mapping wants records: say --framing lines or fixed")]
    KeysOfNothing,
    #[error(
        "the key {0:?} is the last record: with this --mapping each record comes after its key"
    )]
    KeyOfNothing(String),
    #[error("the key {0:?} is the name of no journal that was selected")]
    NoPartition(String),
    #[error("--broker.auth-keys: {0}")]
    Keys(client::token::Refused),
    #[error("{0} is there and not empty: name another directory for the copy")]
    Taken(String),
    #[error("{0} is what an earlier backup left that did not end: remove it, and begin again")]
    Unfinished(String),
    #[error("{0} is no data directory of courant")]
    NoData(String),
    #[error("ended at once, by a second signal: what was in flight may be unfinished")]
    Forced,
}

impl Error {
    /// Names what was tried.
    pub fn io(attempt: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let attempt = attempt.into();
        move |error| Error::Io(attempt, error)
    }

    /// Names the directory or the file that can't be looked at.
    pub fn reading(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Denied(Denied::of(path)),
            _ => Error::Io(format!("open {}", path.display()), error),
        }
    }

    /// Names the directory that can't be made.
    pub fn making(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Denied(Denied::of(path)),
            _ => Error::Io(format!("make {}", path.display()), error),
        }
    }

    /// Names the data directory that can't be used.
    pub fn data<E>(data: &Path) -> impl FnOnce(E) -> Error
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        move |error| {
            if let Some(file) = denied(&error) {
                // A part is named from the directory on, or from the root.
                return Error::Denied(Denied::of(&data.join(file)));
            }
            let data = data.display().to_string();
            match is_damage(&error) {
                true => Error::Unopened(data, Box::new(error)),
                false => Error::Data(data, Box::new(error)),
            }
        }
    }

    /// A failed write to standard output.
    pub fn output(error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Error::OutputClosed,
            _ => Error::Io("write the output".to_owned(), error),
        }
    }
}

/// The file of a data directory for which a permission lacks.
fn denied<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Path> {
    match local(error)? {
        index::Error::Disk { path, source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Some(path)
        }
        _ => None,
    }
}

/// The fault of the data directory that an error is, itself or as a broker tells it.
fn local<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a index::Error> {
    match error.downcast_ref() {
        Some(broker::Error::Local(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

/// Whether a data directory is refused for what is wrong in it, and no newer release would take it.
fn is_damage(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_local = matches!(local(error), Some(index::Error::Damaged(..)));
    let keys = match error.downcast_ref() {
        Some(broker::Error::KeySpace(error)) => Some(error),
        _ => error.downcast_ref::<KeySpaceError>(),
    };
    is_local || keys.is_some_and(KeySpaceError::is_damage)
}

/// What a broker says, without the journal that the line begins with.
fn without_name(journal: &Journal, error: &client::Error) -> String {
    let text = match error {
        client::Error::Later(text) => text.clone(),
        error => error.to_string(),
    };
    let rest = text.strip_prefix(journal.as_str()).and_then(|rest| rest.strip_prefix(": "));
    rest.map_or(text.clone(), str::to_owned)
}

/// The error and what to do about it, in one line.
pub fn line(error: &Error) -> String {
    let advice = match error {
        Error::Client(refused) => advice(refused),
        Error::Data(data, error) if local(&**error).is_some_and(index::Error::is_full) => {
            Some(format!(
                "what is there stays: free some room on its file system and start again \
                 ({data}/aside, where there is one, has logs that were cut, and may be removed)"
            ))
        }
        _ => None,
    };
    let text = match advice {
        Some(advice) => format!("{error}: {advice}"),
        None => error.to_string(),
    };
    // What others say may hold more than a line.
    text.split(['\n', '\r'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// What a user can do, where the error itself does not say.
fn advice(error: &client::Error) -> Option<String> {
    use client::Error as E;
    Some(match error {
        E::Unreachable(cause)
            if cause.contains("ertificate") || cause.contains("UnknownIssuer") =>
        {
            "--broker.trusted-ca-file says whom to trust, --broker.cert-file shows one of yours"
                .into()
        }
        E::Unreachable(cause) if cause.contains("corrupt message") => {
            "does it speak TLS? http:// is without".into()
        }
        E::Unreachable(_) => {
            "is a broker running there? courant up starts one, --broker.address names another"
                .into()
        }
        E::NotFound(journal) => {
            format!("courant journals list shows what there is, {} makes a new one", makes(journal))
        }
        E::Conflict(..) => {
            "take its revision from courant journals list -o yaml, or say revision: -1".into()
        }
        E::Protocol(cause) if cause.contains("grpc-status header missing") => {
            "something else than a broker listens there: --broker.address names another".into()
        }
        E::Unknown => "read the end of the journal before appending again".into(),
        E::TooLarge(..) => "append it in pieces, as --lines does".into(),
        E::NoDisk(_) => "ask for --durability memory".into(),
        error if error.remedy() == Remedy::Later => "try again later".into(),
        _ => return None,
    })
}

fn makes(journal: &Journal) -> &'static str {
    match journal.as_str().contains('/') {
        true => "courant journals apply (or writing to its file in a mount)",
        false => "courant journals apply",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_a_remedy() {
        let journal: Journal = "local/log".parse().expect("valid");
        // Case: the error, and what its line says
        let not_grpc = "http://h:1: grpc-status header missing, mapped from HTTP status code 404";
        let cases: [(Error, &[&str]); 10] = [
            (
                Error::Data("/d".into(), Box::new(index::Error::Full { needed: 2, free: 1 })),
                &["/d: ", "free some room", "/d/aside"],
            ),
            (
                client::Error::Protocol(not_grpc.into()).into(),
                &["http://h:1", "else than a broker", "--broker.address"],
            ),
            (
                Error::NotReset(
                    journal.clone(),
                    Box::new(client::Error::Later("local/log: its store is away".into())),
                ),
                &["local/log: nothing was reset: its store is away"],
            ),
            (
                client::Error::Unreachable("invalid peer certificate: UnknownIssuer".into()).into(),
                &["--broker.trusted-ca-file"],
            ),
            (
                client::Error::Unreachable("received corrupt message".into()).into(),
                &["http:// is without"],
            ),
            (
                client::Error::Unreachable("http://h:1: refused".into()).into(),
                &["http://h:1", "--broker.address"],
            ),
            (client::Error::NotFound(journal.clone()).into(), &["local/log", "journals apply"]),
            (client::Error::Conflict(journal, 7).into(), &["local/log", "revision"]),
            (client::Error::Io("line one\nline two".into()).into(), &["line one; line two"]),
            (Error::NoMatch("name=x".into()), &["name=x", "journals list"]),
        ];
        for (error, words) in cases {
            let line = line(&error);
            assert!(!line.contains('\n'));
            for word in words {
                assert!(line.contains(word), "nothing of {word} in: {line}");
            }
        }
    }
}
