//! Names: what stands for which journal, what is listed, made, renamed and unlinked.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use fs::NodeId;
use fs::double::Double;
use fs::limits::{MADE_DIRECTORIES_MAX, PLACEHOLDERS_MAX};
use rustix::fs::OFlags;
use rustix::io::Errno;
use world::{APPEND, World, errno, journal};

#[tokio::test]
async fn a_file_is_the_journal_of_its_name() {
    let world = World::new();
    // Case: (file, journal)
    let cases = [("app.log", "test/app.log"), ("a b", "test/a%20b"), ("50%", "test/50%25")];
    for (file, name) in cases {
        world.echo(file, file.as_bytes()).await.unwrap();
        assert_eq!(world.double.bytes(&journal(name)).unwrap(), file.as_bytes());
    }
    assert_eq!(world.ls("").await, ["50%", "a b", "app.log"]);
    // Case: a file name over 255 bytes, and a path that makes a journal's name over 512.
    let long = "x".repeat(256);
    assert_eq!(errno(world.echo(&long, b"x").await), Errno::NAMETOOLONG);
    let directory = "d".repeat(255);
    world.mkdir(&directory).await.unwrap();
    world.mkdir(&format!("{directory}/{directory}")).await.unwrap();
    let path = format!("{directory}/{directory}/log");
    assert_eq!(errno(world.echo(&path, b"x").await), Errno::NAMETOOLONG);

    // Case: without a prefix, a name that is too short for a journal.
    let bare = World::with(Double::new(), |options| options.prefix = String::new());
    assert_eq!(errno(bare.echo("abc", b"x").await), Errno::INVAL);
    bare.echo("abcd", b"x").await.unwrap();
}

#[tokio::test]
async fn a_new_file_is_a_placeholder_until_its_first_byte() {
    let world = World::new();
    let flags = APPEND | OFlags::CREATE;
    let handle = world.open("new.log", flags).await.unwrap();
    let before = world.stat("new.log").await.unwrap();
    assert_eq!(before.size, 0);
    assert_eq!(world.ls("").await, ["new.log"]);
    assert_eq!(world.double.bytes(&journal("test/new.log")), None);
    // Case: a write that can't succeed leaves no journal.
    assert_eq!(errno(world.write(handle, 5, b"x", OFlags::WRONLY).await), Errno::INVAL);
    assert_eq!(world.double.bytes(&journal("test/new.log")), None);

    world.write(handle, 0, b"one\n", flags).await.unwrap();
    let after = world.stat("new.log").await.unwrap();
    assert_eq!(after.size, 4);
    assert_ne!(after.inode, before.inode);
    // Case: the handle is one of the journal from now on.
    world.write(handle, 4, b"two\n", OFlags::WRONLY).await.unwrap();
    assert_eq!(world.cat("new.log").await.unwrap(), b"one\ntwo\n");
    assert_eq!(errno(world.unlink("new.log").await), Errno::PERM);
}

#[tokio::test]
async fn two_mounts_meet_in_a_placeholder() {
    let world = World::new();
    let other = world.other();
    let flags = APPEND | OFlags::CREATE;
    let mine = world.open("new.log", flags).await.unwrap();
    assert_eq!(other.ls("").await, Vec::<String>::new(), "it is that mount's alone");
    let theirs = other.open("new.log", flags).await.unwrap();
    other.write(theirs, 0, b"theirs\n", flags).await.unwrap();
    assert_eq!(world.read(mine, 0, 100).await.unwrap(), b"theirs\n");
    world.write(mine, 0, b"mine\n", flags).await.unwrap();
    let inode = other.stat("new.log").await.unwrap().inode;
    assert_eq!(world.stat("new.log").await.unwrap().inode, inode);
    assert_eq!(other.cat("new.log").await.unwrap(), b"theirs\nmine\n");
    assert_eq!(world.ls("").await, ["new.log"]);
}

