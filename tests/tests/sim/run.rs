//! One seed, from the first second to the last check.

use crate::actors;
use crate::disk::Fate;
use crate::model::After;
use crate::plan::{Plan, When, journals};
use crate::trace::{Told, Trace};
use crate::weather;
use crate::world::{LIVELY, World, patiently};
use broker::Broker;
use client::{Append, Durability, Error, Journals, Read};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const EIO: i32 = 5;

/// From a failure to the end that somebody makes because of it.
const SOON: Duration = Duration::from_millis(30);

/// What came of a seed.
pub struct Outcome {
    pub plan: Plan,
    pub complaint: Option<String>,
    pub told: Told,
}

thread_local! {
    /// Panics of this thread's simulation, in the product as well as here.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Notes panics instead of printing them: a seed that panics has failed.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        PANICS.with_borrow_mut(|panics| panics.push(text));
    }));
}

/// Runs a seed, in paused time, on this thread alone.
pub fn run(seed: u64, keeps_all: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread needs nothing");
    PANICS.take();
    let plan = Plan::new(seed);
    let ran = std::panic::catch_unwind(|| {
        runtime.block_on(async {
            let trace = Trace::begin(keeps_all);
            let world = World::new(plan.clone(), trace.clone());
            live(&world).await;
            (trace.told(), world.model().complaint())
        })
    });
    drop(runtime);
    let panic = PANICS.take().into_iter().next();
    let (told, complaint) = ran.unwrap_or_default();
    Outcome { plan, complaint: panic.or(complaint), told }
}

/// All lives of the broker, and the peace after them.
async fn live(world: &World) {
    let mut far = JoinSet::new();
    let Ok(mut broker) = world.start().await else {
        return world.model().complain(format_args!("a new broker does not start"));
    };
    if let Err(error) = world.create(&broker).await {
        return world.model().complain(format_args!("journals are not created: {error}"));
    }
    far.spawn(weather::run(world.clone()));
    actors::remote(world, &mut far);
    for (life, end) in world.plan().ends.clone().into_iter().enumerate() {
        let mut near = JoinSet::new();
        world.set_calm(false);
        world.listen(&broker);
        actors::local(world, Arc::new(broker.clone()), life, &mut near);
        match end.when {
            When::Operation(number) => {
                let disk = world.disk();
                disk.inner().stop_at(disk.inner().operations() + number);
                // A life with little to do ends all the same.
                let _ = timeout(world.plan().life_max, disk.died()).await;
            }
            When::After(time) => sleep(time).await,
            When::At(aim) => {
                let disk = world.disk();
                disk.aim(aim, Fate::Stop);
                let _ = timeout(world.plan().life_max, disk.died()).await;
            }
            When::Failing(aim) => {
                let disk = world.disk();
                disk.aim(aim, Fate::Fail { errno: EIO, times: 1 });
                let _ = timeout(world.plan().life_max, disk.failed()).await;
                sleep(SOON).await;
            }
        }
        world.crash(broker, end.crash).await;
        near.shutdown().await;
        world.set_calm(true);
        let Some(next) = world.recover(end.crash, end.recovery_stops_at).await else { return };
        broker = next;
        if world.model().complaint().is_some() {
            return;
        }
    }
    settle(world, broker, far).await;
}

/// No faults any more: everybody comes to an end, every journal takes an append, and is whole.
async fn settle(world: &World, mut broker: Broker, mut far: JoinSet<()>) {
    world.end();
    world.listen(&broker);
    let ended = async { while far.join_next().await.is_some() {} };
    if timeout(2 * LIVELY, ended).await.is_err() {
        return world.model().complain(format_args!("actors do not come to their ends"));
    }
    if world.plan().is_stopped_cleanly {
        world.network().close();
        if let Err(error) = broker.close().await {
            return world.model().complain(format_args!("the broker does not stop: {error}"));
        }
        drop(broker);
        let Ok(next) = world.start().await else {
            return world.model().complain(format_args!("the broker does not start again"));
        };
        broker = next;
        world.listen(&broker);
    }
    let remote = world.remote();
    for journals in [&broker as &dyn Journals, &*remote] {
        take_one_each(world, journals).await;
        world.audit(journals, After::Calm).await;
    }
    let _ = broker.close().await;
}

/// Every journal takes an append, and has it. A local budget that is used up has room again when
/// the next round has freed what was stored meanwhile.
async fn take_one_each(world: &World, door: &dyn Journals) {
    use crate::model::Condition;
    for name in journals() {
        let model = world.model();
        let tried = model.begin(&name, 100, None, Durability::Disk, Condition::None);
        let append = Append {
            durability: Some(Durability::Disk),
            ..Append::new(name.clone(), tried.content())
        };
        let appended = async {
            loop {
                match patiently(|| door.append(append.clone())).await {
                    Err(Error::NoSpace(..)) => sleep(SOON).await,
                    answer => return answer,
                }
            }
        };
        let span = match timeout(LIVELY, appended).await {
            Ok(Ok(appended)) => appended.span,
            Ok(Err(error)) => {
                return model.complain(format_args!("{name} takes no append: {error}"));
            }
            Err(_) => return model.complain(format_args!("{name} takes no append in time")),
        };
        model.acknowledged(&tried, span, false);
        let read = Read { journal: name.clone(), life: None, offset: span.begin(), max: 100 };
        match timeout(LIVELY, patiently(|| door.read(read.clone()))).await {
            Ok(Ok(bytes)) => model.saw(&name, span.end(), span.begin(), &bytes),
            failed => model.complain(format_args!("{name} is not read: {failed:?}")),
        }
    }
}
