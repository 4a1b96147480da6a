//! Journals that come and go.

use super::Actor;
use crate::model::{After, Condition};
use client::{Append, Durability, Error};
use protocol::Journal;

/// Creates a journal, appends to it, deletes it, and goes on with the same name or the next one.
pub async fn come_and_go(actor: Actor) {
    let mut number = 0;
    while !actor.is_ending() {
        let name = format!("d/{}-{number}", actor.name.replace('/', "-"));
        let name = Journal::new(&name).expect("a valid name");
        match one(&actor, &name).await {
            Ok(()) => number += actor.chance.below(2),
            Err(error) => {
                actor.note(format_args!("{name}: {error}"));
                // An end that nobody answered may still come, for the name that is used next, too.
                number += 1;
                match error {
                    // A key space whose sync failed takes no change until the next start.
                    Error::Conflict(..) => {}
                    error => actor.check(&error),
                }
            }
        }
        actor.rest().await;
    }
}

async fn one(actor: &Actor, name: &Journal) -> Result<(), Error> {
    let (model, journals) = (actor.world.model(), &actor.journals);
    let created = journals.create(name).await?;
    model.created(name, created.life);
    for _ in 0..1 + actor.chance.below(3) {
        append(actor, name).await?;
    }
    actor.rest().await;
    // It is there, by a look or by all of it.
    let floor = model.floor(name);
    model.told_head(name, floor, journals.stat(name).await?.head);
    if actor.chance.one_in(3) {
        let found = crate::world::read_all(&**journals, name).await?;
        model.audit(name, &found, After::Calm);
    }
    if actor.chance.one_in(3) {
        return Ok(());
    }
    model.going(name);
    journals.purge(name).await?;
    model.gone(name);
    match journals.stat(name).await {
        Err(Error::NotFound(_)) => {}
        Err(error) => return Err(error),
        Ok(stat) => model.complain(format_args!("{name} was deleted, and is there: {stat:?}")),
    }
    Ok(())
}

/// The first appends of a journal are those that its ceiling is not raised for yet.
async fn append(actor: &Actor, name: &Journal) -> Result<(), Error> {
    let model = actor.world.model();
    let durability = actor.chance.pick(&[Durability::Disk, Durability::Memory]);
    let tried = model.begin(name, 300, None, durability, Condition::None);
    let append =
        Append { durability: Some(durability), ..Append::new(name.clone(), tried.content()) };
    let span = actor.journals.append(append).await?.span;
    model.acknowledged(&tried, span, false);
    Ok(())
}
