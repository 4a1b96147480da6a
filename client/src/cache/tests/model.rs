//! The cache against a plain vector of bytes, step by step, and with everybody at once.

use super::{MIB, World, bytes_of, content, log, offset};
use crate::journals::{Append, Journals, Loan};
use proptest::prelude::*;
use std::sync::Arc;

/// Bytes of which each tells its offset: whoever reads knows what is right without being told.
fn telling(begin: usize, len: usize) -> Vec<u8> {
    (begin..begin + len).map(told).collect()
}

fn told(at: usize) -> u8 {
    ((at / 251) as u8 ^ (at % 251) as u8) | 1
}

#[track_caller]
fn assert_told(begin: usize, bytes: &[u8]) {
    let wrong = (begin..).zip(bytes).find(|(at, byte)| **byte != told(*at));
    assert!(wrong.is_none(), "of {} bytes at {begin}, wrong is {wrong:?}", bytes.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn side_by_side_nobody_reads_a_wrong_byte() {
    const ROUNDS: usize = 150;
    let world = Arc::new(World::new(3 * MIB));
    let life = world.elsewhere.put(&log(), telling(0, MIB));
    world.read_all(life).await;
    assert!(world.lend().is_some(), "the lender has something to begin with");
    let mut tasks = tokio::task::JoinSet::new();
    for reader in 0..4 {
        let world = world.clone();
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let at = (round * (reader * 37_003 + 91_099)) % (5 * MIB);
                let bytes = world.read(life, at, 300_000).await.expect("readable");
                assert_told(at, &bytes);
            }
        });
    }
    let lender = world.clone();
    tasks.spawn(async move {
        for round in 0..ROUNDS {
            // The first half is lent now and then, before others need the room.
            if let Some(loan) = lender.lend() {
                assert_told(0, &bytes_of(&loan));
                let stat = lender.cached().stat(&log()).await.expect("it is there");
                let bytes = bytes_of(&loan);
                assert!(bytes.len() as u64 >= stat.head.as_u64(), "round {round}");
                assert_told(0, &bytes);
            }
            lender.read_all(life).await;
        }
    });
    let writer = world.clone();
    tasks.spawn(async move {
        for round in 0..ROUNDS {
            let end = writer.cached().stat(&log()).await.expect("it is there").head.as_u64();
            let bytes = telling(end as usize, 20_000 + round);
            if round % 2 == 0 {
                writer.elsewhere.push(&log(), &bytes);
            } else {
                let append = Append::new(log(), bytes.into());
                writer.cached().append(append).await.expect("appended");
            }
            tokio::task::yield_now().await;
        }
    });
    while let Some(done) = tasks.join_next().await {
        done.expect("no reader met a wrong byte");
    }
    assert!(world.state("cache-bytes") <= 3 * MIB);
}

/// One step of the model test; numbers are cut to what there is.
#[derive(Debug, Clone)]
enum Step {
    Read(usize, usize),
    ReadAll,
    Append(usize),
    Push(usize),
    Stat,
    Lend,
    GiveBack,
    Restart(bool),
    Replace(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let len = || 1usize..400_000;
    prop_oneof![
        4 => (0usize..4 * MIB, 1usize..600_000).prop_map(|(at, max)| Step::Read(at, max)),
        2 => Just(Step::ReadAll),
        2 => len().prop_map(Step::Append),
        2 => len().prop_map(Step::Push),
        1 => Just(Step::Stat),
        2 => Just(Step::Lend),
        1 => Just(Step::GiveBack),
        1 => any::<bool>().prop_map(Step::Restart),
        1 => len().prop_map(Step::Replace),
    ]
}

/// Runs steps against a plain vector of bytes.
async fn agrees(steps: Vec<Step>) {
    let mut world = World::new(3 * MIB);
    let mut model = content(0, MIB);
    let mut life = world.elsewhere.put(&log(), model.clone());
    let mut loans: Vec<Loan> = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Read(at, max) => {
                let at = at.min(model.len());
                let bytes = world.read(life, at, max).await.expect("readable");
                assert!(model[at..].starts_with(&bytes), "a read at {at}");
                assert_eq!(bytes.is_empty(), at == model.len());
            }
            Step::ReadAll => assert!(world.read_all(life).await == model),
            Step::Append(len) => {
                let bytes = content(number, len);
                model.extend_from_slice(&bytes);
                let append = Append::new(log(), bytes.into());
                world.cached().append(append).await.expect("appended");
                // What is lent has it at once.
                assert!(loans.iter().all(|loan| bytes_of(loan) == model));
            }
            Step::Push(len) => {
                let bytes = content(number, len);
                model.extend_from_slice(&bytes);
                world.elsewhere.push(&log(), &bytes);
            }
            Step::Stat => {
                let stat = world.cached().stat(&log()).await.expect("it is there");
                assert_eq!(stat.head, offset(model.len()));
                assert!(loans.iter().all(|loan| bytes_of(loan) == model));
            }
            // Whoever borrows knows which life is meant.
            Step::Lend => loans.extend(world.lend().filter(|loan| loan.life == life)),
            Step::GiveBack => {
                drop(loans.pop());
                // The one who followed it sees to the budget.
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
            }
            Step::Restart(cleanly) => {
                loans.clear();
                world.restart(cleanly).await;
            }
            Step::Replace(len) => {
                loans.clear();
                model = content(number, len);
                life = world.elsewhere.put(&log(), model.clone());
            }
        }
        for loan in &loans {
            let bytes = bytes_of(loan);
            assert!(model.starts_with(&bytes), "what is lent has a hole");
        }
        let lent = world.state("cache-lent-bytes");
        assert!(world.state("cache-bytes") <= (3 * MIB).max(lent));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is read, appended, evicted, lent and restarted, each byte is the model's.
    #[test]
    fn agrees_with_a_vector_of_bytes(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(agrees(steps));
    }
}
