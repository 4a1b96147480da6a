//! Which protocol a client speaks, told by its first bytes.

use super::limits;
use super::listener::Socket;
use std::io;

/// What a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Also what is no protocol at all: its parser answers 400.
    Http1,
    Http2,
}

/// What every HTTP/2 client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits for the client's first bytes and leaves them unread. `None`: it hung up, or said nothing
/// for too long.
pub async fn protocol_of(socket: &Socket) -> Option<Protocol> {
    tokio::time::timeout(limits::GREETING_MAX, look(socket)).await.ok()?.ok()?
}

async fn look(socket: &Socket) -> io::Result<Option<Protocol>> {
    let mut first = [0; PREFACE.len()];
    loop {
        let len = socket.peek(&mut first).await?;
        match told_by(&first[..len]) {
            Some(protocol) => return Ok(Some(protocol)),
            None if len == 0 => return Ok(None),
            // The socket stays readable while a part of the preface is there, so waiting for more
            // of it means to look again.
            None => tokio::time::sleep(limits::GREETING_PAUSE).await,
        }
    }
}

/// Whether the client begins with TLS, as on a port of TLS it should: the first byte of a handshake
/// record is 22 (RFC 8446, section 5.1). `None` as with [`protocol_of`].
pub async fn is_tls(socket: &Socket) -> Option<bool> {
    const HANDSHAKE: u8 = 22;
    let mut first = [0];
    let peeked = tokio::time::timeout(limits::GREETING_MAX, socket.peek(&mut first)).await;
    match peeked.ok()?.ok()? {
        0 => None,
        _ => Some(first == [HANDSHAKE]),
    }
}

/// `None` while more bytes are needed.
fn told_by(first: &[u8]) -> Option<Protocol> {
    if !PREFACE.starts_with(first) {
        return Some(Protocol::Http1);
    }
    (first.len() == PREFACE.len()).then_some(Protocol::Http2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_preface_is_http2() {
        let cases: [(&[u8], _); 7] = [
            (b"", None),
            (b"P", None),
            (b"PRI * HTTP/2.0\r\n", None),
            (PREFACE, Some(Protocol::Http2)),
            (b"PUT /a", Some(Protocol::Http1)),
            (b"PRI * HTTP/1.1", Some(Protocol::Http1)),
            (b"\x16\x03\x01", Some(Protocol::Http1)),
        ];
        for (first, expected) in cases {
            assert_eq!(told_by(first), expected, "{first:?}");
        }
    }
}
