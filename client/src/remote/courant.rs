//! The requests of `Journals` as `courant.v1` makes them.

use super::door::Door;
use super::fault;
use super::pieces::{Parts, courant_messages};
use super::words::{About, broken, stat};
use crate::{Append, Appended, Error, Stat};
use protocol::wire::courant::{
    AppendResponse, CreateRequest, DeleteRequest, HeadsRequest, PruneRequest, SyncRequest,
};
use protocol::{Journal, Life, Offset, Span};

/// What a deletion removes, or would remove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deleted {
    /// Objects of stores, by name. Empty where only the spec goes.
    pub objects: Vec<String>,
    /// Bytes of those objects, or of the journal where it has none.
    pub bytes: u64,
}

pub(crate) async fn list(door: &Door, prefix: &str) -> Result<Vec<Stat>, Error> {
    let request = HeadsRequest { prefix: prefix.to_owned(), ..Default::default() };
    door.heads(request).await?.heads.into_iter().map(stat).collect()
}

/// The journals of these names that exist, by name.
pub(crate) async fn stats(door: &Door, journals: &[Journal]) -> Result<Vec<Stat>, Error> {
    if journals.is_empty() {
        // A request of no names is one of all.
        return Ok(Vec::new());
    }
    let journals = journals.iter().map(Journal::to_string).collect();
    let request = HeadsRequest { journals, ..Default::default() };
    door.heads(request).await?.heads.into_iter().map(stat).collect()
}

pub(crate) async fn one(door: &Door, journal: &Journal) -> Result<Stat, Error> {
    let found = stats(door, std::slice::from_ref(journal)).await?;
    found.into_iter().next().ok_or_else(|| Error::NotFound(journal.clone()))
}

/// Appends once. Where no answer comes, a writer with a sequence may ask again, and nobody else.
pub(crate) async fn append(door: &Door, append: &Append, parts: Parts) -> Result<Appended, Error> {
    let len = parts.len();
    let messages = courant_messages(append, parts);
    let mut client = door.courant();
    let answer = match (client.append(messages).await, append.writer) {
        (Ok(answer), _) => answer.into_inner(),
        (Err(status), Some(_)) => return Err(door.fault(status)),
        (Err(status), None) => return Err(fault::append_error(door.url(), status)),
    };
    appended(append, len, answer)
}

/// What the answer to an append of `len` bytes says.
pub(crate) fn appended(
    append: &Append,
    len: u64,
    answer: AppendResponse,
) -> Result<Appended, Error> {
    let sequence = append.writer.map(|writer| writer.sequence).unwrap_or_default();
    let about = About { len, sequence, limit: answer.limit, ..About::journal(&append.journal) };
    about.check(answer.fault, answer.detail.clone(), answer.head)?;
    let begin = Offset::new(answer.begin).map_err(broken)?;
    let end = Offset::new(answer.end).map_err(broken)?;
    let span = Span::new(begin, end).map_err(broken)?;
    let life = Life::new(answer.life);
    if append.life.is_some_and(|meant| meant != life) {
        return Err(Error::Deleted(append.journal.clone()));
    }
    Ok(Appended { span, life, repeated: answer.repeated })
}

pub(crate) async fn sync(door: &Door, journal: &Journal, below: Offset) -> Result<(), Error> {
    let request = SyncRequest { journal: journal.to_string(), offset: below.get() };
    let mut client = door.courant();
    let answer = door.ask(client.sync(request)).await?;
    About::journal(journal).check(answer.fault, answer.detail, 0)
}

pub(crate) async fn create(door: &Door, journal: &Journal) -> Result<Stat, Error> {
    let request = CreateRequest { journal: journal.to_string() };
    let mut client = door.courant();
    let answer = door.ask(client.create(request)).await?;
    About::journal(journal).check(answer.fault, answer.detail, 0)?;
    stat(answer.head.ok_or_else(|| Error::Protocol(format!("{journal}: created without head")))?)
}

/// Deletes a journal, or says what that would remove.
pub(crate) async fn delete(
    door: &Door,
    journal: &Journal,
    purge: bool,
    dry_run: bool,
    mod_revision: Option<i64>,
) -> Result<Deleted, Error> {
    let expect_mod_revision = mod_revision.unwrap_or_default();
    let request =
        DeleteRequest { journal: journal.to_string(), purge, dry_run, expect_mod_revision };
    // Not bounded by time: removing many objects takes what it takes.
    let answer = door.courant().delete(request).await.map_err(|status| door.fault(status))?;
    let answer = answer.into_inner();
    let about = About { revision: expect_mod_revision, ..About::journal(journal) };
    about.check(answer.fault, answer.detail, 0)?;
    Ok(Deleted { objects: answer.objects, bytes: answer.bytes })
}

/// Deletes what is older than a journal's retention, or says what that would remove.
pub(crate) async fn prune(door: &Door, journal: &Journal, dry_run: bool) -> Result<Deleted, Error> {
    let request = PruneRequest { journal: journal.to_string(), dry_run };
    // Not bounded by time: removing many objects takes what it takes.
    let answer = door.courant().prune(request).await.map_err(|status| door.fault(status))?;
    let answer = answer.into_inner();
    About::journal(journal).check(answer.fault, answer.detail, 0)?;
    Ok(Deleted { objects: answer.objects, bytes: answer.bytes })
}
