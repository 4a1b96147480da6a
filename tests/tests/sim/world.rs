//! One machine with a broker, whose lives follow each other, in a world that fails; and what all
//! actors share.

use crate::chance::Chance;
use crate::disk::SimDisk;
use crate::model::{After, Found, Model};
use crate::network::{Network, Place};
use crate::plan::{Plan, RETAINED, journals};
use crate::store::SimStore;
use crate::trace::Trace;
use broker::server::{Handed, Settings};
use broker::{Broker, Config};
use client::{Connect, Dial, Error, Journals, Read, Remote};
use cluster::{Change, Expect};
use index::disk::Crash;
use index::store::faulty::Manner;
use protocol::{Journal, Offset};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The longest that anything may take in a world without faults.
pub const LIVELY: Duration = Duration::from_secs(60);

/// See the module. Clones are one world.
#[derive(Clone)]
pub struct World(Arc<Shared>);

struct Shared {
    plan: Plan,
    trace: Trace,
    model: Model,
    network: Network,
    machine: Mutex<Machine>,
    /// No faults come up.
    is_calm: AtomicBool,
    /// Actors come to their ends.
    is_ending: AtomicBool,
}

/// What outlives the process of the broker.
struct Machine {
    disk: SimDisk,
    /// The directory of the mount in the broker's process.
    staging: SimDisk,
    store: SimStore,
}

impl World {
    pub fn new(plan: Plan, trace: Trace) -> Self {
        let machine = Machine {
            disk: SimDisk::new("disk", &trace),
            staging: SimDisk::new("mount-staging", &trace),
            store: SimStore::new(&trace, plan.seed),
        };
        World(Arc::new(Shared {
            model: Model::new(&trace),
            network: Network::new(&trace, plan.seed),
            machine: Mutex::new(machine),
            is_calm: AtomicBool::new(true),
            is_ending: AtomicBool::new(false),
            plan,
            trace,
        }))
    }

    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    pub fn trace(&self) -> &Trace {
        &self.0.trace
    }

    pub fn model(&self) -> &Model {
        &self.0.model
    }

    pub fn network(&self) -> &Network {
        &self.0.network
    }

    pub fn chance(&self, name: &str) -> Chance {
        Chance::new(self.0.plan.seed, name)
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.machine.lock().expect("no holder panics")
    }

    /// The disk of the broker's machine, as of its present life.
    pub fn disk(&self) -> SimDisk {
        self.machine().disk.clone()
    }

    pub fn staging(&self) -> SimDisk {
        self.machine().staging.clone()
    }

    pub fn store(&self) -> SimStore {
        self.machine().store.clone()
    }

    pub fn is_calm(&self) -> bool {
        self.0.is_calm.load(Ordering::Relaxed)
    }

    pub fn is_ending(&self) -> bool {
        self.0.is_ending.load(Ordering::Relaxed)
    }

    /// Actors end after what they are in the middle of.
    pub fn end(&self) {
        self.0.is_ending.store(true, Ordering::Relaxed);
    }

    /// Lets faults come up, or ends all that are there.
    pub fn set_calm(&self, is_calm: bool) {
        self.0.trace.line(format_args!("calm {is_calm}"));
        self.0.is_calm.store(is_calm, Ordering::Relaxed);
        if is_calm {
            self.store().behave(Manner::Works, Duration::ZERO, false);
            self.network().set_rough(None);
            self.disk().heal();
            self.store().files().heal();
        }
    }

    /// A client of the broker over the network.
    pub fn remote(&self) -> Arc<Remote> {
        Arc::new(self.connect())
    }

    /// A client on a machine that may die.
    pub fn remote_at(&self, place: &Place) -> Arc<Remote> {
        Arc::new(over(Arc::new(place.clone())))
    }

    /// Another machine on the network.
    pub fn place(&self) -> Place {
        Place::new(self.network().clone())
    }

    /// One that reads what is stored from the store itself, unless that is on the broker's disk.
    pub fn remote_with_files(&self) -> Remote {
        match self.plan().has_own_store {
            true => self.connect(),
            false => self.connect().with_files(Arc::new(self.store().files().clone())),
        }
    }

    fn connect(&self) -> Remote {
        over(Arc::new(self.network().clone()))
    }

    fn config(&self) -> Config {
        let (plan, disk) = (self.plan(), Arc::new(self.disk()));
        let mut config = Config::over(disk.clone(), disk, self.trace().clock(), plan.seed);
        config.space.segment_len = Some(plan.segment_len);
        config.space.inline_max = plan.inline_max;
        config.space.local_budget = plan.local_budget;
        if !plan.has_own_store {
            config.stores = vec![self.store().store()];
        }
        config
    }

    /// Starts the broker's process on what its machine has, out of reach.
    pub async fn start(&self) -> Result<Broker, broker::Error> {
        self.0.trace.line(format_args!("start"));
        Broker::open(self.config()).await
    }

    /// The broker listens from here on.
    pub fn listen(&self, broker: &Broker) {
        self.network().open(Handed::new(broker.clone(), Settings::default()));
    }

