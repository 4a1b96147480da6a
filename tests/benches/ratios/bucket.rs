//! A bucket of MinIO's for a measurement, near or far: what row 14 reads from.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use tests::ground;
use tests::patience;
use tests::running::Running;
use tests::shell;
use tokio::time::Instant;

/// The bucket's name.
const NAME: &str = "courant";

/// A server with one bucket, and its data. Its account is that of the environment, where Courant
/// looks for it too.
pub struct Bucket {
    _server: Running,
    _data: TempDir,
    port: u16,
}

impl Bucket {
    /// `None` where `scripts/bench` named no MinIO.
    pub fn start() -> Option<Bucket> {
        let minio = PathBuf::from(std::env::var_os("COURANT_MINIO")?);
        let [user, secret] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
            .map(|name| std::env::var(name).expect("scripts/bench sets it"));
        let (data, port) = (ground::folder("minio-"), ground::free_port());
        let endpoint = format!("127.0.0.1:{port}");
        let mut command = Command::new(minio);
        command.args(["server", "--quiet", "--address", &endpoint]).arg(data.path());
        command.env("MINIO_ROOT_USER", &user).env("MINIO_ROOT_PASSWORD", &secret);
        let server = Running::start(&mut command);
        let ask = |line: &str, arguments: &[&str]| shell::bash(Path::new("/"), line, arguments);
        let health = format!("http://{endpoint}/minio/health/ready");
        patience::until("MinIO serves", || {
            ask("curl -sf -o /dev/null \"$1\" && echo ready", &[&health]).text() == "ready"
        });
        let account = format!("{user}:{secret}");
        let make = "curl -sf -X PUT --aws-sigv4 aws:amz:us-east-1:s3 --user \"$1\" \"$2\"";
        ask(make, &[&account, &format!("http://{endpoint}/{NAME}")]).ok();
        Some(Bucket { _server: server, _data: data, port })
    }

    /// A part of it as a store, by way of a port: its own, or that of a [`Road`].
    pub fn store(part: &str, port: u16) -> String {
        format!("s3://{NAME}/{part}/?endpoint=http://127.0.0.1:{port}")
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// How far away a store is.
#[derive(Debug, Clone, Copy)]
pub struct Distance {
    /// What a request takes to be there.
    pub latency: Duration,
    /// Bytes a second of one connection.
    pub rate: f64,
}

/// A port that leads to another one as if that were far away. It lives as long as this process.
pub struct Road {
    port: u16,
}

/// Bytes that are passed on together: well below a hundredth of a second's.
const PASSED: usize = 64 << 10;

impl Road {
    pub fn open(to: u16, distance: Distance) -> Road {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                let (from, back) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                thread::spawn(move || carry_requests(from, far, distance.latency));
                thread::spawn(move || carry_answers(back, near, distance.rate));
            }
        });
        Road { port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Ends with either side, and ends the other.
fn carry_requests(mut near: TcpStream, mut far: TcpStream, latency: Duration) {
    let mut buffer = vec![0; PASSED];
    while let Ok(count @ 1..) = near.read(&mut buffer) {
        patience::pause(latency);
        if far.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ended = far.shutdown(Shutdown::Both);
}

fn carry_answers(mut far: TcpStream, mut near: TcpStream, rate: f64) {
    let mut buffer = vec![0; PASSED];
    // When what was passed on so far may be there.
    let mut due = Instant::now();
    while let Ok(count @ 1..) = far.read(&mut buffer) {
        due = due.max(Instant::now()) + Duration::from_secs_f64(count as f64 / rate);
        if near.write_all(&buffer[..count]).is_err() {
            break;
        }
        patience::pause(due.saturating_duration_since(Instant::now()));
    }
    let _ended = near.shutdown(Shutdown::Both);
}

/// An object that anybody may get who has its URL.
#[derive(Debug, Clone)]
pub struct Object {
    host: String,
    path: String,
    len: u64,
}

impl Object {
    pub fn new(url: &str, len: u64) -> Object {
        let rest = url.strip_prefix("http://").expect("the store speaks plain HTTP");
        let (host, path) = rest.split_once('/').expect("an object has a path");
        Object { host: host.to_owned(), path: format!("/{path}"), len }
    }
}

/// Gets all objects by ranges of so many bytes, over so many connections, and drops what comes;
/// bytes a second. Nothing less can be done with an answer than to receive it.
pub fn get_all(objects: &[Object], connections: usize, part: u64) -> f64 {
    let ranges = objects.iter().flat_map(|object| {
        let len = object.len;
        (0..len)
            .step_by(usize::try_from(part).unwrap())
            .map(move |at| (object, at, len.min(at + part)))
    });
    let todo = std::sync::Mutex::new(ranges);
    let next = || todo.lock().unwrap().next();
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut buffer = vec![0; 1 << 20];
                let mut open: Option<TcpStream> = None;
                while let Some((object, begin, end)) = next() {
                    let stream = open.get_or_insert_with(|| {
                        let stream = TcpStream::connect(&object.host).unwrap();
                        stream.set_nodelay(true).unwrap();
                        stream
                    });
                    get(stream, object, begin, end, &mut buffer).unwrap();
                }
            });
        }
    });
    let all: u64 = objects.iter().map(|object| object.len).sum();
    all as f64 / begun.elapsed().as_secs_f64()
}

fn get(
    stream: &mut TcpStream,
    object: &Object,
    begin: u64,
    end: u64,
    buffer: &mut [u8],
) -> io::Result<()> {
    let Object { host, path, .. } = object;
    let last = end - 1;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nRange: bytes={begin}-{last}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut filled = 0;
    let head = loop {
        filled += stream.read(&mut buffer[filled..])?;
        if let Some(at) = buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
    };
    assert!(buffer.starts_with(b"HTTP/1.1 206 "), "{}", String::from_utf8_lossy(&buffer[..head]));
    let mut left = end - begin - (filled - head) as u64;
    while left > 0 {
        let max = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match stream.read(&mut buffer[..max])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left -= count as u64,
        }
    }
    Ok(())
}
