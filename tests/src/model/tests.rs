//! The judge on trial: each kind of fault that it must see.

use super::*;

fn record(writer: u32, number: u64) -> Record {
    Record { writer, number, length: 20 }
}

fn journal(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(Record::bytes).collect()
}

/// Two writers; 1 has 1 and 2 acknowledged, 2 has 1, and one of 2 was on its way.
fn history() -> History {
    let mut history = History::new();
    history.acknowledge(1, 1);
    history.acknowledge(1, 2);
    history.acknowledge(2, 1);
    history.interrupt(2);
    history
}

#[test]
fn accepts_what_was_acknowledged() {
    let cases = [
        vec![record(1, 1), record(2, 1), record(1, 2)],
        vec![record(2, 1), record(1, 1), record(1, 2)],
        // Case: the one on its way is there.
        vec![record(1, 1), record(2, 1), record(2, 2), record(1, 2)],
        // Case: the one on its way came before the writer went on.
        vec![record(2, 0), record(1, 1), record(2, 1), record(1, 2)],
    ];
    for records in cases {
        assert_eq!(history().check(&journal(&records)), Ok(()), "{records:?}");
    }
    assert_eq!(history().acknowledgements(), 3);
}

#[test]
fn sees_loss_disorder_doubles_and_strangers() {
    let lost = Wrong::Lost { writer: 1, numbers: vec![2] };
    let cases = [
        (vec![record(1, 1), record(2, 1)], lost),
        (
            vec![record(1, 2), record(1, 1), record(2, 1)],
            Wrong::Disorder { writer: 1, number: 1, after: 2 },
        ),
        (
            vec![record(1, 1), record(1, 1), record(1, 2), record(2, 1)],
            Wrong::Disorder { writer: 1, number: 1, after: 1 },
        ),
        (
            vec![record(1, 1), record(1, 2), record(1, 3), record(2, 1)],
            Wrong::Unknown { writer: 1, numbers: vec![3], at_most: 0 },
        ),
        (
            vec![record(1, 1), record(1, 2), record(2, 1), record(2, 2), record(2, 3)],
            Wrong::Unknown { writer: 2, numbers: vec![2, 3], at_most: 1 },
        ),
    ];
    for (records, wrong) in cases {
        assert_eq!(history().check(&journal(&records)), Err(wrong), "{records:?}");
    }
}

#[test]
fn sees_torn_mixed_and_zeroed_bytes() {
    let whole = journal(&[record(1, 1), record(1, 2)]);
    let torn_at = |bytes: &[u8]| match records(bytes) {
        Err(Wrong::Torn { offset, .. }) => Some(offset),
        _ => None,
    };
    assert_eq!(torn_at(&whole), None);
    let second = record(1, 1).bytes().len();

    // Case: cut anywhere but between two records.
    for length in 1..whole.len() {
        let expected = match length {
            _ if length < second => Some(0),
            _ if length == second => None,
            _ => Some(second),
        };
        assert_eq!(torn_at(&whole[..length]), expected, "cut at {length}");
    }
    // Case: one byte is another.
    for (at, other) in [(0, 0), (10, 0), (12, b'!'), (second - 1, b'x')] {
        let mut bytes = whole.clone();
        bytes[at] = other;
        assert_eq!(torn_at(&bytes), Some(0), "changed at {at}");
    }
    // Case: another writer's record is inside.
    let mut mixed = whole[..15].to_vec();
    mixed.extend(record(2, 1).bytes());
    mixed.extend(&whole[15..]);
    assert_eq!(torn_at(&mixed), Some(0));
}