    /// Creates the journals that stay.
    pub async fn create(&self, broker: &Broker) -> Result<(), broker::Error> {
        for name in journals() {
            let mut spec = broker.key_space().propose(&name).map_err(cluster::Error::Refused)?;
            spec.fragment.codec = self.plan().codec;
            spec.fragment.length = self.plan().fragment_len;
            spec.fragment.refresh_interval = Duration::from_secs(5);
            if let Some(retention) = self.plan().retention.filter(|_| name.as_str() == RETAINED) {
                self.model().retain(&name, retention);
                spec.fragment.retention = retention.age.unwrap_or_default();
                if let Some(bytes) = retention.bytes {
                    let labels = spec.labels.with("courant/retain-bytes", &bytes.to_string());
                    spec.labels = labels.expect("a valid label");
                }
            }
            broker.apply(vec![Change::Upsert { spec, expect: Expect::Any }]).await?;
        }
        Ok(())
    }

    /// The broker's process dies, and perhaps its machine: nobody hears of it any more.
    pub async fn crash(&self, broker: Broker, crash: Crash) {
        {
            let mut machine = self.machine();
            machine.disk.last_failure().into_iter().for_each(|at| self.model().disturb(at));
            machine.disk = machine.disk.crash(crash);
            machine.staging = machine.staging.crash(crash);
            machine.store = machine.store.for_next();
        }
        self.network().close();
        // What its tasks still do comes to nothing; they end by themselves.
        tokio::spawn(async move { broker.close().await });
        // Who was answered before the end may still take note of it.
        sleep(Duration::from_millis(2)).await;
    }

    /// Opens the broker again after a crash, perhaps after a start that is cut short as well, and
    /// compares what is there with what was promised.
    pub async fn recover(&self, crash: Crash, stops_at: Option<(u64, Crash)>) -> Option<Broker> {
        let died = Instant::now();
        let mut has_lost_power = matches!(crash, Crash::Power(_));
        if let Some((at, crash)) = stops_at {
            has_lost_power |= matches!(crash, Crash::Power(_));
            self.disk().inner().stop_at(at);
            let started = self.start().await;
            self.machine().disk = self.disk().crash(crash);
            if let Ok(broker) = started {
                self.crash(broker, crash).await;
            }
        }
        let after = if has_lost_power { After::Power(died) } else { After::Kill };
        let broker = match self.start().await {
            Ok(broker) => broker,
            Err(error) => {
                self.model().complain(format_args!("the broker does not start: {error}"));
                return None;
            }
        };
        self.audit(&broker, after).await;
        Some(broker)
    }

    /// Reads all journals that stay or are there, and compares.
    pub async fn audit(&self, journals: &dyn Journals, after: After) {
        for name in crate::plan::journals().chain(self.model().coming()) {
            match timeout(LIVELY, read_all(journals, &name)).await {
                Ok(Err(Error::NotFound(_))) if self.model().may_be_gone(&name) => {
                    self.model().gone(&name);
                }
                Ok(Ok(found)) => self.model().audit(&name, &found, after),
                Ok(Err(error)) => self.model().complain(format_args!("{name}: {error}")),
                Err(_) => self.model().complain(format_args!("{name} can't be read in time")),
            }
        }
    }
}

/// All of a journal, as it is at this moment. A broker that dies meanwhile may come back with
/// another head: then it is read again.
pub async fn read_all(journals: &dyn Journals, name: &Journal) -> Result<Found, Error> {
    loop {
        let found = read_to_head(journals, name).await?;
        if patiently(|| journals.stat(name)).await?.head == found.head {
            return Ok(found);
        }
    }
}

async fn read_to_head(journals: &dyn Journals, name: &Journal) -> Result<Found, Error> {
    let stat = patiently(|| journals.stat(name)).await?;
    let registers = stat.registers.unwrap_or_default();
    let mut found = Found { head: stat.head, registers, ..Found::default() };
    let (mut offset, mut is_new) = (Offset::ZERO, true);
    while offset < stat.head {
        let read = Read { journal: name.clone(), life: None, offset, max: 64 << 10 };
        match patiently(|| journals.read(read.clone())).await {
            Ok(bytes) if bytes.is_empty() => break,
            Ok(bytes) => {
                if std::mem::take(&mut is_new) {
                    found.runs.push((offset, Vec::new()));
                }
                found.runs.last_mut().expect("just begun").1.extend_from_slice(&bytes);
                offset = offset.plus(bytes.len() as u64);
            }
            Err(Error::Trimmed { span, .. }) if found.runs.is_empty() && span.begin() == offset => {
                found.first = span.end();
                found.lost.clear();
                offset = span.end();
            }
            Err(Error::Lost { span, .. }) => {
                found.lost.push(span);
                offset = span.end();
                is_new = true;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Asks until the answer is none that passes by itself.
pub async fn patiently<T, W>(ask: impl Fn() -> W) -> Result<T, Error>
where
    W: Future<Output = Result<T, Error>>,
{
    loop {
        match ask().await {
            Err(error) if client::retry::is_worth_a_retry(&error) => {
                sleep(Duration::from_millis(200)).await;
            }
            answer => return answer,
        }
    }
}

/// A client of the broker, over `dial`.
fn over(dial: Arc<dyn Dial>) -> Remote {
    let connect = Connect::new("http://broker:80").expect("a valid URL").with_dial(dial);
    Remote::connect(&connect).expect("it needs no files")
}
