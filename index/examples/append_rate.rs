//! How fast appends are recorded, moved and published, without any wire: small ones at memory, one
//! journal or many; and bulk. Prints rates; the bench sets them against what the disk does.

use bytes::Bytes;
use index::disk::RealDisk;
use index::{Content, DataDir, Entry, Options, SystemClock};
use protocol::{Journal, Life};
use std::sync::Arc;
use std::time::Duration;

#[allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a bench reads the clock")]
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let dir = tempfile::tempdir_in(".").expect("a temporary directory");
    let disk = Arc::new(RealDisk::new(dir.path()).expect("a disk"));
    let (data, _) = DataDir::open(disk, Arc::new(SystemClock), Options::default()).expect("opens");
    let syncer = {
        let data = data.clone();
        std::thread::spawn(move || {
            while !data.is_closing() {
                let _ = data.wait_and_sync(Duration::from_secs(1));
                let _ = data.prepare_log();
                if data.needs_checkpoint() {
                    let _ = data.checkpoint();
                }
            }
        })
    };
    for (len, count, journals) in [(100, 200_000, 1), (100, 200_000, 1_000), (131_072, 8_192, 1)] {
        let replicas: Vec<_> = (0..journals)
            .map(|n| {
                let name = Journal::new(&format!("bench/{len}/{journals}/{n}")).expect("valid");
                data.create(Life::new(len * 1_000_000 + journals * 10_000 + n), &name)
            })
            .collect::<Result<_, _>>()
            .expect("creates");
        let content = Bytes::from(vec![b'x'; len as usize]);
        let begun = std::time::Instant::now();
        for n in 0..count {
            let replica = &replicas[n % replicas.len()];
            let mut turn = replica.turn().await;
            let content = Content::Memory(content.clone());
            let entry = Entry { content, registers: None, writer: None, is_disk: false };
            let commit = turn.record(entry).expect("records");
            drop(turn);
            commit.done().await.expect("is published");
        }
        let seconds = begun.elapsed().as_secs_f64();
        let rate = count as f64 / seconds;
        let mb = rate * len as f64 / 1e6;
        println!("{len} B, {journals} journals: {rate:.0} appends/s, {mb:.0} MB/s");
    }
    data.close().expect("closes");
    syncer.join().expect("no panic");
}
