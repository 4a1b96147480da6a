//! The way from a client to a double, of which a test disposes.

use super::*;
use crate::{Dial, Stream};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::io;
use std::sync::Mutex;
use tokio::io::{AsyncWriteExt, DuplexStream, copy_bidirectional, duplex};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Connections that can be cut, silenced, and led elsewhere.
#[derive(Debug)]
pub(super) struct Wires {
    address: Mutex<String>,
    wires: Mutex<Vec<AbortHandle>>,
    /// How often those that were there were silenced.
    silences: watch::Sender<u64>,
}

impl Wires {
    /// All connections end.
    pub fn cut(&self) {
        let wires = std::mem::take(&mut *self.wires.lock().expect("no holder panics"));
        wires.iter().for_each(AbortHandle::abort);
    }

    /// The connections that are there stay, and nothing comes over them any more.
    pub fn silence(&self) {
        self.silences.send_modify(|silences| *silences += 1);
    }

    /// Further connections lead to the double at another URL.
    pub fn lead_to(&self, url: &str) {
        *self.address.lock().expect("no holder panics") = address(url);
    }

    pub fn are_closed(&self) -> bool {
        let wires = self.wires.lock().expect("no holder panics");
        wires.iter().all(AbortHandle::is_finished)
    }

    /// Connections that were made since the last cut.
    pub fn len(&self) -> usize {
        self.wires.lock().expect("no holder panics").len()
    }

    /// A connection of which nothing is left when it is cut.
    async fn carry(
        mut near: DuplexStream,
        address: String,
        mut silences: watch::Receiver<u64>,
    ) -> io::Result<()> {
        let mut far = TcpStream::connect(address).await?;
        tokio::select! {
            biased;
            _silenced = silences.changed() => std::future::pending().await,
            carried = copy_bidirectional(&mut near, &mut far) => carried.map(drop)?,
        }
        near.shutdown().await
    }
}

impl Dial for Arc<Wires> {
    fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (near, far) = duplex(64 << 10);
        let address = self.address.lock().expect("no holder panics").clone();
        let carrying = tokio::spawn(Wires::carry(near, address, self.silences.subscribe()));
        self.wires.lock().expect("no holder panics").push(carrying.abort_handle());
        let far: Box<dyn Stream> = Box::new(far);
        async move { Ok(far) }.boxed()
    }
}

fn address(url: &str) -> String {
    url.trim_start_matches("http://").to_owned()
}

/// A double, its client, and what is between them.
pub(super) async fn wired() -> (Double, Arc<Remote>, Arc<Wires>) {
    let (double, url) = Double::start(true).await;
    double.create("local/log");
    let wires = Wires {
        address: Mutex::new(address(&url)),
        wires: Mutex::default(),
        silences: watch::Sender::new(0),
    };
    let wires = Arc::new(wires);
    let connect = Connect::new(&url).expect("a valid URL").with_dial(Arc::new(wires.clone()));
    (double, Arc::new(Remote::connect(&connect).expect("a valid URL")), wires)
}
