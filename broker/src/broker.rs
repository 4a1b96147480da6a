//! The broker itself: what it is opened with, what it holds, and how it ends.

use crate::append::Staging;
use crate::backing;
use crate::driver::Drivers;
use crate::evict::Unfreed;
use crate::listings::Listings;
use crate::metrics::Metrics;
use crate::read::{self, Readers, Remote};
use crate::revoke::Revocations;
use crate::stores::Stores;
use crate::trouble::Troubles;
use crate::{Error, Memory, Served, limits, recovery};
use client::{Durability, Stat};
use cluster::{Embedded, KeySpace};
use index::blocking::off_thread;
use index::disk::{Disk, RealDisk};
use index::store::{Places, Store};
use index::{Clock, DataDir, Recovered};
use protocol::{Journal, Life, ProcessId, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, watch};

/// What a broker is opened with: the seams to the world, and its limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory.
    pub disk: Arc<dyn Disk>,
    /// The root of `file` stores.
    pub files: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    /// Chance: what a new key space takes its identity from, and what spreads listings in time.
    pub entropy: u64,
    /// What an append gets that does not say.
    pub durability: Durability,
    /// The URL of the broker's port, as clients reach it.
    pub endpoint: String,
    /// Local space: budget, free bytes to keep, segment size.
    pub space: index::Options,
    /// The longest append.
    pub append_max: u64,
    /// Bytes of unfinished appends on disk, of all connections.
    pub staged_max: u64,
    /// What all requests together may hold in memory.
    pub memory: Memory,
    /// Bytes a second that each journal takes at most; 0 is no limit beside that of its spec.
    pub append_rate_max: u64,
    /// Bytes a second that a client must send at least while its append is under way, by at most a
    /// second of rest; 0 asks for nothing but an end of pauses.
    pub append_rate_min: u64,
    /// Stores that are handed in rather than opened by their URL: those in memory.
    pub stores: Vec<Store>,
}

impl Config {
    /// The configuration of a data directory on the file system, with everything else as it is
    /// unless told otherwise.
    pub fn at(
        data: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
        entropy: u64,
    ) -> std::io::Result<Self> {
        let data = data.into();
        let files = Arc::new(RealDisk::new(data.join("store"))?);
        Ok(Config::over(Arc::new(RealDisk::new(data)?), files, clock, entropy))
    }

    /// The configuration of a data directory and a root of file stores on any disk.
    pub fn over(
        disk: Arc<dyn Disk>,
        files: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        entropy: u64,
    ) -> Self {
        Config {
            disk,
            files,
            clock,
            entropy,
            durability: Durability::Disk,
            endpoint: "http://127.0.0.1:8080".to_owned(),
            space: index::Options::default(),
            append_max: limits::APPEND_MAX,
            staged_max: limits::STAGED_MAX,
            memory: Memory::DEFAULT,
            append_rate_max: 0,
            append_rate_min: 0,
            stores: Vec::new(),
        }
    }
}

/// A broker that stands alone. Cheap to clone; the last clone does not close it, [`Broker::close`]
/// does.
#[derive(Clone, Debug)]
pub struct Broker {
    pub(crate) shared: Arc<Shared>,
}

/// What all clones share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub config: Config,
    pub keys: Arc<dyn KeySpace>,
    pub data: Arc<DataDir>,
    recovered: Recovered,
    pub process: ProcessId,
    pub stores: Stores,
    pub staging: Staging,
    /// Local bytes that nobody may read any more.
    pub unfreed: Unfreed,
    pub revocations: Revocations,
    /// Stored fragments that readers are in the middle of.
    pub remote: Remote,
    pub readers: Readers,
    /// Who may fetch stored fragments in parts.
    pub places: Places,
    served: RwLock<BTreeMap<Journal, Arc<Served>>>,
    /// One creation or deletion at a time, so that key space and data directory stay in step.
    pub changing: tokio::sync::Mutex<()>,
    /// Objects are put and deleted by many at a time, or by nobody while a backup looks.
    pub storing: tokio::sync::RwLock<()>,
    /// Told when a store has something more, which may be evicted.
    pub stored: Notify,
    pub census: watch::Sender<u64>,
    /// Journals whose stores are to be listed soon.
    pub listings: Listings,
    closing: watch::Sender<bool>,
    /// What fails of the work that appends wait for.
    pub troubles: Arc<Troubles>,
    drivers: Mutex<Option<Drivers>>,
    pub metrics: Arc<Metrics>,
}

