//! What a port is bound to: an address of TCP, or the path of a unix socket.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// How a unix socket is named: `unix:///PATH`.
const UNIX: &str = "unix://";

/// Whether an address names a unix socket.
pub fn is_unix(address: &str) -> bool {
    address.starts_with(UNIX)
}

/// A bound port.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, SocketFile),
}

/// The file of a unix socket, which goes with the listener.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody else may have taken it away.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A connection, before it is known what it carries.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Binds `HOST:PORT`, of which port 0 takes a free one, or `unix:///PATH`. A socket file that
    /// nobody listens on any more is replaced.
    pub async fn bind(address: &str) -> io::Result<Self> {
        if let Some(path) = address.strip_prefix(UNIX) {
            return bind_unix(Path::new(path)).await;
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Listener::Tcp(listener, address))
    }

    /// The next connection, and who that is as far as a log needs it.
    pub async fn accept(&self) -> io::Result<(Socket, String)> {
        match self {
            Listener::Tcp(listener, _) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Socket::Tcp(stream), peer.to_string()))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), "a local process".to_owned()))
            }
        }
    }

    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(_, address) => Some(*address),
            Listener::Unix(..) => None,
        }
    }

    /// The URL by which clients on this machine find it. That of a unix socket has a host, since
    /// the endpoints of routes must (gazette-spec 1.4).
    pub fn endpoint(&self, has_tls: bool) -> String {
        match self {
            Listener::Tcp(_, address) if has_tls => format!("https://{address}"),
            Listener::Tcp(_, address) => format!("http://{address}"),
            Listener::Unix(_, file) => format!("{UNIX}localhost{}", file.0.display()),
        }
    }
}

async fn bind_unix(path: &Path) -> io::Result<Listener> {
    if !path.is_absolute() {
        let text = "the path of a unix socket is absolute, as in unix:///run/courant.sock";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let bound = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path).await => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    };
    Ok(Listener::Unix(bound?, SocketFile(path.to_owned())))
}

/// Whether a socket file is left over from a process that is no more.
async fn is_stale(path: &Path) -> bool {
    // A file that is no socket refuses connections too.
    let file = std::fs::symlink_metadata(path);
    if !file.is_ok_and(|file| file.file_type().is_socket()) {
        return false;
    }
    let connected = UnixStream::connect(path).await;
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl Socket {
    /// Reads without taking: what is read here is read again.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.peek(buf).await,
            Socket::Unix(stream) => {
                let peek = || {
                    let peeked = rustix::net::recv(stream, &mut *buf, rustix::net::RecvFlags::PEEK);
                    peeked.map(|(len, _)| len).map_err(io::Error::from)
                };
                stream.async_io(Interest::READABLE, peek).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_file_lives_as_long_as_its_listener() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let url = format!("unix://{}", path.display());
        let first = Listener::bind(&url).await.expect("bound");
        let expected = format!("unix://localhost{}", path.display());
        assert_eq!((first.endpoint(true), first.address()), (expected, None));
        // Case: somebody listens there
        let taken = Listener::bind(&url).await.expect_err("it is taken");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(!path.exists());
        // Case: nobody does any more
        drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
        assert!(path.exists());
        Listener::bind(&url).await.expect("replaced");
        // Case: a file that is no socket stays
        std::fs::write(&path, "mine").expect("written");
        Listener::bind(&url).await.expect_err("a file is there");
        assert_eq!(std::fs::read(&path).expect("there"), b"mine");
        let relative = Listener::bind("unix://socket").await.expect_err("no path");
        assert!(relative.to_string().contains("absolute"), "{relative}");
    }
}
