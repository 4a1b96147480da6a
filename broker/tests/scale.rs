//! Many journals: nobody waits for the others' sake.

mod world;

use index::disk::{Crash, Disk, ForgetfulDisk, Open};
use protocol::request::ReadFrom;
use std::path::Path;
use world::World;

const JOURNALS: usize = 300;

fn name(at: usize) -> String {
    format!("many/{at:04}")
}

/// A fragment of "0123456789" at 0..10.
fn plant(files: &ForgetfulDisk, journal: &str) {
    let name = "0000000000000000-000000000000000a-87acec17cd9dcd20a716cc2cf67417b71c8a7016.raw";
    files.create_dir(Path::new(journal)).expect("memory");
    let file = files.open(&Path::new(journal).join(name), Open::New).expect("memory");
    file.write_at(b"0123456789", 0).expect("memory");
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_is_read_is_listed_before_the_others() {
    let world = World::new().await;
    for at in 0..JOURNALS {
        world.apply(&name(at), |_| ()).await;
        plant(&world.files, &name(at));
    }
    let world = world.crashed(Crash::Kill).await;
    let last = name(JOURNALS - 1);
    let (_, content) = world.messages(&last, ReadFrom::At(3.into()), |_| ()).await;
    assert_eq!(content, "3456789");
    let known = world.broker.all_served().iter().filter(|served| served.is_known()).count();
    assert!(known < JOURNALS / 2, "{known} were listed before the one that was read");
}
