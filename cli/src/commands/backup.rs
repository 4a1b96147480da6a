//! `courant backup`: a copy of a data directory, whether a broker runs on it or not.

mod target;

use super::inspect::existing;
use super::places::{refuse_mounted, refuse_nested};
use super::serving::STORE;
use super::up::STAGING;
use crate::connection::Connection;
use crate::progress::Progress;
use crate::{Error, output, seams, size};
use broker::backing::KEY_SPACE;
use client::{HeldMoment, Holding};
use index::backup::{self, Backup};
use index::disk::{Disk, RealDisk};
use index::file_store::is_unfinished;
use index::record::Position;
use index::{Moment, Recovered};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use target::Target;
use tokio::task::block_in_place;

const EXAMPLES: &str = "\
Examples:
  courant backup ./courant-data /backup/monday
  courant inspect /backup/monday                        verify every sum of it
  courant up --data /backup/monday --mount ./old        use it; or a copy of it

A broker that runs on the directory goes on, and frees nothing meanwhile. The copy is of a moment
after the command began: all that was acknowledged before is in it. Stores elsewhere are not.";

/// What of the staging of a mount was set aside for people.
const MOUNT_ASIDE: &str = "mount-staging/aside";

/// Copy a data directory, while a broker runs on it or not.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct BackUp {
    /// The data directory.
    data: PathBuf,

    /// Where the copy goes: a directory that does not exist, or is empty.
    destination: PathBuf,

    /// The broker that runs on the directory is found by a file in it, unless --broker names it.
    #[command(flatten)]
    connection: Connection,
}

impl BackUp {
    pub async fn run(self) -> Result<(), Error> {
        let data = existing(&self.data)?;
        refuse_nested(data, &self.destination)?;
        refuse_mounted(&self.destination)?;
        let from = RealDisk::new(data).map_err(Error::io(format!("open {}", data.display())))?;
        let target = Target::make(&self.destination, data)?;
        let mut copied = 0;
        let made = self.make(&from, &target, &mut copied).await;
        let recovered = match made {
            Ok(recovered) => recovered,
            Err(error) => {
                target.discard();
                return Err(error);
            }
        };
        target.keep()?;
        let (journals, copied) = (recovered.journals, size::format(copied));
        let to = self.destination.display();
        output::print(&format!("{to}: {journals} journals, {copied} copied\n"))
    }

    async fn make(
        &self,
        from: &RealDisk,
        target: &Target,
        copied: &mut u64,
    ) -> Result<Recovered, Error> {
        let shown = Progress::bytes("copying", None, true);
        let mut progress = |len| {
            *copied += len;
            shown.advance(len);
        };
        let to: Arc<dyn Disk> = target.disk()?;
        let mut copy = Backup::new(from, to, &mut progress);
        let of = match backup::lock(from) {
            Ok(_held) => {
                if let Some(url) = self.connection.named() {
                    let data = self.data.display();
                    output::note(&format!("no broker runs on {data}: {url} is not asked"));
                }
                block_in_place(|| at_rest(&mut copy)).map_err(Error::data(&self.data))?;
                None
            }
            Err(index::Error::InUse(_)) => Some(self.running(&mut copy).await?),
            Err(error) => return Err(Error::data(&self.data)(error)),
        };
        let finished = block_in_place(|| copy.finish(seams::clock(), of));
        // What is damaged in the copy is damaged in the original.
        finished.map_err(|error| match error {
            index::Error::Damaged(..) => Error::data(&self.data)(error),
            other => Error::data(&self.destination)(other),
        })
    }

    /// Copies under a running broker. The order is what makes it whole: see `courant.proto`, Hold.
    async fn running(&self, copy: &mut Backup<'_>) -> Result<Moment, Error> {
        let address = address_of(&self.data);
        let remote = self.connection.remote_or(address.as_deref())?;
        let mut holding = remote.hold().await?;
        let named = || Error::data(&self.data);
        block_in_place(|| {
            copy.begin()?;
            copy.tree(Path::new(MOUNT_ASIDE), |_| false)?;
            copy.tree(Path::new(STORE), is_unfinished)
        })
        .map_err(named())?;
        holding.quiet().await?;
        // What was stored and deleted meanwhile, which is little.
        block_in_place(|| copy.tree(Path::new(STORE), is_unfinished)).map_err(named())?;
        let held = holding.moment().await?;
        let moment = moment_of(&held);
        block_in_place(|| {
            copy.log_of(moment)?;
            copy.put(Path::new(KEY_SPACE), &held.key_space)
        })
        .map_err(named())?;
        self.mirrors(copy, holding).await?;
        Ok(moment)
    }

    async fn mirrors(&self, copy: &mut Backup<'_>, mut holding: Holding) -> Result<(), Error> {
        holding.log_copied().await?;
        block_in_place(|| copy.mirrors()).map_err(Error::data(&self.data))?;
        Ok(holding.end().await?)
    }
}

/// Copies a directory that nobody runs on, whose lock is held here.
fn at_rest(copy: &mut Backup<'_>) -> Result<(), index::Error> {
    copy.begin()?;
    copy.whole_log()?;
    copy.one(Path::new(KEY_SPACE))?;
    copy.tree(Path::new(STAGING), |name| name == "lock")?;
    copy.tree(Path::new(STORE), is_unfinished)?;
    copy.mirrors()
}

fn moment_of(held: &HeldMoment) -> Moment {
    let (start, end) = held.log;
    let (start, end) = (Position(start), Position(end));
    Moment { start, end, checkpoint_crc: held.checkpoint_crc }
}

/// The URL of the broker that ran on a data directory last, as it left it there.
fn address_of(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join(super::serving::ADDRESS)).ok()?;
    Some(text.trim().to_owned()).filter(|url| !url.is_empty())
}
