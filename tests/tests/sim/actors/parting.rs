//! Appends that come in parts: those that are complete are made whole, and those that their client
//! gives up in the middle are not made at all.

use super::Actor;
use super::appending::{Fate, begin_of, persist};
use crate::model::{Condition, Tried};
use client::{Append, Remote, Writer};
use protocol::Journal;
use protocol::request::AppendPart;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Bytes of an append of many messages.
const BULK: std::ops::Range<u64> = 262_144..330_000;

/// Appends in parts again and again, as one writer.
pub async fn append_in_parts(actor: Actor, remote: Arc<Remote>, journal: Journal) {
    let mut writer = Writer { id: actor.chance.id(), sequence: 0 };
    while !actor.is_ending() {
        actor.rest().await;
        writer.sequence += 1;
        let is_bulk = actor.world.plan().has_bulk && actor.chance.one_in(3);
        let range = if is_bulk { BULK } else { 200..3_000 };
        let len = range.start + actor.chance.below(range.end - range.start);
        let tried = begin_of(&actor, &journal, len, writer, Condition::None);
        let gives_up = actor.chance.one_in(3);
        if gives_up {
            actor.world.model().given_up(&tried);
        }
        let fate = append(&actor, &remote, &tried, gives_up).await;
        if matches!(fate, Fate::Unknown) && !gives_up {
            persist(&actor, &tried).await;
        }
    }
}

async fn append(actor: &Actor, remote: &Remote, tried: &Tried, gives_up: bool) -> Fate {
    let (parts, taken) = mpsc::channel(1);
    let content = tried.content();
    // What is given up may be all but the word that it is complete.
    let most = if gives_up { actor.chance.below(content.len() as u64 + 1) } else { u64::MAX };
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(content.len());
    let piece = (content.len() / 4).max(1);
    let send = async {
        for part in content.slice(..most).chunks(piece) {
            let part = AppendPart::Content(content.slice_ref(part));
            if parts.send(part).await.is_err() {
                return;
            }
            tokio::time::sleep(actor.chance.millis(0..60)).await;
        }
        if !gives_up {
            let _ = parts.send(AppendPart::Commit).await;
        }
        drop(parts);
    };
    let append = Append {
        durability: Some(tried.durability),
        writer: tried.writer,
        ..Append::new(tried.journal.clone(), bytes::Bytes::new())
    };
    actor.note(format_args!("appends {} in parts, gives up {gives_up}", tried.tag));
    let (answer, ()) = tokio::join!(remote.append_parts(append, taken), send);
    match answer {
        // The model says what is wrong with one that was given up.
        Ok(appended) => {
            actor.world.model().acknowledged(tried, appended.span, appended.repeated);
            Fate::Done
        }
        Err(error) => {
            actor.note(format_args!("append {}: {error}", tried.tag));
            if !gives_up {
                actor.check(&error);
            }
            Fate::Unknown
        }
    }
}
