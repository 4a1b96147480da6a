//! Programs on a mount: calls on `fs` as a kernel makes them, over the broker of the same process,
//! or over the network with a cache of mirrors.

mod lined;

use super::Actor;
use crate::disk::SimDisk;
use crate::model::{Condition, Tried};
use client::{Cached, Durability, Journals};
use fs::{Caller, Error, Filesystem, HandleId, NodeId, Options, ReadAt, Staging, WriteAt};
use index::disk::Crash;
use protocol::{Journal, Offset};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::Arc;

const SELF: Caller = Caller { thread: 7 };
const CACHE_MAX: u64 = 40_000;
const STAGED_MAX: u64 = 1 << 20;

/// A mount in the broker's process, on its machine.
pub async fn near(actor: Actor, journal: Journal) {
    let disk = actor.world.staging();
    let fs = mount(&actor, actor.journals.clone(), &disk);
    if let Some(fs) = fs {
        use_files(&actor, &fs, &journal, u64::MAX).await;
    }
}

/// A mount on a machine of its own, which dies now and then.
pub async fn far(actor: Actor, journal: Journal) {
    let (mut cache, mut staging) =
        (SimDisk::new("cache", actor.world.trace()), SimDisk::new("staging", actor.world.trace()));
    while !actor.is_ending() {
        let place = actor.world.place();
        let remote: Arc<dyn Journals> = actor.world.remote_at(&place);
        let cached = Cached::open(remote, Arc::new(cache.clone()), CACHE_MAX, "broker");
        let cached = match cached {
            Ok(cached) => Arc::new(cached),
            Err(error) => {
                return actor.world.model().complain(format_args!("the cache: {error}"));
            }
        };
        let Some(fs) = mount(&actor, cached.clone(), &staging) else { return };
        let calls = 5 + actor.chance.below(60);
        use_files(&actor, &fs, &journal, calls).await;
        let crash = match actor.chance.below(3) {
            0 => {
                cached.close().await;
                Crash::Kill
            }
            1 => Crash::Kill,
            _ => Crash::Power(actor.chance.number()),
        };
        place.die();
        (cache, staging) = (cache.crash(crash), staging.crash(crash));
    }
}

fn mount(actor: &Actor, journals: Arc<dyn Journals>, disk: &SimDisk) -> Option<Arc<Filesystem>> {
    let mut options = Options::new(actor.chance.id(), actor.world.trace().clock().now());
    options.asynchronous = actor.chance.one_in(4);
    let staging = match Staging::open(Arc::new(disk.clone()), STAGED_MAX) {
        Ok(staging) => staging,
        Err(error) => {
            actor.note(format_args!("no staging: {error}"));
            return None;
        }
    };
    let fs = Filesystem::with_staging(journals, options, staging);
    // What an earlier life left is committed beside all else.
    tokio::spawn(fs.recover());
    Some(fs)
}

/// Uses a file in every way, so often at most.
async fn use_files(actor: &Actor, fs: &Arc<Filesystem>, journal: &Journal, most: u64) {
    for _ in 0..most {
        actor.rest().await;
        if actor.is_ending() {
            return;
        }
        let done = match actor.chance.below(10) {
            8 | 9 => lined::write_line(actor, fs, journal).await,
            0..=2 => append(actor, fs, journal).await,
            3 => write_at_end(actor, fs, journal).await,
            4 => write_whole(actor, fs, journal).await,
            _ => read(actor, fs, journal).await,
        };
        if let Err(error) = done {
            check(actor, journal, &error);
        }
    }
}

/// An error that no fault of this world explains is one of the product.
fn check(actor: &Actor, journal: &Journal, error: &Error) {
    actor.note(format_args!("file {journal}: {error}"));
    match error.errno() {
        Errno::TIMEDOUT | Errno::NOSPC | Errno::IO => {}
        _ if error.to_string().ends_with("the disk stopped") => {}
        errno => {
            let name = &actor.name;
            actor.world.model().complain(format_args!("{name}: {journal}: {error} ({errno})"));
        }
    }
}

async fn find(fs: &Arc<Filesystem>, path: &str) -> Result<NodeId, Error> {
    let mut node = NodeId::ROOT;
    for name in path.split('/') {
        node = fs.lookup(node, name.as_bytes(), SELF).await?.node;
    }
    Ok(node)
}

/// open(2): a look-up, then OPEN, and once more after `ESTALE`.
async fn open(fs: &Arc<Filesystem>, path: &str, flags: OFlags) -> Result<HandleId, Error> {
    match fs.open(find(fs, path).await?, flags, SELF).await {
        Err(Error::Stale) => Ok(fs.open(find(fs, path).await?, flags, SELF).await?.handle),
        opened => Ok(opened?.handle),
    }
}

fn begin(actor: &Actor, journal: &Journal, durability: Durability, condition: Condition) -> Tried {
    let len = 20 + actor.chance.below(if actor.chance.one_in(8) { 6_000 } else { 200 });
    let len = usize::try_from(len).expect("a small number");
    let tried = actor.world.model().begin(journal, len, None, durability, condition);
    actor.note(format_args!("writes {} to {journal} {condition:?}", tried.tag));
    tried
}

/// A write is one append, whole; one that is only queued is none yet.
async fn write(
    actor: &Actor,
    fs: &Arc<Filesystem>,
    tried: &Tried,
    write: WriteAt<'_>,
) -> Result<(), Error> {
    let len = write.content.len();
    let written = fs.write(write).await?;
    if written != len {
        let tag = tried.tag;
        actor.world.model().complain(format_args!("write {tag} of {len} is answered {written}"));
    }
    if !fs.options().asynchronous || tried.durability == Durability::Disk {
        actor.world.model().written(tried);
    }
    Ok(())
}