#[tokio::test]
async fn only_placeholders_are_renamed_and_unlinked() {
    let world = World::new();
    world.echo("kept.log", b"one\n").await.unwrap();
    for name in ["a", "b", "c"] {
        world.fs.release(world.open(name, APPEND | OFlags::CREATE).await.unwrap());
    }
    // Case: (from, to, outcome)
    let cases = [
        ("kept.log", "moved", Err(Errno::PERM)),
        ("a", "kept.log", Err(Errno::PERM)),
        ("a", "x.tmp", Err(Errno::PERM)),
        ("none", "x", Err(Errno::NOENT)),
        ("a", "b", Ok(())),
    ];
    for (from, to, outcome) in cases {
        let renamed = world.rename(from, to).await;
        assert_eq!(renamed.map_err(|error| error.errno()), outcome, "{from} to {to}");
    }
    assert_eq!(world.ls("").await, ["b", "c", "kept.log"]);
    let handle = world.open("c", APPEND).await.unwrap();
    world.unlink("c").await.unwrap();
    assert_eq!(errno(world.unlink("c").await), Errno::NOENT);
    assert_eq!(errno(world.write(handle, 0, b"x", APPEND).await), Errno::STALE);
    assert_eq!(errno(world.unlink("kept.log").await), Errno::PERM);
    assert_eq!(world.ls("").await, ["b", "kept.log"]);
}

#[tokio::test]
async fn temporary_names_are_refused_at_creation() {
    let world = World::new();
    for name in ["x.tmp", ".hidden", ".courant", ".journal"] {
        let made = world.open(name, APPEND | OFlags::CREATE | OFlags::EXCL).await;
        assert!(made.is_err(), "{name}");
    }
    for name in [".journal", ".git"] {
        assert_eq!(errno(world.mkdir(name).await), Errno::PERM);
    }
    assert_eq!(world.ls("").await, Vec::<String>::new());
}

#[tokio::test]
async fn directories_are_implied_or_made() {
    let world = World::new();
    assert_eq!(errno(world.find("d").await), Errno::NOENT);
    world.mkdir("d").await.unwrap();
    assert_eq!(errno(world.mkdir("d").await), Errno::EXIST);
    world.mkdir("d/e").await.unwrap();
    assert_eq!(errno(world.rmdir("d").await), Errno::NOTEMPTY);
    world.echo("d/e/a.log", b"x").await.unwrap();
    assert_eq!(errno(world.rmdir("d/e").await), Errno::NOTEMPTY);
    assert_eq!(world.ls("").await, ["d"]);
    assert_eq!(world.ls("d").await, ["e"]);

    // Case: another mount sees what journals imply, and not what was only made.
    world.mkdir("only-here").await.unwrap();
    let other = world.other();
    assert_eq!(other.ls("").await, ["d"]);
    assert_eq!(other.ls("d/e").await, ["a.log"]);
    let inode = world.stat("d/e").await.unwrap().inode;
    assert_eq!(other.stat("d/e").await.unwrap().inode, inode);
    world.rmdir("only-here").await.unwrap();
    assert_eq!(errno(world.find("only-here").await), Errno::NOENT);
    assert_eq!(errno(world.rmdir("d/e/a.log").await), Errno::NOTDIR);
    // Case: a name is a file or a directory, whichever came first.
    assert_eq!(errno(world.echo("d/e", b"x").await), Errno::ISDIR);
    assert_eq!(errno(world.mkdir("d/e/a.log").await), Errno::EXIST);
    assert_eq!(errno(world.find("d/e/a.log/inner").await), Errno::NOTDIR);
}

#[tokio::test]
async fn a_journal_that_others_nest_in_shows_inside() {
    let world = World::new();
    world.echo("a.log", b"outer\n").await.unwrap();
    world.double.put("test/a.log/inner", b"inner\n");
    assert_eq!(world.ls("").await, ["a.log"]);
    assert_eq!(world.ls("a.log").await, [".journal", "inner"]);
    assert_eq!(world.cat("a.log/.journal").await.unwrap(), b"outer\n");
    assert_eq!(world.cat("a.log/inner").await.unwrap(), b"inner\n");
    world.echo("a.log/.journal", b"more\n").await.unwrap();
    assert_eq!(world.cat("a.log/.journal").await.unwrap(), b"outer\nmore\n");
}

#[tokio::test]
async fn what_no_file_name_stands_for_is_not_listed() {
    let world = World::new();
    for name in ["test/a%41", "test/.courant/x", "test/shown"] {
        world.double.put(name, b"x");
    }
    assert_eq!(world.ls("").await, ["shown"]);
}

#[tokio::test]
async fn a_journal_is_deleted_where_the_mount_allows_it() {
    let world = World::with(Double::new(), |options| options.allow_delete = true);
    world.echo("a.log", b"one\n").await.unwrap();
    world.unlink("a.log").await.unwrap();
    assert_eq!(world.double.bytes(&journal("test/a.log")), None);
    assert_eq!(world.ls("").await, Vec::<String>::new());
}

