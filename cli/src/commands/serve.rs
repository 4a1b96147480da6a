//! `courant serve`: a broker alone.

use super::places::{refuse_foreign, refuse_mounted};
use super::port::{address, port};
use super::serving::{BrokerFlags, Serving};
use crate::signals::Signals;
use crate::{Error, seams, supervisor};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  courant serve --data /var/lib/courant --listen 127.0.0.1:8080
  courant mount --broker http://127.0.0.1:8080 journals
  courant journals list --broker.address http://127.0.0.1:8080";

/// Run a broker, without a mount.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// Where everything is kept. Made when it is missing.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Where to listen, for gRPC and HTTP: HOST:PORT or unix:///PATH. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    #[arg(required_unless_present = "port")]
    listen: Option<String>,

    /// Gazette's way to say it: a port on all addresses of this machine, or unix:///PATH. --listen
    /// goes before it.
    #[arg(long = "broker.port", value_name = "PORT", value_parser = port)]
    #[arg(env = "BROKER_PORT", hide_short_help = true)]
    port: Option<String>,

    #[command(flatten)]
    broker: BrokerFlags,
}

impl Serve {
    pub async fn run(self) -> Result<(), Error> {
        let listen = self.listen.as_deref().or(self.port.as_deref());
        let listen = listen.expect("clap asks for one of the two");
        let mut signals = Signals::take()?;
        seams::raise_open_files();
        refuse_mounted(&self.data)?;
        refuse_foreign(&self.data)?;
        let serving = Serving::start(&self.data, listen, &self.broker).await?;
        let ready = format!("ready: broker at {}", serving.endpoint);
        let supervised = supervisor::ready(&ready, serving.check())?;
        let signal = signals.next().await;
        tracing::info!(signal, "ending");
        drop(supervised);
        tokio::select! {
            biased;
            () = signals.insistent() => Err(Error::Forced),
            ended = serving.stop() => ended,
        }
    }
}
