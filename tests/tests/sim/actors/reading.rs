//! Readers: they look anywhere, or follow the head.

use super::Actor;
use client::{Error, Read};
use protocol::{Journal, Offset};

/// Looks at the head and at bytes anywhere.
pub async fn look(actor: Actor, journal: Journal) {
    while !actor.is_ending() {
        actor.rest().await;
        let floor = actor.world.model().floor(&journal);
        let Ok(stat) = actor.journals.stat(&journal).await else { continue };
        actor.note(format_args!("head {journal} {}", stat.head));
        actor.world.model().told_head(&journal, floor, stat.head);
        let back = actor.chance.below(stat.head.as_u64().clamp(1, 20_000));
        let offset = Offset::ZERO.plus(stat.head.as_u64().saturating_sub(back));
        read(&actor, &journal, offset).await;
    }
}

/// Reads all bytes in their order, and waits for more at the head.
pub async fn follow(actor: Actor, journal: Journal) {
    let mut offset = Offset::ZERO;
    while !actor.is_ending() {
        let before = offset;
        offset = read(&actor, &journal, offset).await;
        if offset > before {
            continue;
        }
        let Ok(stat) = actor.journals.stat(&journal).await else {
            actor.wait().await;
            continue;
        };
        // It ends with the world: nobody wakes who waits at the head of a journal at rest.
        let grown = actor.journals.grown(&journal, stat.life, offset);
        if let Ok(Ok(stat)) = tokio::time::timeout(actor.chance.millis(500..5_000), grown).await {
            actor.note(format_args!("grown {journal} {}", stat.head));
            actor.world.model().told_head(&journal, offset, stat.head);
        }
    }
}

/// Reads once, and says where to go on.
async fn read(actor: &Actor, journal: &Journal, offset: Offset) -> Offset {
    let model = actor.world.model();
    let floor = model.floor(journal);
    let max = 1 + usize::try_from(actor.chance.below(6_000)).expect("a small number");
    let read = Read { journal: journal.clone(), life: None, offset, max };
    match actor.journals.read(read).await {
        Ok(bytes) => {
            actor.note(format_args!("read {journal} {offset}+{}", bytes.len()));
            model.saw(journal, floor, offset, &bytes);
            offset.plus(bytes.len() as u64)
        }
        Err(Error::Lost { span, .. }) => {
            actor.note(format_args!("lost {journal} {span}"));
            model.saw_lost(journal, offset);
            span.end()
        }
        Err(Error::Trimmed { span, .. }) => {
            actor.note(format_args!("trimmed {journal} {span}"));
            model.saw_trimmed(journal, span.end());
            span.end()
        }
        Err(error) => {
            actor.note(format_args!("read {journal} {offset}: {error}"));
            actor.check(&error);
            actor.wait().await;
            offset
        }
    }
}