#[tokio::test]
async fn what_a_mount_remembers_is_bounded() {
    let world = World::new();
    for number in 0..PLACEHOLDERS_MAX {
        world.fs.mknod(NodeId::ROOT, number.to_string().as_bytes()).await.unwrap();
    }
    assert_eq!(errno(world.fs.mknod(NodeId::ROOT, b"one-more").await), Errno::NOSPC);
    world.unlink("7").await.unwrap();
    world.fs.mknod(NodeId::ROOT, b"one-more").await.unwrap();

    let world = World::new();
    for number in 0..MADE_DIRECTORIES_MAX {
        world.fs.mkdir(NodeId::ROOT, number.to_string().as_bytes()).await.unwrap();
    }
    assert_eq!(errno(world.mkdir("one-more").await), Errno::NOSPC);
    // Case: neither stops a journal of a name that is there.
    world.double.put("test/log", b"x");
    world.echo("log", b"y").await.unwrap();
}

#[tokio::test]
async fn the_room_is_told_without_asking_anybody() {
    let world = World::new();
    let usage = world.fs.statfs();
    assert_eq!((usage.space.total, usage.space.free), (1 << 40, 1 << 39));
    assert_eq!(usage.name_max, 255);
}

#[tokio::test]
async fn attributes_are_ours_only() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    let node = world.find("a.log").await.unwrap().node;
    let get = async |name: &str| {
        let value = world.fs.getxattr(node, name.as_bytes()).await;
        value.map(|value| String::from_utf8(value).unwrap()).map_err(|error| error.errno())
    };
    // Case: (name, outcome)
    let cases = [
        ("user.courant.head", Ok("4")),
        ("user.courant.journal", Ok("test/a.log")),
        ("user.courant.atomic-limit", Ok("1044480")),
        ("user.courant.mode", Ok("direct")),
        ("user.courant.content-type", Err(Errno::NODATA)),
        ("user.courant.none", Err(Errno::NODATA)),
        ("user.other", Err(Errno::OPNOTSUPP)),
        ("security.capability", Err(Errno::OPNOTSUPP)),
    ];
    for (name, outcome) in cases {
        assert_eq!(get(name).await.as_deref().map_err(|errno| *errno), outcome, "{name}");
    }
    let names = String::from_utf8(world.fs.listxattr(node).await.unwrap()).unwrap();
    assert!(names.split('\0').any(|name| name == "user.courant.head"), "{names}");
    assert_eq!(world.fs.setxattr(b"user.courant.head").errno(), Errno::PERM);
    assert_eq!(world.fs.setxattr(b"user.x").errno(), Errno::OPNOTSUPP);
}

#[tokio::test]
async fn a_walk_asks_for_each_file_once_at_its_look_up_and_once_for_its_attributes() {
    const COUNT: usize = 100;
    let world = World::new();
    (0..COUNT).for_each(|number| world.double.put(&format!("test/d/{number}"), b"x"));
    let names = world.ls("d").await;
    let directory = world.find("d").await.unwrap().node;
    let (lists, stats) = world.double.asked();
    for name in &names {
        let entry = world.fs.lookup(directory, name.as_bytes(), world::SELF).await.unwrap();
        assert_eq!(entry.attr.size, 1);
        world.fs.getattr(entry.node, world::SELF).await.unwrap();
    }
    assert_eq!(names.len(), COUNT);
    assert_eq!(world.double.asked(), (lists, stats + 2 * COUNT));
    // Case: something was created since the listing
    world.double.put("test/d/0/inner", b"x");
    let inner = world.find("d/0/inner").await.unwrap();
    assert_eq!(inner.attr.size, 1);
}

#[tokio::test]
async fn a_new_file_is_asked_for_no_oftener_than_it_may_have_come_from_elsewhere() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    // The look-up and the creation ask for a journal and for what nests in it; the write makes it.
    assert_eq!(world.double.asked(), (2, 2));
    // Case: it came from elsewhere between the creation and the write
    let other = world.other();
    let flags = world::APPEND | OFlags::CREATE;
    let handles = [world.open("b.log", flags), other.open("b.log", flags)];
    for (world, handle) in [&world, &other].into_iter().zip(handles) {
        let handle = handle.await.unwrap();
        assert_eq!(world.write(handle, 0, b"two\n", flags).await.unwrap(), 4);
    }
    assert_eq!(world.cat("b.log").await.unwrap(), b"two\ntwo\n");
}