/// close(2) tells what became of queued writes: all of them are there, or it fails.
async fn flush(
    actor: &Actor,
    fs: &Arc<Filesystem>,
    handle: HandleId,
    queued: &[Tried],
) -> Result<(), Error> {
    if !fs.options().asynchronous {
        return Ok(());
    }
    fs.flush(handle).await?;
    queued.iter().for_each(|tried| actor.world.model().written(tried));
    Ok(())
}

/// `>>`, several times; with `O_DSYNC`, or an fsync at the end, at times.
async fn append(actor: &Actor, fs: &Arc<Filesystem>, journal: &Journal) -> Result<(), Error> {
    let is_synced = actor.chance.one_in(4);
    let mut flags = OFlags::WRONLY | OFlags::APPEND;
    flags.set(OFlags::DSYNC, is_synced);
    let durability = if is_synced { Durability::Disk } else { Durability::Memory };
    let handle = open(fs, journal.as_str(), flags).await?;
    let mut all = Vec::new();
    for _ in 0..1 + actor.chance.below(3) {
        let tried = begin(actor, journal, durability, Condition::None);
        let content = tried.content();
        let at = WriteAt { handle, offset: 0, content: &content, flags };
        write(actor, fs, &tried, at).await?;
        all.push(tried);
    }
    flush(actor, fs, handle, &all).await?;
    if actor.chance.one_in(3) {
        // The broker's machine may lose what it has in memory before it is synced.
        if actor.chance.one_in(2) {
            actor.rest().await;
        }
        let floor = actor.world.model().floor(journal);
        fs.fsync(handle).await?;
        actor.world.model().durable(journal, floor);
        all.iter().for_each(|tried| actor.world.model().synced(tried));
    }
    close(fs, handle);
    Ok(())
}

/// Without `O_APPEND` a write goes to the end, or nowhere.
async fn write_at_end(actor: &Actor, fs: &Arc<Filesystem>, journal: &Journal) -> Result<(), Error> {
    let flags = OFlags::WRONLY;
    let handle = open(fs, journal.as_str(), flags).await?;
    let offset = size(actor, fs, journal).await?;
    let end = Offset::ZERO.plus(offset);
    let tried = begin(actor, journal, Durability::Memory, Condition::At(end));
    let content = tried.content();
    let at = WriteAt { handle, offset, content: &content, flags };
    let done = match write(actor, fs, &tried, at).await {
        Ok(()) => flush(actor, fs, handle, std::slice::from_ref(&tried)).await,
        failed => failed,
    };
    close(fs, handle);
    match done {
        // Somebody else was faster.
        Err(error) if error.errno() == Errno::PERM => {
            let floor = actor.world.model().floor(journal);
            actor.world.model().refused(&tried, floor);
            Ok(())
        }
        done => done,
    }
}

/// Everything between open and close is one append.
async fn write_whole(actor: &Actor, fs: &Arc<Filesystem>, journal: &Journal) -> Result<(), Error> {
    let flags = OFlags::WRONLY | OFlags::APPEND;
    let handle = open(fs, &format!(".courant/whole/{journal}"), flags).await?;
    let tried = begin(actor, journal, Durability::Disk, Condition::None);
    for content in tried.content().chunks(700) {
        fs.write(WriteAt { handle, offset: 0, content, flags }).await?;
    }
    if actor.chance.one_in(2) {
        fs.fsync(handle).await?;
        actor.world.model().written(&tried);
    }
    close(fs, handle);
    Ok(())
}

fn close(fs: &Arc<Filesystem>, handle: HandleId) {
    if let Some(closing) = fs.release(handle) {
        tokio::spawn(closing);
    }
}

async fn size(actor: &Actor, fs: &Arc<Filesystem>, journal: &Journal) -> Result<u64, Error> {
    let floor = actor.world.model().floor(journal);
    let node = find(fs, journal.as_str()).await?;
    let size = fs.getattr(node, SELF).await?.size;
    actor.note(format_args!("size {journal} {size}"));
    actor.world.model().told_head(journal, floor, Offset::ZERO.plus(size));
    Ok(size)
}

/// Bytes anywhere, or all from there to the end.
async fn read(actor: &Actor, fs: &Arc<Filesystem>, journal: &Journal) -> Result<(), Error> {
    let handle = open(fs, journal.as_str(), OFlags::RDONLY).await?;
    let size = size(actor, fs, journal).await?;
    let mut offset = size.saturating_sub(actor.chance.below(size.clamp(1, 20_000)));
    for _ in 0..1 + actor.chance.below(4) {
        let floor = actor.world.model().floor(journal);
        let size = 1 + usize::try_from(actor.chance.below(8_000)).expect("a small number");
        let read = ReadAt { handle, offset, size, nonblocking: false, fills: false };
        match fs.read(read).await {
            Ok(bytes) => {
                actor.note(format_args!("read {journal} {offset}+{}", bytes.len()));
                actor.world.model().saw_cached(journal, floor, Offset::ZERO.plus(offset), &bytes);
                offset += bytes.len() as u64;
            }
            Err(error) if error.errno() == Errno::NODATA => {
                actor.world.model().saw_lost(journal, Offset::ZERO.plus(offset));
                break;
            }
            Err(error) => {
                close(fs, handle);
                return Err(error);
            }
        }
    }
    close(fs, handle);
    Ok(())
}
