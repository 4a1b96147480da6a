//! A way to a broker that a test can block: a TCP proxy that then takes connections, and what is
//! sent over them, and answers nothing, as a network that drops what it is given.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A proxy in front of an address. It ends with its owner.
#[derive(Debug)]
pub struct Detour {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    to: String,
    is_blocked: AtomicBool,
    is_over: AtomicBool,
    taken: AtomicUsize,
}

impl Detour {
    /// A way to `to` (`HOST:PORT`) that is open.
    #[track_caller]
    pub fn to(to: &str) -> Detour {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface is up");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared {
            to: to.to_owned(),
            is_blocked: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
        });
        let taking = shared.clone();
        thread::spawn(move || taking.take_all(&listener));
        Detour { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From here on nothing comes through.
    pub fn block(&self) {
        self.shared.is_blocked.store(true, Ordering::SeqCst);
    }

    /// From here on new connections lead to the broker again. Of those that were there while it was
    /// blocked nothing is heard any more: what was lost on them would be missing.
    pub fn open(&self) {
        self.shared.is_blocked.store(false, Ordering::SeqCst);
    }

    /// Connections that were taken so far.
    pub fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::SeqCst)
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // It waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn take_all(self: &Arc<Self>, listener: &TcpListener) {
        let mut silent = Vec::new();
        for taken in listener.incoming() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let Ok(taken) = taken else { continue };
            self.taken.fetch_add(1, Ordering::SeqCst);
            if self.is_blocked.load(Ordering::SeqCst) {
                silent.push(taken);
            } else if let Ok(beyond) = TcpStream::connect(&self.to) {
                self.join(taken, beyond);
            }
        }
    }

    fn join(self: &Arc<Self>, taken: TcpStream, beyond: TcpStream) {
        let both = taken.try_clone().and_then(|there| Ok((there, beyond.try_clone()?)));
        let Ok((taken_back, beyond_back)) = both else { return };
        for (from, to) in [(taken, beyond), (beyond_back, taken_back)] {
            let shared = self.clone();
            thread::spawn(move || shared.pass(from, to));
        }
    }

    /// Passes bytes on to the end. What has met a blocked way is silent for good, and stays open
    /// until the other side ends it.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        let mut is_silent = false;
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(read) => read,
            };
            is_silent |= self.is_blocked.load(Ordering::SeqCst);
            if !is_silent && to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ended: io::Result<()> = to.shutdown(Shutdown::Both);
    }
}
