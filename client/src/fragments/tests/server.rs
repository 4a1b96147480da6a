//! A web server of one object, which behaves as badly as one may.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Works,
    /// The whole object, whatever range is asked for.
    IgnoresRanges,
    Status(u16),
    /// The connection ends after so many bytes of the content.
    Breaks(usize),
    /// The answer says that it is complete after so many bytes.
    EndsEarly(usize),
}

/// The server; clones are one.
#[derive(Clone)]
pub struct Server {
    url: String,
    object: Arc<Vec<u8>>,
    manner: Arc<Mutex<Manner>>,
    /// The head of each request.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub async fn start(object: Vec<u8>, manner: Manner) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/secret", listener.local_addr().expect("it is bound"));
        let (object, manner) = (Arc::new(object), Arc::new(Mutex::new(manner)));
        let server = Server { url, object, manner, requests: Arc::default() };
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().answer(stream));
            }
        });
        server
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn behave(&self, manner: Manner) {
        *self.manner.lock().expect("no holder panics") = manner;
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no holder panics").clone()
    }

    /// One answer a connection.
    async fn answer(self, mut stream: TcpStream) {
        let Some(head) = read_head(&mut stream).await else { return };
        let manner = *self.manner.lock().expect("no holder panics");
        self.requests.lock().expect("no holder panics").push(head.clone());
        let range = match manner {
            Manner::IgnoresRanges => None,
            _ => range_of(&head),
        };
        let (from, last) = range.unwrap_or((0, usize::MAX));
        let last = last.min(self.object.len().saturating_sub(1));
        let body = &self.object[from..self.object.len().min(last + 1)];
        let (len, sent) = match manner {
            Manner::Works | Manner::IgnoresRanges => (body.len(), body.len()),
            Manner::Status(_) => (0, 0),
            Manner::Breaks(after) => (body.len(), after.min(body.len())),
            Manner::EndsEarly(after) => (after.min(body.len()), after.min(body.len())),
        };
        let status = match manner {
            Manner::Status(status) => format!("{status} No"),
            _ if range.is_some() => {
                let size = self.object.len();
                format!("206 Partial\r\ncontent-range: bytes {from}-{last}/{size}")
            }
            _ => "200 OK".to_owned(),
        };
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n");
        let _gone = stream.write_all(head.as_bytes()).await;
        let _gone = stream.write_all(&body[..sent]).await;
        let _gone = stream.shutdown().await;
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok().map(|head| head.to_ascii_lowercase())
}

/// The first and the last byte that are asked for.
fn range_of(head: &str) -> Option<(usize, usize)> {
    let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="))?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse().unwrap_or(usize::MAX)))
}
