//! Random operations by several handles on two mounts, against the model of `fs::model`.
//!
//! The first mount is that of `up`, which rolls, stores and evicts small fragments meanwhile; a
//! restart kills it, or the second mount, at once or kindly. Seeds are independent of each other:
//! `SEED=n` runs that of a failure alone, `SEEDS=n` runs more of them.

use fs::model::trial::{Trial, seeds};
use fs::model::{Op, Outcome, SLOTS};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, Result, pread, pwrite};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tests::daemon;
use tests::patience::until;
use tests::world::{Second, Up, journals};

const SEEDS: u64 = 100;
const OPERATIONS: usize = 100;

/// What may wait for the store when a seed begins.
const UNSTORED_MAX: u64 = 8 << 20;

/// A broker with two mounts, and one more through which appends come from elsewhere.
struct Mounts {
    up: Up,
    second: Second,
    elsewhere: Second,
    restarts: usize,
    /// Where this seed's files are, below each mount.
    directory: String,
    open: [[Option<OwnedFd>; SLOTS]; 2],
}

impl Mounts {
    fn start() -> Mounts {
        let up = Up::with(&["--allow-delete", "--local-budget", "32MiB"]);
        let template = "{prefix: local/, refuse: ['*.tmp'], replication: 1, fragment: {length: \
                        3000, compression_codec: GZIP, stores: ['file:///'], refresh_interval: \
                        1s}}\n";
        let file = up.data().with_file_name("template.yaml");
        std::fs::write(&file, template).unwrap();
        journals(&up, &["templates", "put", "--specs", file.to_str().unwrap()]).ok();
        let (second, elsewhere) = (up.second(), up.second());
        let open = Default::default();
        Mounts { up, second, elsewhere, restarts: 0, directory: String::new(), open }
    }

    /// Bytes that no store has.
    fn unstored(&self) -> u64 {
        let status = ["status", "-o", "json", "--broker.address", &self.up.url()];
        let text = daemon::run(&status).ok().text();
        let status: serde_json::Value = serde_json::from_str(&text).unwrap();
        status["bytes"]["unpersisted"].as_u64().unwrap()
    }

    /// Forgets the last seed's files, and makes a directory for those of the next, once there is
    /// room in the budget for what a seed writes: the disk may be slower than the seeds.
    fn begin(&mut self, seed: u64) {
        until("most is stored", || self.unstored() < UNSTORED_MAX);
        self.open = Default::default();
        self.directory = format!("seed-{seed}");
        for root in [self.root(0), self.root(1), self.elsewhere.file(&self.directory)] {
            rustix::fs::mkdir(&root, Mode::RWXU).unwrap();
        }
    }

    fn root(&self, mount: usize) -> PathBuf {
        match mount {
            0 => self.up.file(&self.directory),
            _ => self.second.file(&self.directory),
        }
    }

    fn path(&self, op: &Op, name: &str) -> PathBuf {
        self.root(op.mount()).join(name)
    }

    fn file(&self, op: &Op, slot: usize) -> &OwnedFd {
        self.open[op.mount()][slot].as_ref().expect("only open files are used")
    }

    fn restart(&mut self, mount: usize) {
        self.restarts += 1;
        self.open[mount] = Default::default();
        let kindly = self.restarts.is_multiple_of(2);
        let daemon = if mount == 0 { self.up.daemon() } else { self.second.daemon() };
        match kindly {
            true => assert!(daemon.stop().success()),
            false => daemon.kill(),
        }
        if mount == 0 {
            self.up.again()
        } else {
            self.second.again()
        }
        let made = rustix::fs::mkdir(self.root(mount), Mode::RWXU);
        assert!(matches!(made, Ok(()) | Err(Errno::EXIST)), "{made:?}");
    }

