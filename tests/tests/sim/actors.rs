//! Who uses journals: each actor does one thing again and again, and tells the model what it asks
//! and what it is answered.

mod appending;
mod coming;
mod mounted;
mod parting;
mod pushing;
mod reading;
mod watching;

use crate::chance::Chance;
use crate::plan::{JOURNALS, REGISTERED, journal};
use crate::world::World;
use appending::{count, write, write_at};
use client::{Error, Journals};
use coming::come_and_go;
use parting::append_in_parts;
use pushing::push;
use reading::{follow, look};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use watching::watch;

/// What every actor has.
#[derive(Clone)]
struct Actor {
    world: World,
    journals: Arc<dyn Journals>,
    name: String,
    chance: Chance,
}

impl Actor {
    fn new(world: &World, journals: &Arc<dyn Journals>, name: String) -> Self {
        let chance = world.chance(&name);
        Actor { world: world.clone(), journals: journals.clone(), name, chance }
    }

    fn is_ending(&self) -> bool {
        self.world.is_ending()
    }

    fn note(&self, what: std::fmt::Arguments) {
        self.world.trace().line(format_args!("{} {what}", self.name));
    }

    /// An error that no fault of this world explains is one of the product.
    fn check(&self, error: &Error) {
        match error {
            Error::Later(_)
            | Error::Unreachable(_)
            | Error::Unknown
            | Error::NoSpace(..)
            | Error::Io(_) => {}
            // The last words of a machine that dies.
            other if other.to_string().ends_with("the disk stopped") => {}
            other => self.world.model().complain(format_args!("{}: {other}", self.name)),
        }
    }

    /// Rests between two things that it does.
    async fn rest(&self) {
        sleep(self.chance.millis(1..self.world.plan().rest)).await;
    }

    /// Waits for what passes by itself.
    async fn wait(&self) {
        sleep(self.chance.millis(1..400)).await;
    }
}

/// Begins what an actor does, unless the seed leaves it out.
fn begin<F>(actors: &mut JoinSet<()>, actor: Actor, work: impl FnOnce(Actor) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    if actor.chance.one_in(actor.world.plan().actor_share) {
        actors.spawn(work(actor));
    }
}

/// Those who live in one process with the broker, for its life number `life`.
pub fn local(world: &World, journals: Arc<dyn Journals>, life: usize, actors: &mut JoinSet<()>) {
    let new = |name: &str| Actor::new(world, &journals, format!("local-{name}-{life}"));
    for name in JOURNALS {
        begin(actors, new(&format!("writer-{name}")), |actor| write(actor, journal(name)));
        begin(actors, new(&format!("reader-{name}")), |actor| look(actor, journal(name)));
    }
    begin(actors, new("counter"), |actor| count(actor, journal(REGISTERED)));
    begin(actors, new("creator"), come_and_go);
    begin(actors, new("mount"), |actor| mounted::near(actor, journal(JOURNALS[0])));
}

/// Those who come over the network, and live through everything.
pub fn remote(world: &World, actors: &mut JoinSet<()>) {
    let new = |name: &str| {
        let journals: Arc<dyn Journals> = world.remote();
        Actor::new(world, &journals, name.to_owned())
    };
    // Those who read what is stored from the store itself.
    let direct = |name: &str| {
        let journals: Arc<dyn Journals> = Arc::new(world.remote_with_files());
        Actor::new(world, &journals, name.to_owned())
    };
    for name in JOURNALS {
        begin(actors, new(&format!("writer-{name}")), |actor| write(actor, journal(name)));
        begin(actors, new(&format!("follower-{name}")), |actor| follow(actor, journal(name)));
        begin(actors, direct(&format!("direct-{name}")), |actor| follow(actor, journal(name)));
        begin(actors, new(&format!("reader-{name}")), |actor| look(actor, journal(name)));
        begin(actors, new(&format!("at-{name}")), |actor| write_at(actor, journal(name)));
        let parts = new(&format!("parts-{name}"));
        begin(actors, parts, |actor| append_in_parts(actor, world.remote(), journal(name)));
    }
    begin(actors, new("counter-0"), |actor| count(actor, journal(REGISTERED)));
    begin(actors, new("counter-1"), |actor| count(actor, journal(REGISTERED)));
    begin(actors, new("creator"), come_and_go);
    begin(actors, new("watcher"), watch);
    begin(actors, new("pusher-0"), |actor| push(actor, world.remote()));
    begin(actors, new("pusher-1"), |actor| push(actor, world.remote()));
    begin(actors, new("mount"), |actor| mounted::far(actor, journal(JOURNALS[0])));
}
