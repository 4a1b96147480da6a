//! The requests of `Journals` as a Gazette broker can answer them.
//!
//! Gazette has no heads in bulk, no creation by template and no durability on disk; and an append
//! whose answer was lost is never made again, since it might be applied twice.

use super::door::Door;
use super::pieces::{Parts, gazette_messages};
use super::words::broken;
use super::{fault, outcome};
use crate::limits::HEADS_AT_ONCE;
use crate::{Append, Appended, Durability, Error, Stat};
use futures::stream::{self, StreamExt, TryStreamExt};
use protocol::request::{ListRequest, ReadFrom, ReadRequest};
use protocol::response::{AppendResponse, ListResponse, ListedJournal, ReadMetadata, ReadResponse};
use protocol::{Etcd, Journal, Label, LabelSet, Life, Offset, Selector, Status, selector};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;

/// Journals that a selector means, with the key space that they come from.
pub(crate) struct Listed {
    pub journals: Vec<ListedJournal>,
    pub etcd: Etcd,
}

/// All pages of a list.
pub(crate) async fn list_specs(door: &Door, selector: Selector) -> Result<Listed, Error> {
    let ListResponse { header, journals, .. } = list_whole(door, selector).await?;
    let header = header.ok_or_else(|| Error::Protocol("a list without a header".to_owned()))?;
    Ok(Listed { journals, etcd: header.etcd })
}

/// All pages of a list as one, under the header of the first.
pub(crate) async fn list_whole(door: &Door, selector: Selector) -> Result<ListResponse, Error> {
    let request = ListRequest { selector, watch: false, watch_resume: None };
    let mut client = door.gazette();
    let mut pages =
        door.ask(client.list(protocol::wire::gazette::ListRequest::from(request))).await?;
    let mut whole = ListResponse::default();
    while let Some(page) = pages.message().await.map_err(|status| door.fault(status))? {
        let page = ListResponse::try_from(page).map_err(broken)?;
        if page.status != Status::Ok {
            return Err(Error::Later(format!("{}: {}", door.url(), page.status)));
        }
        whole.header = whole.header.or(page.header);
        whole.journals.extend(page.journals);
    }
    Ok(whole)
}

pub(crate) async fn list(door: &Door, prefix: &str) -> Result<Vec<Stat>, Error> {
    list_selected(door, under(prefix)?).await
}

/// The journals of these names that exist, by name.
pub(crate) async fn stats(door: &Door, journals: &[Journal]) -> Result<Vec<Stat>, Error> {
    let Some((first, more)) = journals.split_first() else { return Ok(Vec::new()) };
    let mut selector = named(first);
    for journal in more {
        // Of one label's values a selector means any.
        selector.include =
            selector.include.with(selector::NAME, journal.as_str()).map_err(broken)?;
    }
    list_selected(door, selector).await
}

/// The specs with one request, and then the ends of some at a time.
async fn list_selected(door: &Door, selector: Selector) -> Result<Vec<Stat>, Error> {
    let listed = list_specs(door, selector).await?;
    let stats = listed.journals.into_iter().map(|journal| stat_of(door, journal, listed.etcd));
    stream::iter(stats).buffered(HEADS_AT_ONCE).try_collect().await
}

/// The selector of names that begin with a prefix.
fn under(prefix: &str) -> Result<Selector, Error> {
    if prefix.is_empty() {
        return Ok(Selector::default());
    }
    let label = Label { name: selector::NAME.into(), value: prefix.into(), prefix: true };
    let include = LabelSet::for_selector(vec![label])?;
    Ok(Selector { include, exclude: LabelSet::default() })
}

/// The selector of one name.
pub(crate) fn named(journal: &Journal) -> Selector {
    let name = LabelSet::default().with(selector::NAME, journal.as_str());
    let include = name.expect("a journal's name is a valid value");
    Selector { include, exclude: LabelSet::default() }
}

