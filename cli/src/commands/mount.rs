//! `courant mount`: the journals of a broker elsewhere, or of a store with no broker, as files.

use super::mounting::{MountFlags, Mounted};
use super::presence;
use super::serving::Guarantee;
use super::staging::Place;
use crate::connection::Connection;
use crate::signals::Signals;
use crate::{Error, seams, size, supervisor};
use ::mount::mountpoint::MountPoint;
use client::{Bucket, Cached, Durability, Fragments, Journals, Postfix};
use index::disk::{Disk, RealDisk};
use protocol::duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  courant mount --broker http://127.0.0.1:8080 journals
  courant mount --broker http://broker:8080 --prefix logs/ --read-only /srv/logs
  courant mount --broker http://broker:8080 --cache /var/cache/courant --cache-size 50G journals
  courant mount --bucket s3://logs/prefix/ journals          read-only, with no broker
  courant mount --bucket file:///store/ --postfix 'date=*/hour=*' journals
  courant umount journals

Stored fragments are read past the broker: by the URLs that it signs, else with this process's own
credentials (for file stores, --file-root), and where neither works through the broker.";

/// Mount the journals of a broker, or of a fragment store.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Mount {
    #[command(flatten)]
    bucket: BucketFlags,

    /// The directory below which the broker's, or the bucket's, file:// stores lie [default: / for
    /// a bucket].
    #[arg(long, value_name = "DIR")]
    file_root: Option<PathBuf>,

    /// A directory on a local disk for what is read: what was read once is local, and the kernel
    /// itself reads what is whole there. One mount's alone; made when it is missing. Without it
    /// nothing is kept.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// The bytes that the cache may take, such as 50G [default: a tenth of the disk's free space,
    /// 10G at most]. Half of them at most are of journals that the kernel reads itself.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "cache")]
    cache_size: Option<u64>,

    /// What write(2) waits for [default: memory, as on any file system]. fsync always means disk.
    #[arg(long, value_enum, conflicts_with = "url")]
    durability: Option<Guarantee>,

    #[command(flatten)]
    mounting: MountFlags,

    /// The directory to mount on. Made when it is missing.
    mountpoint: PathBuf,

    #[command(flatten)]
    connection: Connection,
}

/// How a store is mounted with no broker.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Bucket")]
struct BucketFlags {
    /// The store's URL, as in a spec: its journals are found by listing it, and are read-only. No
    /// broker is asked then.
    #[arg(long = "bucket", id = "url", value_name = "URL", conflicts_with = "allow_delete")]
    url: Option<String>,

    /// The directories between a journal and its fragments, such as `date=*/hour=*`; may be given
    /// several times, and empty for none [default: told by names and offsets].
    #[arg(long, value_name = "PATTERN", requires = "url")]
    postfix: Vec<String>,

    /// How often the store is listed. The end of a journal that is followed is looked for more
    /// often.
    #[arg(long, value_name = "DURATION", requires = "url", default_value = "30s")]
    #[arg(value_parser = refresh)]
    refresh: Duration,
}

fn refresh(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(interval) if !interval.is_zero() => Ok(interval),
        _ => Err(format!("expected a duration above 0, such as 30s ({text})")),
    }
}

/// The directory of the cache's bytes, below `--cache`.
const MIRRORS: &str = "mirrors";

/// The directory of what waits to be committed, below `--cache`.
const STAGING: &str = "staging";

/// The most that a cache takes without being told how much.
const CACHE_SIZE_MAX: u64 = 10 << 30;

