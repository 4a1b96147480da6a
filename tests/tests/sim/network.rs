//! The network between clients and the one broker: streams in memory on which the real codec runs,
//! with delays and cuts.

use crate::chance::Chance;
use crate::trace::Trace;
use broker::server::Handed;
use client::{Dial, Stream};
use futures::future::BoxFuture;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// Bytes under way in one direction.
const WINDOW: usize = 64 << 10;

/// See the module. Clones are one network.
#[derive(Debug, Clone)]
pub struct Network(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    trace: Trace,
    chance: Chance,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The broker's port, while its machine is up.
    port: Option<Arc<Handed>>,
    links: Vec<Link>,
    next: u64,
    /// One piece in so many breaks its connection, and delays are long.
    rough: Option<u64>,
}

/// One connection: what serves it, and what carries its bytes.
#[derive(Debug)]
struct Link {
    number: u64,
    tasks: [AbortHandle; 2],
}

impl Network {
    pub fn new(trace: &Trace, seed: u64) -> Self {
        let chance = Chance::new(seed, "network");
        Network(Arc::new(Shared { trace: trace.clone(), chance, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no holder panics")
    }

    /// Whether delays are long and connections break by themselves, at one piece in so many.
    pub fn set_rough(&self, rough: Option<u64>) {
        self.0.trace.line(format_args!("network rough {rough:?}"));
        self.state().rough = rough;
    }

    /// The broker listens.
    pub fn open(&self, port: Handed) {
        self.state().port = Some(Arc::new(port));
    }

    /// The broker's machine is gone, and all connections with it.
    pub fn close(&self) {
        self.state().port = None;
        while self.cut_one() {}
    }

    /// Cuts a connection; whether there was one.
    pub fn cut_one(&self) -> bool {
        let mut state = self.state();
        state.links.retain(|link| !link.tasks.iter().all(AbortHandle::is_finished));
        if state.links.is_empty() {
            return false;
        }
        let which = self.0.chance.below(state.links.len() as u64);
        let link = state.links.remove(usize::try_from(which).expect("an index"));
        drop(state);
        self.end(&link);
        true
    }

    /// Cuts those of so many connections that are still there.
    fn cut(&self, numbers: &[u64]) {
        let is_meant = |link: &mut Link| numbers.contains(&link.number);
        let links: Vec<Link> = self.state().links.extract_if(.., is_meant).collect();
        links.iter().for_each(|link| self.end(link));
    }

    fn end(&self, link: &Link) {
        self.0.trace.line(format_args!("network cut {}", link.number));
        link.tasks.iter().for_each(AbortHandle::abort);
    }

    /// Connects a client to the broker, if it listens; the number of the connection comes with it.
    fn connect(&self) -> io::Result<(u64, Box<dyn Stream>)> {
        let mut state = self.state();
        let Some(port) = state.port.clone() else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        state.next += 1;
        let number = state.next;
        self.0.trace.line(format_args!("network connect {number}"));
        let (client, here) = tokio::io::duplex(WINDOW);
        let (there, server) = tokio::io::duplex(WINDOW);
        let serving = tokio::spawn(port.serve(server)).abort_handle();
        let carrying = tokio::spawn(carry(self.clone(), number, here, there)).abort_handle();
        state.links.push(Link { number, tasks: [carrying, serving] });
        Ok((number, Box::new(client)))
    }

    /// How long bytes take; `None`: the connection breaks instead.
    fn delay(&self) -> Option<Duration> {
        let (rough, chance) = (self.state().rough, &self.0.chance);
        match rough {
            Some(breaks_in) if chance.one_in(breaks_in) => None,
            _ if chance.one_in(3) => Some(Duration::ZERO),
            Some(_) if chance.one_in(20) => Some(chance.millis(100..3_000)),
            _ => Some(chance.millis(0..4)),
        }
    }
}

impl Dial for Network {
    fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let network = self.clone();
        Box::pin(async move {
            sleep(network.0.chance.millis(0..5)).await;
            network.connect().map(|(_, stream)| stream)
        })
    }
}

/// The network as one other machine has it, until that machine dies: what still runs of it reaches
/// nobody from then on.
#[derive(Debug, Clone)]
pub struct Place {
    network: Network,
    /// Its connections; `None` once it is dead.
    links: Arc<Mutex<Option<Vec<u64>>>>,
}

impl Place {
    pub fn new(network: Network) -> Self {
        Place { network, links: Arc::new(Mutex::new(Some(Vec::new()))) }
    }

    pub fn die(&self) {
        let links = self.links.lock().expect("no holder panics").take();
        self.network.cut(&links.unwrap_or_default());
    }
}

impl Dial for Place {
    fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let place = self.clone();
        Box::pin(async move {
            sleep(place.network.0.chance.millis(0..5)).await;
            let mut links = place.links.lock().expect("no holder panics");
            let Some(links) = &mut *links else {
                return Err(io::ErrorKind::NetworkDown.into());
            };
            let (number, stream) = place.network.connect()?;
            links.push(number);
            Ok(stream)
        })
    }
}

/// Carries bytes both ways until one end hangs up or the connection breaks.
async fn carry(network: Network, number: u64, client: DuplexStream, server: DuplexStream) {
    let ((from_client, to_client), (from_server, to_server)) = (split(client), split(server));
    let mut ways = JoinSet::new();
    ways.spawn(carry_one_way(network.clone(), number, "up", from_client, to_server));
    ways.spawn(carry_one_way(network.clone(), number, "down", from_server, to_client));
    // Either end takes the other with it.
    ways.join_next().await;
    network.0.trace.line(format_args!("network end {number}"));
}

async fn carry_one_way(
    network: Network,
    number: u64,
    way: &'static str,
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
) {
    let mut bytes = vec![0; 8 << 10];
    loop {
        let most = match network.0.chance.one_in(4) {
            true => 1 + network.0.chance.below(600),
            false => bytes.len() as u64,
        };
        let most = usize::try_from(most).expect("a small number");
        let read = from.read(&mut bytes[..most]).await.unwrap_or(0);
        let Some(delay) = network.delay().filter(|_| read > 0) else { return };
        sleep(delay).await;
        network.0.trace.line(format_args!("network {way} {number} {read}"));
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