impl Broker {
    /// Opens a data directory: recovers what an earlier life left, serves every journal of the key
    /// space, and begins what runs by itself. Must be called within a tokio runtime.
    ///
    /// A spec without local files gets some. Local files without a spec are set aside and named.
    pub async fn open(config: Config) -> Result<Broker, Error> {
        let opening = config.clone();
        let (keys, data, recovered) = off_thread(move || open_local(&opening)).await?;
        recovery::tell(&recovered);
        let process = ProcessId::new("local", format!("{:016x}", keys.identity().member_id))?;
        let metrics = Arc::new(Metrics::new());
        let (files, requests) = (config.files.clone(), metrics.requests().clone());
        let shared = Shared {
            stores: Stores::new(files, &config.stores, config.entropy, requests),
            staging: Staging::new(config.staged_max, config.memory),
            unfreed: Unfreed::default(),
            revocations: Revocations::default(),
            remote: Remote::default(),
            readers: Readers::new(config.memory),
            places: read::places(config.memory),
            config,
            keys: Arc::new(keys),
            data,
            recovered,
            process,
            served: RwLock::default(),
            changing: tokio::sync::Mutex::default(),
            storing: tokio::sync::RwLock::default(),
            stored: Notify::new(),
            census: watch::Sender::new(0),
            listings: Listings::default(),
            closing: watch::Sender::new(false),
            troubles: Arc::default(),
            drivers: Mutex::new(None),
            metrics,
        };
        let broker = Broker { shared: Arc::new(shared) };
        broker.make_file_root().await;
        broker.reconcile().await?;
        let drivers = Drivers::start(&broker).map_err(|source| index::Error::Disk {
            operation: "start a thread for",
            path: "the commit log".into(),
            source,
        })?;
        *broker.shared.drivers.lock().expect("no holder of the drivers panics") = Some(drivers);
        Ok(broker)
    }

    /// Ends appends, syncs what is recorded, and records a clean stop: within seconds, whether or
    /// not the stores answer. Persists nothing, since local files keep everything safe.
    pub async fn close(&self) -> Result<(), Error> {
        self.shared.closing.send_replace(true);
        let drivers = self.shared.drivers.lock().expect("no holder of the drivers panics").take();
        let Some(drivers) = drivers else { return Ok(()) };
        let threads = drivers.end_tasks().await;
        let data = self.shared.data.clone();
        let closed = off_thread(move || {
            let closed = data.close();
            for thread in threads {
                thread.join().expect("the threads log their errors and go on");
            }
            closed
        });
        Ok(closed.await?)
    }

    pub fn is_closing(&self) -> bool {
        *self.shared.closing.borrow()
    }

    /// Returns when the broker closes: what would go on for ever ends then.
    pub async fn closed(&self) {
        let mut closing = self.shared.closing.subscribe();
        // The sender lives as long as this does.
        let _ = closing.wait_for(|is_closing| *is_closing).await;
    }

    /// The time of the oldest append that no sync covered; see [`index::DataDir`].
    pub fn unsynced_since_us(&self) -> Option<u64> {
        self.shared.data.unsynced_since_us()
    }

    /// Whether appends are refused because the local budget is used up.
    pub fn is_over_budget(&self) -> bool {
        self.shared.data.is_over_budget()
    }

    /// Journals whose loans were asked back since the start.
    pub fn revoked(&self) -> u64 {
        self.shared.revocations.total()
    }

