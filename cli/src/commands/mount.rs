//! `courant mount`: the journals of a broker elsewhere, as files.

use super::journals::broker;
use super::mounting::{MountFlags, Mounted};
use super::serving::Guarantee;
use crate::signals::Signals;
use crate::{Error, output, seams};
use ::mount::mountpoint::MountPoint;
use client::{Durability, Journals, Remote};
use index::disk::RealDisk;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  courant mount --broker http://127.0.0.1:8080 journals
  courant mount --broker http://broker:8080 --prefix logs/ --read-only /srv/logs
  courant umount journals";

/// Mount the journals of a broker.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Mount {
    /// The broker's URL. A Gazette broker will do, without fsync to disk.
    #[arg(long, value_name = "URL", value_parser = broker)]
    broker: String,

    /// Where this mount may keep local bytes. Made when it is missing.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// What write(2) waits for [default: memory, as on any file system]. fsync always means disk.
    #[arg(long, value_enum)]
    durability: Option<Guarantee>,

    #[command(flatten)]
    mounting: MountFlags,

    /// The directory to mount on. Made when it is missing.
    mountpoint: PathBuf,
}

impl Mount {
    pub async fn run(self) -> Result<(), Error> {
        let mut signals = Signals::take()?;
        seams::raise_open_files();
        let cache = self.cache.clone().unwrap_or_else(std::env::temp_dir);
        let attempt = format!("make the directory {}", cache.display());
        let disk = RealDisk::new(&cache).map_err(Error::io(attempt))?;
        let remote = Remote::new(&self.broker)?.with_room_of(Arc::new(disk));
        let point = MountPoint::claim(&self.mountpoint)?;
        // A broker that is not there is told before anything is mounted.
        remote.probe().await?;

        let durability = self.durability.map_or(Durability::Memory, Durability::from);
        let journals: Arc<dyn Journals> = Arc::new(remote);
        let mut mounted = Mounted::start(point, journals, &self.mounting, durability, &cache)?;
        let (path, broker) = (mounted.path().display(), &self.broker);
        output::print(&format!("ready: journals at {path}, broker at {broker}\n"))?;
        tokio::select! {
            biased;
            signal = signals.next() => tracing::info!(signal, "ending"),
            () = mounted.ended() => tracing::info!("unmounted by somebody: ending"),
        }
        tokio::select! {
            biased;
            () = signals.insistent() => Err(Error::Forced),
            () = mounted.stop() => Ok(()),
        }
    }
}
