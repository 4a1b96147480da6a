//! Writers over the API: at `disk` and at `memory`, on conditions, and again after a failure with
//! the same writer and sequence.

use super::Actor;
use crate::model::{Condition, REGISTER, Tried, value_of};
use client::{Append, Appended, Durability, Error, Writer};
use protocol::{Journal, LabelSet, Selector};

/// How an append ended.
pub enum Fate {
    Done,
    /// It did not happen, and does not any more.
    Refused,
    /// It may have happened, or still happen.
    Unknown,
}

/// Appends again and again, as one writer.
pub async fn write(actor: Actor, journal: Journal) {
    let mut writer = Writer { id: actor.chance.id(), sequence: 0 };
    while !actor.is_ending() {
        writer.sequence += 1;
        let tried = begin(&actor, &journal, writer, Condition::None);
        persist(&actor, &tried).await;
        if actor.chance.one_in(4) {
            // As who did not hear the answer, perhaps after a restart.
            actor.rest().await;
            persist(&actor, &tried).await;
        }
        if actor.chance.one_in(12) {
            sync(&actor, &journal).await;
        }
        actor.rest().await;
    }
}

/// Appends on the condition that nobody else did.
pub async fn write_at(actor: Actor, journal: Journal) {
    let mut writer = Writer { id: actor.chance.id(), sequence: 0 };
    while !actor.is_ending() {
        actor.rest().await;
        let floor = actor.world.model().floor(&journal);
        let Ok(stat) = actor.journals.stat(&journal).await else { continue };
        actor.world.model().told_head(&journal, floor, stat.head);
        writer.sequence += 1;
        let tried = begin(&actor, &journal, writer, Condition::At(stat.head));
        persist(&actor, &tried).await;
    }
}

/// Counts in the register, together with others who do: none counts the same number twice.
pub async fn count(actor: Actor, journal: Journal) {
    let mut writer = Writer { id: actor.chance.id(), sequence: 0 };
    while !actor.is_ending() {
        actor.rest().await;
        let Ok(stat) = actor.journals.stat(&journal).await else { continue };
        let condition = match stat.registers.as_ref().and_then(value_of) {
            Some(value) => Condition::Register(value),
            // No register at all matches everything: the first of them is set.
            None => Condition::Set(1),
        };
        writer.sequence += 1;
        let tried = begin(&actor, &journal, writer, condition);
        persist(&actor, &tried).await;
    }
}

fn begin(actor: &Actor, journal: &Journal, writer: Writer, condition: Condition) -> Tried {
    let chance = &actor.chance;
    let len = match chance.below(20) {
        0..=13 => 20 + chance.below(200),
        14..=18 => 500 + chance.below(2_500),
        _ => 4_000 + chance.below(5_000),
    };
    begin_of(actor, journal, len, writer, condition)
}

/// Notes an append of so many bytes that is about to be tried.
pub fn begin_of(
    actor: &Actor,
    journal: &Journal,
    len: u64,
    writer: Writer,
    condition: Condition,
) -> Tried {
    let durability = match actor.chance.below(actor.world.plan().disk_share) {
        0 => Durability::Disk,
        _ => Durability::Memory,
    };
    let len = usize::try_from(len).expect("a small number");
    actor.world.model().begin(journal, len, Some(writer), durability, condition)
}

/// Asks until the append is decided, or for a while: then another one comes, and nobody knows what
/// became of this one.
pub async fn persist(actor: &Actor, tried: &Tried) -> Fate {
    let tries = if actor.chance.one_in(6) { 1 } else { 40 };
    for _ in 0..tries {
        match append(actor, tried).await {
            Fate::Unknown => actor.wait().await,
            decided => return decided,
        }
    }
    Fate::Unknown
}

async fn append(actor: &Actor, tried: &Tried) -> Fate {
    let (model, tag) = (actor.world.model(), tried.tag);
    actor.note(format_args!("appends {tag} to {} {:?}", tried.journal, tried.condition));
    match actor.journals.append(request(tried)).await {
        Ok(Appended { span, repeated, .. }) => {
            model.acknowledged(tried, span, repeated);
            Fate::Done
        }
        Err(Error::WrongOffset { head, .. }) => {
            model.refused(tried, head);
            Fate::Refused
        }
        Err(Error::RegisterMismatch { registers, .. }) => {
            model.mismatched(tried, &registers);
            Fate::Refused
        }
        Err(error) => {
            actor.note(format_args!("append {tag}: {error}"));
            actor.check(&error);
            Fate::Unknown
        }
    }
}

fn request(tried: &Tried) -> Append {
    let number =
        |value: u64| LabelSet::default().with(REGISTER, &value.to_string()).expect("a valid label");
    let mut append = Append {
        durability: Some(tried.durability),
        writer: tried.writer,
        ..Append::new(tried.journal.clone(), tried.content())
    };
    match tried.condition {
        Condition::None => {}
        Condition::At(offset) => append.offset = Some(offset),
        Condition::Set(value) => append.union_registers = number(value),
        Condition::Register(value) => {
            let include = number(value);
            append.check_registers = Some(Selector { include, exclude: LabelSet::default() });
            append.union_registers = number(value + 1);
        }
    }
    append
}

/// Makes all durable that is there.
async fn sync(actor: &Actor, journal: &Journal) {
    let floor = actor.world.model().floor(journal);
    match actor.journals.sync(journal, floor).await {
        Ok(()) => actor.world.model().durable(journal, floor),
        Err(error) => actor.note(format_args!("sync: {error}")),
    }
}