impl Mount {
    pub async fn run(mut self) -> Result<(), Error> {
        let mut signals = Signals::take()?;
        seams::raise_open_files();
        let cache = self.cache.clone().unwrap_or_else(std::env::temp_dir);
        let disk = directory(&cache)?;
        let point = MountPoint::claim(&self.mountpoint)?.showing(self.url());
        let mut watching = None;
        // What is not there is told before anything is mounted.
        let (journals, source): (Arc<dyn Journals>, String) = match self.bucket.url.clone() {
            Some(url) => {
                self.mounting = self.mounting.for_bucket();
                let bucket = self.bucket.open(&url, self.file_root.as_deref()).await?;
                (Arc::new(bucket), format!("read-only from the store {url}"))
            }
            None => {
                let mut remote = self.connection.remote()?.with_room_of(Arc::new(disk));
                if let Some(root) = &self.file_root {
                    remote = remote.with_files(seams::file_root(root)?);
                }
                remote.probe().await?;
                remote.check_listing().await?;
                let source = format!("broker at {}", remote.url());
                watching = Some(presence::tell(remote.url(), remote.presence()));
                (Arc::new(remote), source)
            }
        };
        let kept = self.cached(&journals, &source)?;
        let journals = kept.clone().map_or(journals, |kept| kept as Arc<dyn Journals>);
        let durability = self.durability.map_or(Durability::Memory, Durability::from);
        let staging = match &self.cache {
            Some(cache) => Place::within(cache, STAGING),
            None => Place::private(&self.mountpoint)?,
        };
        let mounting = &self.mounting;
        let starting = Mounted::start(point, journals, mounting, durability, &cache, staging);
        let mut mounted = match starting.await {
            Ok(mounted) => mounted,
            Err(error) => {
                put_away(kept).await;
                return Err(error);
            }
        };
        let path = mounted.path().display();
        let ready = format!("ready: journals at {path}, {source}");
        let supervised = supervisor::ready(&ready, mounted.check())?;
        tokio::select! {
            biased;
            signal = signals.next() => tracing::info!(signal, "ending"),
            () = mounted.ended() => tracing::info!("unmounted by somebody: ending"),
        }
        drop((supervised, watching));
        let end = async {
            mounted.stop().await;
            put_away(kept).await;
        };
        tokio::select! {
            biased;
            () = signals.insistent() => Err(Error::Forced),
            () = end => Ok(()),
        }
    }

    /// Where the journals come from, as it was given.
    fn url(&self) -> &str {
        self.bucket.url.as_deref().unwrap_or_else(|| self.connection.address())
    }

    /// The journals of a source with the cache that was asked for, if one was.
    fn cached(
        &self,
        journals: &Arc<dyn Journals>,
        source: &str,
    ) -> Result<Option<Arc<Cached>>, Error> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let disk = directory(&cache.join(MIRRORS))?;
        let free = disk.space().map_or(0, |space| space.free);
        let size = self.cache_size.unwrap_or((free / 10).min(CACHE_SIZE_MAX));
        // Which journals a store has depends on how names are told from its listing.
        let source = format!("{source} {:?}", self.bucket.postfix);
        let cached = Cached::open(journals.clone(), Arc::new(disk), size, &source)?;
        Ok(Some(Arc::new(cached)))
    }
}

/// What the cache has is there for the next mount.
async fn put_away(kept: Option<Arc<Cached>>) {
    if let Some(kept) = kept {
        kept.close().await;
    }
}

fn directory(path: &Path) -> Result<RealDisk, Error> {
    let attempt = format!("make the directory {}", path.display());
    RealDisk::new(path).map_err(Error::io(attempt))
}

impl BucketFlags {
    async fn open(&self, url: &str, file_root: Option<&Path>) -> Result<Bucket, Error> {
        let files = seams::file_root(file_root.unwrap_or(Path::new("/")))?;
        let store = Fragments::new(Some(files)).given(url)?;
        Ok(Bucket::open_with(store, postfix(&self.postfix), self.refresh).await?)
    }
}

/// How postfixes are told, by the values of `--postfix`.
pub fn postfix(patterns: &[String]) -> Postfix {
    match patterns {
        [] => Postfix::Guessed,
        patterns => Postfix::Known(patterns.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        mount: Mount,
    }

    #[test]
    fn a_broker_or_a_bucket_is_mounted() {
        // Case: arguments, whether they are understood
        let cases: [(&[&str], bool); 12] = [
            (&["m"], true),
            (&["--broker", "http://h:1", "--file-root", "/srv", "m"], true),
            (&["--bucket", "s3://bucket/", "m"], true),
            (&["--bucket", "file:///", "--postfix", "a=*/b=*", "--refresh", "5s", "m"], true),
            (&["--bucket", "file:///", "--refresh", "0s", "m"], false),
            (&["--bucket", "file:///", "--allow-delete", "m"], false),
            (&["--bucket", "file:///", "--durability", "disk", "m"], false),
            (&["--postfix", "a=*", "m"], false),
            (&["--bucket", "file:///"], false),
            (&["--cache", "c", "--cache-size", "1G", "m"], true),
            (&["--cache", "c", "--cache-size", "big", "m"], false),
            (&["--cache-size", "1G", "m"], false),
        ];
        for (arguments, expected) in cases {
            let parsed = Line::try_parse_from(["mount"].iter().chain(arguments));
            assert_eq!(parsed.is_ok(), expected, "{arguments:?}");
        }
        assert_eq!(postfix(&["".to_owned()]), Postfix::Known(vec![String::new()]));
        assert_eq!(postfix(&[]), Postfix::Guessed);
    }
}