    /// A journal by its name, if it exists.
    pub fn served(&self, journal: &Journal) -> Option<Arc<Served>> {
        self.served_map().get(journal).cloned()
    }

    /// All journals, by name.
    pub fn all_served(&self) -> Vec<Arc<Served>> {
        self.served_map().values().cloned().collect()
    }

    /// The journals whose names begin with `prefix`, by name.
    pub fn served_below(&self, prefix: &str) -> Vec<Arc<Served>> {
        let served = self.served_map();
        let from =
            served.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        let below = from.take_while(|(name, _)| name.as_str().starts_with(prefix));
        below.map(|(_, served)| served.clone()).collect()
    }

    /// What a journal is at this moment. Waits for its first listing, while its end is unknown.
    pub async fn stat(&self, served: &Served) -> Result<Stat, Error> {
        self.known(served).await?;
        Ok(served.stat())
    }

    /// Waits until the end of the journal is known.
    pub(crate) async fn known(&self, served: &Served) -> Result<(), Error> {
        if !served.is_known() {
            self.wait_listed(served).await?;
        }
        Ok(())
    }

    fn served_map(&self) -> RwLockReadGuard<'_, BTreeMap<Journal, Arc<Served>>> {
        self.shared.served.read().expect("no holder of the journals panics")
    }

    pub(crate) fn served_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<Journal, Arc<Served>>> {
        self.shared.served.write().expect("no holder of the journals panics")
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub fn key_space(&self) -> &Arc<dyn KeySpace> {
        &self.shared.keys
    }

    pub fn data(&self) -> &Arc<DataDir> {
        &self.shared.data
    }

    pub fn stores(&self) -> &Stores {
        &self.shared.stores
    }

    /// What recovery found when the broker was opened.
    pub fn recovered(&self) -> &Recovered {
        &self.shared.recovered
    }

    /// Bytes of unfinished appends: in memory, and on disk.
    pub fn staged(&self) -> (u64, u64) {
        self.shared.staging.used()
    }

    /// What is counted here.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// A number that changes with each creation and deletion.
    pub fn census(&self) -> watch::Receiver<u64> {
        self.shared.census.subscribe()
    }

    /// A number in 0..=1023 by which a journal's listings are moved in time, apart from others'.
    pub(crate) fn spread(&self, life: Life) -> u32 {
        crate::stores::spread(life.get() ^ self.shared.config.entropy)
    }

    /// The default store is a directory of ours, so it is made; others have to be there.
    async fn make_file_root(&self) {
        let made = match self.shared.stores.get("file:///") {
            Ok(store) => store.create_root().await,
            Err(error) => Err(error),
        };
        if let Err(error) = made {
            tracing::warn!(%error, "the root of file stores can't be made");
        }
    }

    /// Serves what the key space has, and sets aside what it does not know.
    async fn reconcile(&self) -> Result<(), Error> {
        let entries = self.shared.keys.list(&Selector::default()).entries;
        let lives: BTreeSet<Life> = entries.iter().map(|entry| entry.life).collect();
        for replica in self.shared.data.replicas() {
            if lives.contains(&replica.life()) {
                continue;
            }
            let (journal, life) = (replica.name(), replica.life());
            tracing::warn!(%journal, %life, "local files without a spec go to lost+found");
            let data = self.shared.data.clone();
            off_thread(move || data.set_aside(life)).await?;
        }
        entries.into_iter().try_for_each(|entry| self.serve(entry))
    }
}

type Local = (Embedded, Arc<DataDir>, Recovered);

/// Opens what lies in the data directory. Blocks.
fn open_local(config: &Config) -> Result<Local, Error> {
    let (disk, clock) = (config.disk.clone(), config.clock.clone());
    let (data, recovered) = DataDir::open(disk, clock, config.space.clone())?;
    let keys = backing::open(&*config.disk, config.entropy, !data.replicas().is_empty())?;
    Ok((keys, data, recovered))
}