pub(crate) async fn one(door: &Door, journal: &Journal) -> Result<Stat, Error> {
    let listed = list_specs(door, named(journal)).await?;
    let found = listed.journals.into_iter().next();
    let found = found.ok_or_else(|| Error::NotFound(journal.clone()))?;
    stat_of(door, found, listed.etcd).await
}

/// Gazette gives journals no identity; name and create revision in a cluster are one. Hashed with
/// FNV-1a and mixed, so that every mount and every release finds the same.
fn life(etcd: Etcd, listed: &ListedJournal) -> Life {
    let numbers = [etcd.cluster_id.to_le_bytes(), listed.create_revision.to_le_bytes()];
    let bytes = numbers.as_flattened().iter().chain(listed.spec.name.as_str().as_bytes());
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, fold);
    Life::new(hash ^ (hash >> 29))
}

/// The life of the journal of a name.
pub(crate) async fn life_of(door: &Door, journal: &Journal) -> Result<Life, Error> {
    let listed = list_specs(door, named(journal)).await?;
    let found = listed.journals.first().ok_or_else(|| Error::NotFound(journal.clone()))?;
    Ok(life(listed.etcd, found))
}

async fn stat_of(door: &Door, listed: ListedJournal, etcd: Etcd) -> Result<Stat, Error> {
    let life = life(etcd, &listed);
    let journal = listed.spec.name.clone();
    let may_read = listed.spec.flags.may_read();
    let (first, head, mod_time) = match may_read {
        true => ends(door, &journal).await?,
        false => (Offset::ZERO, Offset::ZERO, 0),
    };
    Ok(Stat {
        life,
        first,
        trimmed: first,
        head,
        synced: Offset::ZERO,
        persisted: Offset::ZERO,
        modified: UNIX_EPOCH + Duration::from_secs(mod_time.max(0).unsigned_abs()),
        create_revision: listed.create_revision,
        mod_revision: listed.mod_revision,
        content_type: listed.spec.content_type().map(str::to_owned),
        may_read,
        may_write: listed.spec.flags.may_write(),
        fragments: 0,
        gaps: 0,
        registers: None,
        journal,
    })
}

/// The first readable offset, the write head, and the time of the last fragment in a store.
async fn ends(door: &Door, journal: &Journal) -> Result<(Offset, Offset, i64), Error> {
    let head = metadata(door, journal, ReadFrom::Head).await?.write_head;
    if head == Offset::ZERO {
        return Ok((head, head, 0));
    }
    let first = metadata(door, journal, ReadFrom::At(Offset::ZERO)).await?;
    let last = Offset::new(head.get() - 1).expect("the head is above zero");
    let last = metadata(door, journal, ReadFrom::At(last)).await?;
    let mod_time = last.fragment.map(|fragment| fragment.mod_time).unwrap_or_default();
    // Where nothing is readable yet, the head is all that is known.
    let begin = if first.status == Status::Ok { first.offset } else { head };
    Ok((begin, head.max(first.write_head), mod_time))
}

/// The write head, as the broker knows it at this moment.
pub(crate) async fn head(door: &Door, journal: &Journal) -> Result<Offset, Error> {
    Ok(metadata(door, journal, ReadFrom::Head).await?.write_head)
}

async fn metadata(door: &Door, journal: &Journal, from: ReadFrom) -> Result<ReadMetadata, Error> {
    let request = ReadRequest { metadata_only: true, ..ReadRequest::new(journal.clone(), from) };
    read_metadata(door, journal, request).await
}

