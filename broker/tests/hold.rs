//! The bounds of a hold: how long it may last, how much log may gather behind it, how full the disk
//! may be, how many there may be, and how long others wait for its copier.

mod world;

use broker::limits::{HOLD_FREE_SHARE, HOLD_MAX, QUIET_MAX};
use broker::server::{Handed, Settings};

use client::{Connect, Dial, Holding, Journals, Remote, Stream};
use futures::future::BoxFuture;
use index::disk::{Disk, ForgetfulDisk};
use index::store::Store;
use index::store::faulty::FaultyStore;
use object_store::memory::InMemory;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{advance, sleep};
use world::{World, journal, until};

const MINUTE: Duration = Duration::from_secs(60);

/// The port of a broker, on streams in memory.
#[derive(Debug)]
struct Port(Handed);

impl Dial for Port {
    fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (here, there) = tokio::io::duplex(64 << 10);
        tokio::spawn(self.0.serve(there));
        Box::pin(async move { Ok(Box::new(here) as Box<dyn Stream>) })
    }
}

fn port(world: &World) -> Port {
    Port(Handed::new(world.broker.clone(), Settings::default()))
}

fn remote(world: &World) -> Remote {
    let connect = Connect::new("http://broker:1").expect("a valid URL");
    Remote::connect(&connect.with_dial(Arc::new(port(world)))).expect("nothing is asked yet")
}

async fn hold(world: &World) -> Holding {
    remote(world).hold().await.expect("nothing else holds")
}

/// What the next step of a hold is told that the broker has ended; it holds nothing then, and
/// another one may begin.
async fn ended(world: &World, refused: Result<(), client::Error>) -> String {
    let refused = refused.expect_err("it has ended").to_string();
    until("nothing is held", || async { !world.broker.data().is_held() }).await;
    drop(hold(world).await);
    refused
}

