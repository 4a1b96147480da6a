//! `courant up`: a broker and a mount of its journals, in one process.

use super::mounting::{MountFlags, Mounted};
use super::places::{refuse_foreign, refuse_mounted, refuse_nested};
use super::port::address;
use super::serving::{BrokerFlags, Serving};
use super::staging::Place;
use crate::signals::Signals;
use crate::{Error, seams, supervisor};
use ::mount::mountpoint::MountPoint;
use client::{Durability, Journals};
use std::path::PathBuf;
use std::sync::Arc;

/// The directory of what waits to be committed through the mount, below `--data`.
pub(super) const STAGING: &str = "mount-staging";

const EXAMPLES: &str = "\
Examples:
  courant up
  courant up --data /var/lib/courant --mount /srv/journals --listen 0.0.0.0:8080
  courant up --durability disk --local-budget 50G

Then, in another shell:
  echo hello >> journals/log
  tail -c +1 -f journals/log
  echo more | curl -T - http://127.0.0.1:8080/local/log
  curl 'http://127.0.0.1:8080/local/log?offset=0&block=true'

SIGINT or SIGTERM ends it: appends in flight are finished, all is synced, the mount goes. The same
command on the same directory has everything again, after kill -9 too.";

/// Run a broker and mount its journals, with nothing but a directory.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Up {
    /// Where everything is kept. Made when it is missing.
    #[arg(long, value_name = "DIR", default_value = "./courant-data")]
    data: PathBuf,

    /// Where journals are shown as files. Made when it is missing.
    #[arg(long, value_name = "DIR", default_value = "./journals")]
    mount: PathBuf,

    /// Where the broker listens, for gRPC and HTTP: HOST:PORT or unix:///PATH. Port 0 takes a free
    /// one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: String,

    #[command(flatten)]
    broker: BrokerFlags,

    #[command(flatten)]
    mounting: MountFlags,
}

impl Up {
    pub async fn run(self) -> Result<(), Error> {
        let mut signals = Signals::take()?;
        seams::raise_open_files();
        refuse_nested(&self.data, &self.mount)?;
        refuse_mounted(&self.data)?;
        refuse_foreign(&self.data)?;
        let point = MountPoint::claim(&self.mount)?;
        let serving = Serving::start(&self.data, &self.listen, &self.broker).await?;
        // Writes to files are as safe as on any file system, unless more was asked for.
        let durability = self.broker.durability.map_or(Durability::Memory, Durability::from);
        let journals: Arc<dyn Journals> = Arc::new(serving.broker.clone());
        let point = point.showing(&serving.endpoint);
        let (data, staging) = (&self.data, Place::within(&self.data, STAGING));
        let mounted = Mounted::start(point, journals, &self.mounting, durability, data, staging);
        let mut mounted = match mounted.await {
            Ok(mounted) => mounted,
            Err(error) => {
                serving.stop().await?;
                return Err(error);
            }
        };
        let (path, endpoint) = (mounted.path().display(), &serving.endpoint);
        let ready = format!("ready: journals at {path}, broker at {endpoint}");
        let supervised = supervisor::ready(&ready, serving.check())?;
        tokio::select! {
            biased;
            signal = signals.next() => tracing::info!(signal, "ending"),
            () = mounted.ended() => tracing::info!("unmounted by somebody: ending"),
        }
        drop(supervised);
        let ending = async {
            mounted.stop().await;
            serving.stop().await
        };
        tokio::select! {
            biased;
            () = signals.insistent() => Err(Error::Forced),
            ended = ending => ended,
        }
    }
}
