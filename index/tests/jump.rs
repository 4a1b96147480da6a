//! A head that jumps over what a store has and what nobody has: no offset is used twice, whatever
//! stops the process, and every byte below says what became of it.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{Crash, ForgetfulDisk};
use index::spans::SpanSet;
use index::{Content, DataDir, Entry, Located, Options, Turn};
use protocol::{Journal, Life, Offset, Span};
use std::sync::Arc;

const LIFE: Life = Life::new(7);

fn open(disk: &ForgetfulDisk) -> Arc<DataDir> {
    let options = Options { segment_len: Some(64 << 10), ..Options::default() };
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    DataDir::open(Arc::new(disk.clone()), clock, options).expect("it opens").0
}

fn turn(data: &DataDir) -> Turn {
    let replica = data.replica(LIFE).expect("it exists");
    replica.turn().now_or_never().expect("nobody holds the turn")
}

fn append(data: &DataDir, content: &'static str) -> Span {
    let content = Content::Memory(content.into());
    let entry = Entry { content, registers: None, writer: None, is_disk: true };
    let commit = turn(data).record(entry).expect("there is room");
    data.sync_round().expect("a healthy disk");
    commit.done().now_or_never().expect("it is synced").expect("it happened")
}

fn span(begin: u32, end: u32) -> Span {
    Span::between(begin.into(), end.into())
}

fn begin() -> (ForgetfulDisk, Arc<DataDir>) {
    let disk = ForgetfulDisk::new();
    let data = open(&disk);
    data.create(LIFE, &Journal::new("a/journal").expect("a valid name")).expect("there is room");
    assert_eq!(append(&data, "0123456789"), span(0, 10));
    (disk, data)
}

#[test]
fn a_head_jumps_over_what_others_have_and_goes_on_there() {
    let (disk, data) = begin();
    let stored = SpanSet::from_iter([span(5, 15), span(30, 50)]);
    let commit = turn(&data).jump(50.into(), &stored, None).expect("there is room");
    let replica = data.replica(LIFE).expect("it exists");
    assert_eq!(replica.head(), Offset::from(10), "nothing is told before it is durable");
    data.sync_round().expect("a healthy disk");
    assert_eq!(commit.done().now_or_never().expect("synced").expect("it happened"), span(50, 50));
    assert_eq!(append(&data, "abc"), span(50, 53));

    for crash in [None, Some(Crash::Kill), Some(Crash::Power(3))] {
        let data = crash.map_or(data.clone(), |crash| open(&disk.crash(crash)));
        let replica = data.replica(LIFE).expect("it exists");
        assert_eq!(replica.head(), Offset::from(53), "{crash:?}");
        // Case: offset, where its bytes are
        let cases = [
            (0, Located::Local(span(0, 10))),
            (10, Located::Remote(span(10, 15))),
            (15, Located::Lost(span(15, 30))),
            (30, Located::Remote(span(30, 50))),
            (50, Located::Local(span(50, 53))),
            (53, Located::Ahead),
        ];
        for (offset, expected) in cases {
            assert_eq!(replica.locate(offset.into()), expected, "{crash:?} {offset}");
        }
        let closed: Vec<_> = replica.to_persist().iter().map(|closed| closed.span).collect();
        assert_eq!(closed, [span(0, 10)], "a fragment never reaches over a gap");
        let mut read = [0; 8];
        assert_eq!(replica.read(50.into(), &mut read).expect("it is local"), 3);
        assert_eq!(&read[..3], b"abc");
    }
}

#[test]
fn a_jump_that_was_never_durable_was_never_told() {
    for seed in 0..20 {
        let (disk, data) = begin();
        drop(turn(&data).jump(50.into(), &SpanSet::default(), None).expect("there is room"));
        let after = open(&disk.crash(Crash::Power(seed)));
        let head = after.replica(LIFE).expect("it exists").head();
        assert!([10.into(), 50.into()].contains(&head), "{head}");
        assert_eq!(append(&after, "abc"), Span::at(head, 3));
    }
}

#[test]
fn what_was_recorded_before_is_published_before() {
    let (_, data) = begin();
    let content = Content::Memory("waits".into());
    let entry = Entry { content, registers: None, writer: None, is_disk: true };
    let mut held = turn(&data);
    let waits = held.record(entry).expect("there is room");
    let jump = held.jump(20.into(), &SpanSet::default(), None).expect("there is room");
    drop(held);
    let replica = data.replica(LIFE).expect("it exists");
    let heads = replica.watch();
    data.sync_round().expect("a healthy disk");
    assert_eq!(waits.done().now_or_never().expect("synced").expect("it happened"), span(10, 15));
    assert_eq!(jump.done().now_or_never().expect("synced").expect("it happened"), span(20, 20));
    assert_eq!(heads.borrow().offset, Offset::from(20));
    assert_eq!(replica.locate(15.into()), Located::Lost(span(15, 20)));
}