#[tokio::test(start_paused = true)]
async fn a_hold_lasts_a_day_at_most() {
    let world = World::new().await;
    let mut holding = hold(&world).await;
    advance(HOLD_MAX - MINUTE).await;
    sleep(MINUTE / 2).await;
    assert!(world.broker.data().is_held(), "it is not over yet");
    sleep(MINUTE).await;
    let told = ended(&world, holding.quiet().await).await;
    assert!(told.contains("longer than a day"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn there_is_one_hold_at_a_time() {
    let world = World::new().await;
    let holding = hold(&world).await;
    for _ in 0..3 {
        let refused = remote(&world).hold().await.err().expect("there is one").to_string();
        assert!(refused.contains("backup") && refused.contains("under way"), "{refused}");
    }
    // Case: its copier goes away without a word
    drop(holding);
    until("nothing is held", || async { !world.broker.data().is_held() }).await;
    // Case: it comes to its end
    let mut holding = hold(&world).await;
    holding.quiet().await.expect("nobody stores");
    holding.moment().await.expect("the disk works");
    holding.log_copied().await.expect("it is not over");
    holding.end().await.expect("it is whole");
    until("nothing is held", || async { !world.broker.data().is_held() }).await;
    drop(hold(&world).await);
}

#[tokio::test(start_paused = true)]
async fn a_hold_ends_before_the_log_is_full() {
    const APPEND: usize = 60_000;
    let world = World::new().await;
    world.create("a/journal").await;
    let content = "x".repeat(APPEND);
    let mut holding = hold(&world).await;
    holding.quiet().await.expect("nobody stores");
    holding.moment().await.expect("the disk works");
    let mut segments = 0;
    // Three times what the log may hold, a segment between two looks.
    for _ in 0..3 * index::limits::SEGMENTS_MAX {
        for _ in 0..(1 << 20) / APPEND {
            // None is refused: this panics if it is.
            world.append("a/journal", &content).await;
        }
        segments = segments.max(world.broker.data().log().older_segments());
        sleep(Duration::from_secs(2)).await;
    }
    let most = index::limits::SEGMENTS_HELD_MAX + 2;
    assert!((index::limits::SEGMENTS_HELD_MAX..=most).contains(&segments), "{segments} segments");
    let told = ended(&world, holding.log_copied().await).await;
    assert!(told.contains("log grows faster"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_log_is_not_counted_once_it_is_copied() {
    let world = World::new().await;
    world.create("a/journal").await;
    let content = "x".repeat(60_000);
    let mut holding = hold(&world).await;
    holding.quiet().await.expect("nobody stores");
    holding.moment().await.expect("the disk works");
    holding.log_copied().await.expect("it is not over");
    for _ in 0..2 * index::limits::SEGMENTS_MAX {
        for _ in 0..17 {
            world.append("a/journal", &content).await;
        }
        sleep(Duration::from_secs(2)).await;
    }
    holding.end().await.expect("checkpoints went on");
}

#[tokio::test(start_paused = true)]
async fn a_hold_ends_when_the_disk_gets_full() {
    const MIN_FREE: u64 = 64 << 20;
    let configure = |config: &mut broker::Config| config.space.min_free = Some(MIN_FREE);
    let world = World::with(configure).await;
    world.create("a/journal").await;
    let mut holding = hold(&world).await;
    let leave = |free: u64| {
        let space = world.disk.space().expect("memory");
        world.disk.set_capacity(Some(space.total - space.free + free));
    };
    // Case: less than is to stay free, and not as little as half of it
    leave(MIN_FREE / HOLD_FREE_SHARE + (1 << 20));
    sleep(MINUTE).await;
    assert!(world.broker.data().is_held(), "there is room");
    // Case: less than half
    leave(MIN_FREE / HOLD_FREE_SHARE - 4096);
    sleep(Duration::from_secs(3)).await;
    let told = ended(&world, holding.quiet().await).await;
    assert!(told.contains("nearly full"), "{told}");
    // Appends have what is left.
    world.append("a/journal", "more").await;
}

/// Creates a journal, which may have to wait; how long it did.
async fn create_in(world: &World, name: &str) -> Duration {
    let begun = tokio::time::Instant::now();
    Journals::create(&world.broker, &journal(name)).await.expect("it is created");
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_copier_that_rests_is_waited_for_a_minute() {
    let world = World::new().await;
    let mut holding = hold(&world).await;
    holding.quiet().await.expect("nobody stores");
    let waited = create_in(&world, "a/journal").await;
    assert!((QUIET_MAX / 2..QUIET_MAX + MINUTE / 2).contains(&waited), "{waited:?}");
    let told = ended(&world, holding.moment().await.map(drop)).await;
    assert!(told.contains("too long to copy"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_slow_is_waited_for_a_minute() {
    const URL: &str = "s3://bucket/prefix/";
    let faulty = FaultyStore::new(Arc::new(InMemory::new()));
    let store = Store::over(URL, Arc::new(faulty.clone())).expect("a valid URL");
    let (disk, files) = (ForgetfulDisk::new(), ForgetfulDisk::new());
    let world = World::on(disk, files, |config| config.stores = vec![store]).await;
    let served = world.apply("a/journal", |spec| spec.fragment.stores = vec![URL.into()]).await;
    until("it is listed", || async { served.is_known() }).await;
    world.append("a/journal", "stored slowly").await;
    faulty.set_delay(3 * QUIET_MAX);
    let puts = faulty.asked_in_all();
    served.replica().roll().expect("the log takes it");
    until("it is put", || async { faulty.asked_in_all() > puts }).await;
    let mut holding = hold(&world).await;
    let told = holding.quiet().await;
    // Others go on at once.
    assert!(create_in(&world, "a/other").await < MINUTE / 2);
    faulty.set_delay(Duration::ZERO);
    let told = ended(&world, told).await;
    assert!(told.contains("keeps it waiting"), "{told}");
}
