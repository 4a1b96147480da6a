//! Makes a data directory of many journals with many stored fragments, for measuring what a broker
//! does with it:
//!
//! ```text
//! many_journals DIR [JOURNALS [FRAGMENTS_EACH]]     10000 and 10 unless given
//! courant serve --data DIR --listen 127.0.0.1:8080
//! ```
//!
//! The journals are `many/DDDD/DDDD`. Each fragment has 16 bytes, of the same content.

#![expect(clippy::print_stdout, reason = "it says what it has made")]

use broker::{Broker, Config};
use cluster::{Change, Expect};
use index::SystemClock;
use protocol::{Codec, Journal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CONTENT: &[u8; 16] = b"sixteen bytes..\n";
/// Of the content.
const SUM: &str = "63559703fcb80cb09f384c46a4e6981664e28154";
/// Journals of one transaction.
const TOGETHER: usize = 100;

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("expected a directory")?;
    let journals: usize = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let fragments: usize = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let names = (0..journals).map(|at| format!("many/{:04}/{:04}", at / 100, at % 100));
    let names: Vec<Journal> = names.map(|name| Journal::new(&name)).collect::<Result<_, _>>()?;
    for name in &names {
        put(&Path::new(&dir).join("store").join(name.as_str()), fragments)?;
    }
    let broker = Broker::open(Config::at(&dir, Arc::new(SystemClock), 1)?).await?;
    for some in names.chunks(TOGETHER) {
        let change = |name: &Journal| -> Result<Change, Failed> {
            let mut spec = broker.key_space().propose(name)?;
            spec.fragment.codec = Codec::None;
            spec.fragment.refresh_interval = Duration::from_secs(3600);
            Ok(Change::Upsert { spec, expect: Expect::Any })
        };
        broker.apply(some.iter().map(change).collect::<Result<_, _>>()?).await?;
    }
    broker.close().await?;
    println!("{journals} journals with {fragments} fragments each in {dir}");
    Ok(())
}

fn put(dir: &Path, fragments: usize) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for at in 0..fragments {
        let (begin, end) = (at * CONTENT.len(), (at + 1) * CONTENT.len());
        std::fs::write(dir.join(format!("{begin:016x}-{end:016x}-{SUM}.raw")), CONTENT)?;
    }
    Ok(())
}
