//! Appends over a session: several under way to several journals, joined in groups, each answered
//! with its own span, in the order in which they were pushed.

use super::Actor;
use crate::model::{Condition, Tried};
use crate::plan::{JOURNALS, journal};
use client::{Append, Appender, Durability, Error, Receipt, Remote};
use protocol::{Journal, Offset, Span};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long an append is asked for: past a restart of the broker, mostly.
const PATIENCE: Duration = Duration::from_secs(8);

/// Bytes of an append, and of one of which four fill a group.
const SMALL: Range<u64> = 20..420;
const BULK: Range<u64> = 10_000..25_000;

/// What became of an append that was pushed.
type Answer = (Tried, Result<Span, Error>);

/// Pushes bursts again and again, each followed by its answers.
pub async fn push(actor: Actor, remote: Arc<Remote>) {
    let mut appender = new(&actor, &remote);
    while !actor.is_ending() {
        actor.rest().await;
        let durability = match actor.chance.below(actor.world.plan().disk_share) {
            0 => Durability::Disk,
            _ => Durability::Memory,
        };
        let mut answers = JoinSet::new();
        // So much to one journal that several groups of it are under way; they are staged, since
        // no record of these small segments holds one.
        let plan = actor.world.plan();
        let is_bulk = plan.has_bulk && plan.inline_max < BULK.start && actor.chance.one_in(3);
        let only = actor.chance.pick(&JOURNALS);
        for _ in 0..1 + actor.chance.below(12) {
            let name = journal(if is_bulk { only } else { actor.chance.pick(&JOURNALS) });
            let len = if is_bulk { BULK } else { SMALL };
            let len = len.start + actor.chance.below(len.end - len.start);
            let (tried, receipt) = push_one(&actor, &appender, &name, durability, len).await;
            // Each is noted when it comes, also while others are pushed.
            answers.spawn(answer(actor.clone(), tried, receipt));
            if actor.chance.one_in(4) {
                sleep(actor.chance.millis(0..20)).await;
            }
        }
        if actor.chance.one_in(10) {
            // As who dies: what was not answered may be made or not.
            appender = new(&actor, &remote);
            continue;
        }
        check_order(&actor, answers.join_all().await);
        if let Err(error) = appender.flush().await {
            actor.note(format_args!("flush: {error}"));
            actor.check(&error);
        }
    }
}

fn new(actor: &Actor, remote: &Arc<Remote>) -> Appender {
    Appender::new(remote.clone(), actor.chance.id(), PATIENCE)
}

async fn push_one(
    actor: &Actor,
    appender: &Appender,
    name: &Journal,
    durability: Durability,
    len: u64,
) -> (Tried, Receipt) {
    let len = usize::try_from(len).expect("a small number");
    let tried = actor.world.model().begin(name, len, None, durability, Condition::None);
    actor.note(format_args!("pushes {} to {name} {durability:?}", tried.tag));
    let append =
        Append { durability: Some(durability), ..Append::new(name.clone(), tried.content()) };
    let receipt = appender.push(append).await;
    (tried, receipt)
}

async fn answer(actor: Actor, tried: Tried, receipt: Receipt) -> Answer {
    let answer = receipt.appended().await;
    match &answer {
        Ok(appended) => {
            actor.world.model().acknowledged(&tried, appended.span, appended.repeated);
        }
        Err(error) => {
            actor.note(format_args!("push {}: {error}", tried.tag));
            actor.check(error);
        }
    }
    (tried, answer.map(|appended| appended.span))
}

/// Appends to one journal lie in the order in which they were pushed, and none is made behind one
/// that was refused.
fn check_order(actor: &Actor, mut answers: Vec<Answer>) {
    answers.sort_by_key(|(tried, _)| tried.tag);
    let mut ends: BTreeMap<Journal, Result<Offset, u64>> = BTreeMap::new();
    for (tried, answer) in answers {
        let tag = tried.tag;
        let last = ends.entry(tried.journal).or_insert(Ok(Offset::ZERO));
        match answer {
            Ok(span) => {
                if !last.is_ok_and(|end| end <= span.begin()) {
                    let model = actor.world.model();
                    model.complain(format_args!("push {tag} at {span} overtook {last:?}"));
                }
                *last = Ok(span.end());
            }
            Err(_) => *last = Err(tag),
        }
    }
}
