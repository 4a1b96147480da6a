//! Journals that come and go.

use super::Actor;
use crate::model::{After, Condition};
use client::{Append, Durability, Error};
use protocol::Journal;

/// Creates a journal, appends to it, deletes it, and goes on with the next one.
pub async fn come_and_go(actor: Actor) {
    let mut number = 0;
    while !actor.is_ending() {
        number += 1;
        let name = format!("d/{}-{number}", actor.name.replace('/', "-"));
        let name = Journal::new(&name).expect("a valid name");
        if let Err(error) = one(&actor, &name).await {
            actor.note(format_args!("{name}: {error}"));
            match error {
                // A key space whose sync failed takes no change until the next start.
                Error::Conflict(..) => {}
                error => actor.check(&error),
            }
        }
        actor.rest().await;
    }
}

async fn one(actor: &Actor, name: &Journal) -> Result<(), Error> {
    let (model, journals) = (actor.world.model(), &actor.journals);
    let created = journals.create(name).await?;
    actor.note(format_args!("created {name} {:?}", created.life));
    let tried = model.begin(name, 300, None, Durability::Disk, Condition::None);
    let durability = Some(Durability::Disk);
    let append = Append { durability, ..Append::new(name.clone(), tried.content()) };
    let span = journals.append(append).await?.span;
    model.acknowledged(&tried, span, false);
    actor.rest().await;
    // It is there, by a look or by all of it.
    let floor = model.floor(name);
    model.told_head(name, floor, journals.stat(name).await?.head);
    if actor.chance.one_in(3) {
        let found = crate::world::read_all(&**journals, name).await?;
        model.audit(name, &found, After::Calm);
    }
    if actor.chance.one_in(2) {
        return Ok(());
    }
    journals.purge(name).await?;
    actor.note(format_args!("deleted {name}"));
    match journals.stat(name).await {
        Err(Error::NotFound(_)) => {}
        Err(error) => return Err(error),
        Ok(stat) => model.complain(format_args!("{name} was deleted, and is there: {stat:?}")),
    }
    Ok(())
}
