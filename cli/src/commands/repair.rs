//! `courant repair`: a data directory that a start refuses, or whose bytes are wrong, opens again.

mod summary;

use super::inspect::existing;
use crate::{Error, output, random, seams, time};
use broker::backing::{self, KEY_SPACE};
use index::Recovered;
use index::disk::{Disk, DryDisk, RealDisk};
use index::repair::{self, Step};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  courant repair --dry-run ./courant-data               what would be done
  courant repair ./courant-data

All that is taken out is kept below DATA/aside/repair-TIME; remove it when nobody needs it. What is
wrong and in no store is named damaged from then on: reads of it are EIO, and the rest goes on. A
sound directory is not changed; what an unclean stop left is for the next start.";

/// Make a damaged data directory open again. No broker may run on it.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Repair {
    /// The data directory.
    data: PathBuf,

    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl Repair {
    pub async fn run(self) -> Result<(), Error> {
        let data = existing(&self.data)?;
        let real = RealDisk::new(data).map_err(Error::reading(data))?;
        let real: Arc<dyn Disk> = Arc::new(real);
        let disk: Arc<dyn Disk> = match self.dry_run {
            true => Arc::new(DryDisk::new(real)),
            false => real,
        };
        let mut summary = Summary::new(self.dry_run);
        let mut told = Ok(());
        let mut tell = |step: Step| {
            told = output::print(&format!("{}{step}\n", summary.would()));
            summary.count(&step);
        };
        let recovered = self.mend(disk, &mut tell).await?;
        told?;
        output::print(&match recovered {
            Some(recovered) => summary.of(&recovered),
            None => "nothing had to be repaired, and nothing was changed\n".to_owned(),
        })
    }

    /// `None` where nothing has to be done, and nothing was.
    async fn mend(
        &self,
        disk: Arc<dyn Disk>,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Option<Recovered>, Error> {
        // Nobody may run on it while its key space is looked at.
        let lock = repair::lock(&*disk).map_err(Error::data(&self.data))?;
        let clock = seams::clock();
        let seconds = i64::try_from(clock.now_us() / 1_000_000).unwrap_or(i64::MAX);
        let name = format!("repair-{}", time::format(seconds).replace(':', "-"));
        let (names, lost) = match backing::names(disk.clone()) {
            Ok(Some(names)) => (names, None),
            Ok(None) => (BTreeMap::new(), Some(broker::KeySpaceError::Gone)),
            Err(broker::Error::KeySpace(error)) if error.is_damage() => {
                (BTreeMap::new(), Some(error))
            }
            Err(error) => return Err(Error::data(&self.data)(error)),
        };
        drop(lock);
        let is_needed = lost.is_some()
            || repair::is_needed(&disk, clock.clone(), &names).map_err(Error::data(&self.data))?;
        if !is_needed {
            return Ok(None);
        }
        let mut repair = repair::Repair::new(disk, clock, &name, tell);
        let recovered = repair.run(&names).map_err(Error::data(&self.data))?;
        if let Some(why) = lost.filter(|_| recovered.journals > 0) {
            self.renew_keys(&mut repair, why).await?;
        }
        Ok(Some(recovered))
    }

    /// Makes a key space of the journals that the directory has. The damaged one stays until there
    /// is another, so that nothing starts without either.
    async fn renew_keys(
        &self,
        repair: &mut repair::Repair<'_>,
        why: impl ToString,
    ) -> Result<(), Error> {
        let journals = repair.journals().map_err(Error::data(&self.data))?;
        let rebuilt = backing::rebuild(journals.into_keys(), random::number()?).await;
        let rebuilt = rebuilt.map_err(Error::data(&self.data))?;
        let done = repair
            .rekey(&rebuilt.lives)
            .and_then(|()| repair.replace(Path::new(KEY_SPACE), &rebuilt.image, why));
        done.map_err(Error::data(&self.data))
    }
}