    fn answer(&mut self, op: &Op) -> Result<Outcome> {
        match op {
            Op::Open { slot, name, how, .. } => {
                let path = self.path(op, name);
                let mode = Mode::RUSR | Mode::WUSR;
                let file = rustix::fs::open(path, how.flags() | OFlags::CLOEXEC, mode)?;
                self.open[op.mount()][*slot] = Some(file);
            }
            Op::Close { slot, .. } => drop(self.open[op.mount()][*slot].take()),
            Op::Write { slot, at, content, .. } => {
                let written = pwrite(self.file(op, *slot), content, *at)?;
                return Ok(Outcome::Number(written as u64));
            }
            Op::Read { slot, at, len, .. } => {
                let file = self.file(op, *slot);
                // What the kernel reads of the second mount's cache has what others appended once
                // the size is asked, and else within moments.
                rustix::fs::fstat(file)?;
                return read(file, *at, *len);
            }
            Op::SeekData { slot, at, .. } => {
                return rustix::fs::seek(self.file(op, *slot), SeekFrom::Data(*at))
                    .map(Outcome::Number);
            }
            Op::SeekHole { slot, at, .. } => {
                return rustix::fs::seek(self.file(op, *slot), SeekFrom::Hole(*at))
                    .map(Outcome::Number);
            }
            Op::SetAppend { slot, append, .. } => {
                let file = self.file(op, *slot);
                let mut flags = rustix::fs::fcntl_getfl(file)?;
                flags.set(OFlags::APPEND, *append);
                rustix::fs::fcntl_setfl(file, flags)?;
            }
            Op::Fsync { slot, .. } => rustix::fs::fsync(self.file(op, *slot))?,
            Op::Size { name, .. } => {
                let stat = rustix::fs::stat(self.path(op, name))?;
                return Ok(Outcome::Number(u64::try_from(stat.st_size).unwrap()));
            }
            Op::List { directory, .. } => return list(&self.path(op, directory)),
            Op::Truncate { name, size, .. } => truncate(&self.path(op, name), *size)?,
            Op::Rename { from, to, .. } => {
                rustix::fs::rename(self.path(op, from), self.path(op, to))?;
            }
            Op::Unlink { name, .. } => rustix::fs::unlink(self.path(op, name))?,
            Op::Mkdir { name, .. } => rustix::fs::mkdir(self.path(op, name), Mode::RWXU)?,
            Op::Rmdir { name, .. } => {
                rustix::fs::unlinkat(CWD, self.path(op, name), AtFlags::REMOVEDIR)?;
            }
            Op::Elsewhere { name, content } => self.append_elsewhere(name, content)?,
            Op::Restart { mount } => self.restart(*mount),
        }
        Ok(Outcome::Done)
    }

    fn append_elsewhere(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.elsewhere.file(&self.directory).join(name);
        let parent = path.parent().expect("it is below the mount");
        let made = rustix::fs::mkdir(parent, Mode::RWXU);
        assert!(matches!(made, Ok(()) | Err(Errno::EXIST)), "{made:?}");
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        let mut rest = content;
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        Ok(())
    }
}

/// All that is there, up to `len` bytes.
fn read(file: &OwnedFd, at: u64, len: usize) -> Result<Outcome> {
    let mut bytes = vec![0; len];
    let mut read = 0;
    while read < len {
        match pread(file, &mut bytes[read..], at + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    bytes.truncate(read);
    Ok(Outcome::Bytes(bytes))
}

fn list(directory: &Path) -> Result<Outcome> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::new(opened)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.sort();
    Ok(Outcome::Names(names))
}

/// As truncate(2), which rustix has for descriptors alone.
fn truncate(path: &Path, size: u64) -> Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::ftruncate(file, size)
}

#[test]
fn two_mounts_answer_as_the_model() {
    let mut mounts = Mounts::start();
    for seed in seeds(SEEDS) {
        mounts.begin(seed);
        let mut trial = Trial::new(seed);
        for _ in 0..OPERATIONS {
            let op = trial.op();
            let got = mounts.answer(&op).unwrap_or_else(Outcome::Failed);
            trial.judge(&op, &got);
        }
    }
    assert!(mounts.restarts > 0 || std::env::var("SEED").is_ok(), "no seed restarts a mount");
}
