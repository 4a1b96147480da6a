//! Who looks at many journals at once: their heads in one request, and waiting for any of them.

use super::Actor;
use crate::plan::journals;
use client::Stat;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use protocol::Journal;
use std::collections::BTreeSet;
use tokio::time::timeout;

/// Asks for all heads, then waits for one that grows.
pub async fn watch(actor: Actor) {
    let names: Vec<Journal> = journals().collect();
    while !actor.is_ending() {
        actor.rest().await;
        if actor.chance.one_in(3) {
            list(&actor).await;
            continue;
        }
        let Some(stats) = heads(&actor, &names).await else { continue };
        let known = stats.into_iter();
        let mut growing: FuturesUnordered<_> = known
            .map(|stat| {
                let journals = actor.journals.clone();
                async move {
                    let grown = journals.grown(&stat.journal, stat.life, stat.head).await;
                    (stat.journal, stat.head, grown)
                }
            })
            .collect();
        // It ends with the world: nobody wakes who waits for journals at rest.
        let first = timeout(actor.chance.millis(200..4_000), growing.next()).await;
        if let Ok(Some((name, floor, Ok(stat)))) = first {
            actor.note(format_args!("grown {name} {}", stat.head));
            if stat.head <= floor {
                let head = stat.head;
                actor.world.model().complain(format_args!("{name} grew from {floor} to {head}"));
            }
            actor.world.model().told_head(&name, floor, stat.head);
        }
    }
}

/// The heads of journals that stay, in one request. All of them are told.
async fn heads(actor: &Actor, names: &[Journal]) -> Option<Vec<Stat>> {
    let model = actor.world.model();
    let floors: Vec<_> = names.iter().map(|name| model.floor(name)).collect();
    let stats = actor.journals.stats(names)?.await.ok()?;
    for (name, floor) in names.iter().zip(floors) {
        let Some(stat) = stats.iter().find(|stat| stat.journal == *name) else {
            model.complain(format_args!("the heads of many lack {name}"));
            return None;
        };
        actor.note(format_args!("one of many {name} {}", stat.head));
        model.told_head(name, floor, stat.head);
    }
    Some(stats)
}

/// A listing has every journal that was there before and after it.
async fn list(actor: &Actor) {
    let model = actor.world.model();
    let before = model.lives();
    let Ok(stats) = actor.journals.list("d/").await else { return };
    let listed: BTreeSet<_> = stats.into_iter().map(|stat| (stat.journal, stat.life)).collect();
    let after = model.lives();
    actor.note(format_args!("lists {} journals", listed.len()));
    if let Some((name, life)) = before.intersection(&after).find(|there| !listed.contains(there)) {
        model.complain(format_args!("a listing lacks {name} of {life:?}"));
    }
}
