//! Telling a supervisor how it stands with a daemon, by the protocol of sd_notify(3): systemd's
//! `Type=notify` and `WatchdogSec=`. Without one nothing is told.

use crate::{Error, output};
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Where the supervisor listens.
const SOCKET: &str = "NOTIFY_SOCKET";

/// How long it waits for a sign of life, in microseconds, and whom it means.
const WATCHDOG: &str = "WATCHDOG_USEC";
const WATCHED: &str = "WATCHDOG_PID";

/// A daemon that serves. Dropping it tells that it is ending.
pub struct Supervised {
    supervisor: Option<Supervisor>,
    watchdog: Option<JoinHandle<()>>,
}

/// Prints the line that says that a daemon serves, and tells it. As often as the supervisor wants
/// to hear it, `check` has to come to its end, which shows that the daemon answers; else the
/// supervisor is told nothing, and does what its unit says.
pub fn ready<C, F>(line: &str, check: C) -> Result<Supervised, Error>
where
    C: Fn() -> F + Send + 'static,
    F: Future<Output = ()> + Send,
{
    output::print(&format!("{line}\n"))?;
    let supervisor = std::env::var_os(SOCKET)
        .filter(|name| !name.is_empty())
        .and_then(|name| Supervisor::at(&name));
    let Some(supervisor) = supervisor else {
        return Ok(Supervised { supervisor: None, watchdog: None });
    };
    supervisor.tell(&format!("READY=1\nSTATUS={line}"));
    let limit = watchdog(|name| std::env::var(name).ok(), std::process::id());
    let watchdog = limit.map(|limit| {
        let supervisor = supervisor.clone();
        tokio::spawn(async move { supervisor.reassure(limit, check).await })
    });
    Ok(Supervised { supervisor: Some(supervisor), watchdog })
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if let Some(watchdog) = &self.watchdog {
            watchdog.abort();
        }
        if let Some(supervisor) = &self.supervisor {
            supervisor.tell("STOPPING=1");
        }
    }
}

/// The time after which a supervisor without a sign of life acts.
fn watchdog(variable: impl Fn(&str) -> Option<String>, own: u32) -> Option<Duration> {
    let is_meant = variable(WATCHED).is_none_or(|pid| pid.parse() == Ok(own));
    let limit = variable(WATCHDOG)?.parse().ok().map(Duration::from_micros);
    limit.filter(|limit| is_meant && !limit.is_zero())
}

/// Whoever started this daemon.
#[derive(Debug, Clone)]
struct Supervisor {
    socket: std::sync::Arc<UnixDatagram>,
    address: SocketAddr,
}

impl Supervisor {
    /// The one that listens at a path, or at an abstract name, which begins with `@`.
    fn at(name: &OsStr) -> Option<Supervisor> {
        let found = address(name).and_then(|address| {
            let socket = UnixDatagram::unbound()?;
            // A supervisor that does not read must not stop us.
            socket.set_nonblocking(true)?;
            Ok(Supervisor { socket: socket.into(), address })
        });
        let complain = |error: &io::Error| {
            let name = OsString::from(name);
            tracing::warn!(%error, ?name, "no supervisor can be told of this daemon");
        };
        found.inspect_err(complain).ok()
    }

    fn tell(&self, message: &str) {
        if let Err(error) = self.socket.send_to_addr(message.as_bytes(), &self.address) {
            tracing::warn!(%error, message, "the supervisor was not told");
        }
    }

    /// Tells that we live, twice in the time in which it wants to hear it, while we do.
    async fn reassure<F: Future<Output = ()>>(&self, limit: Duration, check: impl Fn() -> F) {
        loop {
            match timeout(limit / 2, check()).await {
                Ok(()) => self.tell("WATCHDOG=1"),
                Err(_elapsed) => tracing::error!("this daemon does not answer itself"),
            }
            sleep(limit / 2).await;
        }
    }
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::new(io::ErrorKind::Unsupported, "neither a path nor an abstract name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn the_watchdog_is_for_whom_it_names() {
        // Case: WATCHDOG_USEC, WATCHDOG_PID, the limit in milliseconds
        let cases = [
            (Some("2000000"), None, Some(2000)),
            (Some("2000000"), Some("7"), Some(2000)),
            (Some("2000000"), Some("8"), None),
            (Some("0"), None, None),
            (Some("soon"), None, None),
            (None, Some("7"), None),
        ];
        for (limit, pid, expected) in cases {
            let variable = |name: &str| match name {
                WATCHDOG => limit.map(str::to_owned),
                WATCHED => pid.map(str::to_owned),
                _ => None,
            };
            let expected = expected.map(Duration::from_millis);
            assert_eq!(watchdog(variable, 7), expected, "{limit:?} {pid:?}");
        }
    }

    /// A supervisor at an abstract name, which nobody has to clean up.
    fn listener(name: &str) -> (UnixDatagram, OsString) {
        let name = format!("courant-{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        (socket, format!("@{name}").into())
    }

    fn heard(socket: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 256];
        std::iter::from_fn(|| {
            let length = socket.recv(&mut buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
        })
        .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_does_not_answer_gives_no_sign_of_life() {
        let (socket, name) = listener("watchdog");
        let supervisor = Supervisor::at(&name).unwrap();
        let is_stuck = Arc::new(AtomicBool::new(false));
        let stuck = is_stuck.clone();
        let check = move || {
            let stuck = stuck.load(Ordering::Relaxed);
            async move {
                if stuck {
                    std::future::pending::<()>().await;
                }
            }
        };
        let reassuring = tokio::spawn(async move {
            supervisor.reassure(Duration::from_secs(10), check).await;
        });
        sleep(Duration::from_secs(19)).await;
        assert_eq!(heard(&socket), ["WATCHDOG=1"; 4]);
        is_stuck.store(true, Ordering::Relaxed);
        sleep(Duration::from_secs(60)).await;
        assert!(heard(&socket).is_empty());
        reassuring.abort();
    }

    #[test]
    fn a_supervisor_is_found_by_its_name() {
        let (socket, name) = listener("name");
        Supervisor::at(&name).unwrap().tell("READY=1");
        assert_eq!(heard(&socket), ["READY=1"]);
        for name in ["", "vsock:2:1", "relative"] {
            assert!(Supervisor::at(OsStr::new(name)).is_none(), "{name}");
        }
    }
}
