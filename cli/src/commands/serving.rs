//! A broker behind its port, from the flags that `up` and `serve` share to its end.

use crate::{Error, random, seams, size};
use broker::server::Server;
use broker::{Broker, Config};
use client::Durability;
use index::disk::RealDisk;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

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

    /// The directory in which stores of file:/// URLs lie [default: `store` in the data directory].
    #[arg(long, value_name = "DIR")]
    pub file_root: Option<PathBuf>,
}

/// HOST:PORT, as far as it can be checked without the network.
pub fn address(text: &str) -> Result<String, String> {
    let refused = || format!("expected HOST:PORT, such as 127.0.0.1:8080 ({text})");
    let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
    let is_host = !host.contains(|c: char| c.is_whitespace() || c == '/' || c == '@');
    match port.parse::<u16>() {
        Ok(_) if is_host && host.is_empty() => Ok(format!("0.0.0.0:{port}")),
        Ok(_) if is_host => Ok(text.to_owned()),
        _ => Err(refused()),
    }
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
        let server = Server::bind(listen).await?;
        let endpoint = server.endpoint();
        let config = configure(data, &endpoint, flags)?;
        let broker = Broker::open(config).await.map_err(Error::data(data))?;
        let (stop, stopped) = oneshot::channel();
        // A sender that is dropped stops as well.
        let until = async move { drop(stopped.await) };
        let serving = tokio::spawn(server.serve(broker.clone(), until));
        Ok(Serving { broker, endpoint, stop, serving })
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

fn configure(data: &Path, endpoint: &str, flags: &BrokerFlags) -> Result<Config, Error> {
    let opened = |path: &Path| {
        RealDisk::new(path).map_err(Error::io(format!("make the directory {}", path.display())))
    };
    let disk = Arc::new(opened(data)?);
    let files = flags.file_root.clone().unwrap_or_else(|| data.join("store"));
    let files = Arc::new(opened(&files)?);
    let durability = flags.durability.map_or(Durability::Disk, Durability::from);
    Ok(Config {
        durability,
        endpoint: flags.advertise.clone().unwrap_or_else(|| endpoint.to_owned()),
        space: index::Options {
            local_budget: flags.local_budget,
            min_free: flags.min_free,
            ..index::Options::default()
        },
        ..Config::over(disk, files, seams::clock(), random::number()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_host_and_port() {
        // Case: the text, what is listened on
        let cases = [
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("localhost:0", Some("localhost:0")),
            ("[::1]:8080", Some("[::1]:8080")),
            (":8080", Some("0.0.0.0:8080")),
            ("no address", None),
            ("8080", None),
            ("host:80800", None),
            ("http://host:80", None),
            ("two words:80", None),
        ];
        for (text, expected) in cases {
            assert_eq!(address(text).ok().as_deref(), expected, "{text}");
        }
    }
}
