//! Claiming directories good and bad, and mounts whose daemon answers, is gone, or is stuck. Needs
//! root and /dev/fuse. No test looks into a mount: nobody serves it.

use super::*;

/// A directory of its own below which mount points are made; nothing is left mounted in it.
struct Ground {
    directory: PathBuf,
}

impl Ground {
    fn new(name: &str) -> Ground {
        let directory =
            std::env::temp_dir().join(format!("mountpoint-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Ground { directory: directory.canonicalize().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for mount in table::read().unwrap_or_default() {
            if mount.point.starts_with(&self.directory) {
                let _ = detach(&mount.point);
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// How many mounts lie at `path`.
fn depth(path: &Path) -> usize {
    table::read().unwrap().iter().filter(|mount| mount.point == path).count()
}

#[test]
fn claims_only_an_empty_directory() {
    let ground = Ground::new("claims");
    let point = MountPoint::claim(&ground.at("made/deep")).unwrap();
    assert_eq!(point.path(), ground.at("made/deep"));
    assert!(point.path().is_dir());

    // Case: it is there and empty; it is reached by a symbolic link, or with dots.
    std::os::unix::fs::symlink(ground.at("made/deep"), ground.at("link")).unwrap();
    for path in ["made/deep", "link", "made/../made/deep/", "made/deep/."] {
        assert_eq!(MountPoint::claim(&ground.at(path)).unwrap().path(), point.path(), "{path}");
    }

    fs::write(ground.at("file"), "").unwrap();
    let refused = MountPoint::claim(&ground.at("file")).unwrap_err();
    assert!(matches!(&refused, Error::NotDirectory(path) if *path == ground.at("file")));

    fs::write(ground.at("made/deep/stays"), "").unwrap();
    let refused = MountPoint::claim(point.path()).unwrap_err().to_string();
    assert!(refused.contains("not empty: it holds stays"), "{refused}");
}

#[test]
fn a_dropped_mount_is_gone() {
    let ground = Ground::new("dropped");
    let point = MountPoint::claim(&ground.at("m")).unwrap();
    let (_device, attached) = point.attach().unwrap();
    let found = top(attached.path()).unwrap().unwrap();
    assert_eq!((found.id, found.kind.as_str()), (attached.mnt_id(), KIND));
    drop(attached);
    assert_eq!(depth(&ground.at("m")), 0);
}

#[test]
fn what_dead_daemons_left_is_taken_away() {
    let ground = Ground::new("stale");
    let path = ground.at("m");
    // The second mount is put on the first as an older version without this check would.
    for _ in 0..2 {
        if top(&path).unwrap().is_none() {
            make_directory(&path).unwrap();
        }
        let (device, attached) = Attached::attach(&path, SOURCE).unwrap();
        std::mem::forget(attached);
        drop(device);
    }
    assert_eq!(depth(&path), 2);
    let point = MountPoint::claim(&path).unwrap();
    assert_eq!(depth(&path), 0);
    drop(point.attach().unwrap());
    assert_eq!(depth(&path), 0);
}

#[test]
fn a_stuck_daemon_keeps_its_mount() {
    let ground = Ground::new("stuck");
    let path = ground.at("m");
    let (device, attached) = MountPoint::claim(&path).unwrap().attach().unwrap();
    assert!(matches!(MountPoint::claim(&path), Err(Error::Silent(_))));
    assert_eq!(depth(&path), 1);
    // Releases the asker before the mount goes.
    drop(device);
    drop(attached);
}

#[test]
fn unmount_names_what_is_not_ours() {
    let ground = Ground::new("unmount");
    let path = ground.at("m");
    fs::create_dir(&path).unwrap();
    assert!(matches!(unmount(&path), Err(Error::NotMounted(_))));
    assert!(matches!(unmount(&ground.at("none/m")), Err(Error::System { .. })));
    assert!(matches!(unmount(Path::new("/proc")), Err(Error::Foreign(_, kind)) if kind == "proc"));

    let (device, attached) = MountPoint::claim(&path).unwrap().attach().unwrap();
    drop(device);
    unmount(&path).unwrap();
    assert_eq!(depth(&path), 0);
    // Case: an owner whose mount is gone lets go of nothing.
    drop(attached);
}

#[test]
fn the_source_is_shown_without_secrets() {
    // Case: the source, what is shown
    let cases = [
        ("http://broker:8080", "http://broker:8080"),
        ("https://user:pass@host/", "https://host/"),
        ("s3://key:secret@bucket/a@b/?token=t", "s3://bucket/a@b/"),
        ("unix:///run/c.sock", "unix:///run/c.sock"),
        ("courant#x", "courant"),
    ];
    for (source, expected) in cases {
        assert_eq!(shown(source), expected, "{source}");
    }
    let ground = Ground::new("source");
    let point = MountPoint::claim(&ground.at("m")).unwrap().showing("http://u:p@h:1/?q");
    let (_device, attached) = point.attach().unwrap();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let expected = format!("http://h:1/ {} {KIND} ", attached.path().display());
    assert!(mounts.contains(&expected), "nothing of {expected:?} in: {mounts}");
}
