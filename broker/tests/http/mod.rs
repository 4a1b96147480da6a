//! HTTP/1.1 by hand, over any stream.

use std::collections::BTreeMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// An answer, its chunks joined.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Names are in lower case. Trailers are among them.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    /// A header, or nothing where there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Asks once. `more` is what follows the usual lines of the head: further ones, each with its end,
/// and for a body an empty line and the body.
pub async fn ask(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    target: &str,
    more: &str,
) -> Answer {
    let request =
        format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    parse(&String::from_utf8(answer).unwrap())
}

/// The answer that a server wrote.
pub fn parse(text: &str) -> Answer {
    let (head, rest) = text.split_once("\r\n\r\n").expect(text);
    let (line, lines) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = line.split(' ').nth(1).expect(line).parse().expect(line);
    let mut headers = fields(lines);
    let is_chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
    let body = if is_chunked && !rest.is_empty() {
        let (body, trailers) = unchunked(rest);
        headers.extend(fields(trailers));
        body
    } else {
        rest.to_owned()
    };
    Answer { status, headers, body }
}

fn fields(lines: &str) -> BTreeMap<String, String> {
    let field = |line: &str| {
        let (name, value) = line.split_once(": ").expect(line);
        (name.to_lowercase(), value.to_owned())
    };
    lines.split("\r\n").filter(|line| !line.is_empty()).map(field).collect()
}

fn unchunked(mut rest: &str) -> (String, &str) {
    let mut body = String::new();
    loop {
        let (len, after) = rest.split_once("\r\n").expect("a chunk's length");
        let len = usize::from_str_radix(len, 16).expect(len);
        if len == 0 {
            return (body, after);
        }
        body.push_str(&after[..len]);
        rest = after[len..].strip_prefix("\r\n").expect("the end of a chunk");
    }
}
