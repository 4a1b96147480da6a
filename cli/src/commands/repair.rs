//! `courant repair`: a data directory that a start refuses, or whose bytes are wrong, opens again.

use super::inspect::existing;
use crate::{Error, output, random, seams, time};
use broker::backing::{self, KEY_SPACE};
use index::disk::{Disk, DryDisk, RealDisk};
use index::repair::{self, Step};
use index::{Recovered, backup};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  courant repair --dry-run ./courant-data               what would be done
  courant repair ./courant-data

All that is taken out is kept below DATA/aside/repair-TIME; remove it when nobody needs it. What is
wrong and in no store is named damaged from then on: reads of it are EIO, and the rest goes on.";

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
        let data = existing(&self.data).or_else(|error| self.without_mark(error))?;
        let real = RealDisk::new(data).map_err(Error::io(format!("open {}", data.display())))?;
        let real: Arc<dyn Disk> = Arc::new(real);
        let disk: Arc<dyn Disk> = match self.dry_run {
            true => Arc::new(DryDisk::new(real)),
            false => real,
        };
        let (mut steps, mut told) = (0, Ok(()));
        let mut tell = |step: Step| {
            let would = if self.dry_run { "would be: " } else { "" };
            told = output::print(&format!("{would}{step}\n"));
            steps += 1;
        };
        let recovered = self.mend(disk, &mut tell).await?;
        told?;
        output::print(&summary(&recovered, steps))
    }

    async fn mend(
        &self,
        disk: Arc<dyn Disk>,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Recovered, Error> {
        // Nobody may run on it while its key space is looked at.
        let lock = backup::lock(&*disk).map_err(Error::data(&self.data))?;
        let clock = seams::clock();
        let seconds = i64::try_from(clock.now_us() / 1_000_000).unwrap_or(i64::MAX);
        let name = format!("repair-{}", time::format(seconds).replace(':', "-"));
        let mut repair = repair::Repair::new(disk.clone(), clock, &name, tell);
        let (names, lost) = match backing::names(disk) {
            Ok(Some(names)) => (names, None),
            Ok(None) => (BTreeMap::new(), Some(broker::KeySpaceError::Gone)),
            Err(broker::Error::KeySpace(error)) if error.is_damage() => {
                (BTreeMap::new(), Some(error))
            }
            Err(error) => return Err(Error::data(&self.data)(error)),
        };
        drop(lock);
        let recovered = repair.run(&names).map_err(Error::data(&self.data))?;
        if let Some(why) = lost.filter(|_| recovered.journals > 0) {
            self.renew_keys(&mut repair, why).await?;
        }
        Ok(recovered)
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

    /// A directory without its mark may be one of ours all the same: it has a log.
    fn without_mark(&self, error: Error) -> Result<&Path, Error> {
        match self.data.join("log").is_dir() && self.data.join("mirror").is_dir() {
            true => Ok(&self.data),
            false => Err(error),
        }
    }
}

/// What the directory is now. What recovery found is told by a start, too.
fn summary(recovered: &Recovered, steps: usize) -> String {
    let mut lines = Vec::new();
    let damaged = recovered.damaged.iter();
    lines.extend(damaged.map(|(journal, span)| format!("damaged: {journal} {span}")));
    let lost = recovered.lost.iter();
    lines.extend(lost.map(|(journal, span)| format!("lost: {journal} {span}")));
    lines.extend(recovered.orphans.iter().map(|file| format!("of no journal: {file}")));
    let places = recovered.damaged_log.iter();
    lines.extend(places.map(|(from, to)| format!("the log from {from} to {to} went to aside")));
    let journals = recovered.journals;
    lines.push(match steps {
        0 => format!("journals: {journals}; nothing had to be repaired"),
        _ => format!("journals: {journals}; steps: {steps}"),
    });
    lines.join("\n") + "\n"
}
