//! A broker behind its port, from the flags that `up` and `serve` share to its end.

use super::port::PortFlags;
use crate::{Error, random, seams, size};
use broker::server::Server;
use broker::{Broker, Config, Memory};
use client::{Durability, Journals};
use futures::future::BoxFuture;
use index::disk::{Disk, RealDisk};
use protocol::Journal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The file in a data directory that names the broker which runs on it, or did.
pub const ADDRESS: &str = "address";

/// The file stores of a data directory, unless `--file-root` names another place.
pub const STORE: &str = "store";

/// A journal that is asked for to see whether the broker answers.
const CHECKED: &str = "courant/self-check";

/// When an append is acknowledged.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Synced to disk: survives a power cut.
    Disk,
    /// In memory of the system: survives kill -9, and a power cut but for the last second.
    Memory,
}

impl From<Guarantee> for Durability {
    fn from(guarantee: Guarantee) -> Self {
        match guarantee {
            Guarantee::Disk => Durability::Disk,
            Guarantee::Memory => Durability::Memory,
        }
    }
}

/// What a broker is told.
#[derive(clap::Args, Debug)]
pub struct BrokerFlags {
    /// When appends are acknowledged. Not given: those over the network on disk, writes to files
    /// in memory, as on any file system. fsync always means disk.
    #[arg(long, value_enum)]
    pub durability: Option<Guarantee>,

    /// Local bytes beyond which what is in a store is freed, such as 10G.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub local_budget: Option<u64>,

    /// Bytes of the disk that stay free, if what is in a store can be freed for it.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub min_free: Option<u64>,

    /// The URL by which clients elsewhere reach this broker [default: where it listens].
    #[arg(long, value_name = "URL", value_parser = url)]
    pub advertise: Option<String>,

    /// Gazette's way to say it: the host name in that URL. --advertise goes before it.
    #[arg(long = "broker.host", value_name = "HOST", env = "BROKER_HOST", hide_short_help = true)]
    pub host: Option<String>,

    /// The directory in which stores of file:/// URLs lie [default: `store` in the data directory].
    #[arg(long, visible_alias = "broker.file-root", value_name = "DIR", env = "BROKER_FILE_ROOT")]
    pub file_root: Option<PathBuf>,

    /// Bytes a second that each journal takes at most, such as 10M [default: as its spec says].
    #[arg(long, visible_alias = "broker.max-append-rate", value_name = "SIZE")]
    #[arg(env = "BROKER_MAX_APPEND_RATE", value_parser = size::parse)]
    pub max_append_rate: Option<u64>,

    /// Bytes a second below which an append is given up, once its client rests for a second. Slow
    /// clients hold nobody up, so nothing is asked of them unless this is given.
    #[arg(long, visible_alias = "broker.min-append-rate", value_name = "SIZE")]
    #[arg(env = "BROKER_MIN_APPEND_RATE", value_parser = size::parse)]
    pub min_append_rate: Option<u64>,

    /// Memory for what grows with use: content on its way, requests, reads; at least 64M.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "1G")]
    pub max_memory: u64,

    #[command(flatten)]
    pub port: PortFlags,
}

fn url(text: &str) -> Result<String, String> {
    protocol::check_endpoint(text).map_err(|invalid| invalid.to_string())?;
    Ok(text.to_owned())
}

/// A broker that serves.
pub struct Serving {
    pub broker: Broker,
    pub endpoint: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Serving {
    /// Takes the port, opens the data, serves. Nothing is left behind when it fails.
    pub async fn start(data: &Path, listen: &str, flags: &BrokerFlags) -> Result<Serving, Error> {
        let settings = flags.port.settings()?;
        let server = Server::bind(listen).await?.with(settings);
        let endpoint = server.endpoint();
        let config = configure(data, advertised(&server, flags), flags)?;
        let endpoint = short(endpoint);
        let disk = config.disk.clone();
        let broker = Broker::open(config).await.map_err(Error::data(data))?;
        leave_address(&*disk, &endpoint);
        let (stop, stopped) = oneshot::channel();
        // A sender that is dropped stops as well.
        let until = async move { drop(stopped.await) };
        let serving = tokio::spawn(server.serve(broker.clone(), until));
        Ok(Serving { broker, endpoint, stop, serving })
    }

    /// Comes to its end when the broker answers: whether a journal is there, of which it does not
    /// matter whether it is.
    pub fn check(&self) -> impl Fn() -> BoxFuture<'static, ()> + Send + 'static {
        let broker = self.broker.clone();
        let journal = Journal::new(CHECKED).expect("it is a name");
        move || {
            let (broker, journal) = (broker.clone(), journal.clone());
            Box::pin(async move { drop(Journals::stat(&broker, &journal).await) })
        }
    }

    /// Ends requests in flight, syncs and closes the data.
    pub async fn stop(self) -> Result<(), Error> {
        // A server that has ended already has nobody to be told.
        let _ = self.stop.send(());
        if let Err(error) = self.serving.await {
            tracing::error!(%error, "the server's task failed");
        }
        Ok(self.broker.close().await?)
    }
}

/// Leaves the broker's URL in its data directory, for commands that get the directory alone.
fn leave_address(disk: &dyn Disk, endpoint: &str) {
    let text = format!("{endpoint}\n");
    if let Err(error) = index::disk::replace(disk, Path::new(ADDRESS), text.as_bytes()) {
        tracing::warn!(%error, "the data directory names no broker: backups need --broker");
    }
}

/// The same URL as people write it: that of a unix socket has a host for the sake of routes alone.
fn short(endpoint: String) -> String {
    match endpoint.strip_prefix("unix://localhost/") {
        Some(path) => format!("unix:///{path}"),
        None => endpoint,
    }
}

/// The URL that routes name.
fn advertised(server: &Server, flags: &BrokerFlags) -> String {
    let endpoint = server.endpoint();
    match (&flags.advertise, &flags.host, server.address()) {
        (Some(url), _, _) => url.clone(),
        (None, Some(host), Some(address)) => {
            let scheme = endpoint.split(':').next().unwrap_or("http");
            format!("{scheme}://{host}:{}", address.port())
        }
        (None, _, _) => endpoint,
    }
}

fn configure(data: &Path, endpoint: String, flags: &BrokerFlags) -> Result<Config, Error> {
    let opened = |path: &Path| {
        RealDisk::new(path).map_err(Error::io(format!("make the directory {}", path.display())))
    };
    let disk = Arc::new(opened(data)?);
    let files = flags.file_root.clone().unwrap_or_else(|| data.join(STORE));
    let files = Arc::new(opened(&files)?);
    let durability = flags.durability.map_or(Durability::Disk, Durability::from);
    Ok(Config {
        durability,
        endpoint,
        memory: Memory::of(flags.max_memory),
        append_rate_max: flags.max_append_rate.unwrap_or(0),
        append_rate_min: flags.min_append_rate.unwrap_or(0),
        space: index::Options {
            local_budget: flags.local_budget,
            min_free: flags.min_free,
            ..index::Options::default()
        },
        ..Config::over(disk, files, seams::clock(), random::number()?)
    })
}