async fn read_metadata(
    door: &Door,
    journal: &Journal,
    request: ReadRequest,
) -> Result<ReadMetadata, Error> {
    let request = protocol::wire::gazette::ReadRequest::from(request);
    let answer = door.gazette().read(request).await.map_err(|status| door.fault(status))?;
    let message = answer.into_inner().message().await.map_err(|status| door.fault(status))?;
    // A broker that is about to stop ends blocked reads without an answer.
    let message = message.ok_or_else(|| Error::Later(format!("{journal}: the read was ended")))?;
    match ReadResponse::try_from(message).map_err(broken)? {
        ReadResponse::Metadata(metadata) => match metadata.status {
            Status::Ok | Status::OffsetNotYetAvailable => Ok(*metadata),
            status => Err(outcome::error(status, journal)),
        },
        ReadResponse::Content { .. } => {
            Err(Error::Protocol(format!("{journal}: content before its metadata")))
        }
    }
}

/// Waits until a byte at `beyond` is there.
pub(crate) async fn wait(door: &Door, journal: &Journal, beyond: Offset) -> Result<(), Error> {
    let from = ReadFrom::At(beyond);
    let request =
        ReadRequest { metadata_only: true, block: true, ..ReadRequest::new(journal.clone(), from) };
    read_metadata(door, journal, request).await.map(drop)
}

/// Follows the set of journals: each snapshot of a watch is another census. Returns the last one
/// when the broker ends the watch.
pub(crate) async fn follow_census(door: &Door, census: &watch::Sender<u64>) -> Result<u64, Error> {
    let all = ListRequest { selector: Selector::default(), watch: true, watch_resume: None };
    let all = protocol::wire::gazette::ListRequest::from(all);
    let mut pages =
        door.gazette().list(all).await.map_err(|status| door.fault(status))?.into_inner();
    while let Some(page) = pages.message().await.map_err(|status| door.fault(status))? {
        let page = ListResponse::try_from(page).map_err(broken)?;
        if let Some(header) = page.header {
            census.send_replace(header.etcd.revision.unsigned_abs());
        }
    }
    let last = *census.borrow();
    Ok(last)
}

pub(crate) async fn append(door: &Door, append: &Append, parts: Parts) -> Result<Appended, Error> {
    if append.durability == Some(Durability::Disk) {
        return Err(no_disk(door));
    }
    let journal = &append.journal;
    if append.offset == Some(Offset::ZERO) {
        // Gazette's 0 asserts nothing; the next best is to look.
        let head = metadata(door, journal, ReadFrom::Head).await?.write_head;
        if head != Offset::ZERO {
            return Err(Error::WrongOffset { journal: journal.clone(), head });
        }
    }
    let life = life_of(door, journal).await?;
    if append.life.is_some_and(|meant| meant != life) {
        return Err(Error::Deleted(journal.clone()));
    }
    let answer = door.gazette().append(gazette_messages(append, parts)).await;
    let answer = answer.map_err(|status| fault::append_error(door.url(), status))?.into_inner();
    let answer = AppendResponse::try_from(answer).map_err(broken)?;
    match (answer.status, answer.commit) {
        (Status::Ok, Some(commit)) => Ok(Appended { span: commit.span, life, repeated: false }),
        (Status::WrongAppendOffset, _) => {
            let head = metadata(door, journal, ReadFrom::Head).await?.write_head;
            Err(Error::WrongOffset { journal: journal.clone(), head })
        }
        (Status::RegisterMismatch, _) => {
            let registers = answer.registers.unwrap_or_default();
            Err(Error::RegisterMismatch { journal: journal.clone(), registers })
        }
        (_, commit) => Err(outcome::refused(AppendResponse { commit, ..answer }, journal)),
    }
}

pub(crate) fn no_disk(door: &Door) -> Error {
    Error::NoDisk(format!("the Gazette broker at {}", door.url()))
}

/// As [`not_there`], of what is about no journal.
pub(crate) fn unsupported(door: &Door, lack: &str) -> Error {
    Error::Unsupported(format!("the broker at {} is one of Gazette and {lack}", door.url()))
}

/// The answer to what Gazette has no request for.
pub(crate) fn not_there(door: &Door, journal: &Journal, what: &str) -> Error {
    let detail = format!("the Gazette broker at {} {what}", door.url());
    Error::NotAllowed { journal: journal.clone(), detail }
}
