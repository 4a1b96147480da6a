//! Line mode: a line that comes in several writes is one append, with its newline, or what there
//! was of it when its writer went away.

use super::{Actor, close, open};
use client::Durability;
use fs::{Error, Filesystem, WriteAt};
use protocol::Journal;
use rustix::fs::OFlags;
use std::sync::Arc;

/// Writes one line in pieces; now and then it ends before its newline.
pub async fn write_line(
    actor: &Actor,
    fs: &Arc<Filesystem>,
    journal: &Journal,
) -> Result<(), Error> {
    let (chance, model) = (&actor.chance, actor.world.model());
    let mut flags = OFlags::WRONLY | OFlags::APPEND;
    let is_synced = chance.one_in(4);
    flags.set(OFlags::DSYNC, is_synced);
    let durability = if is_synced { Durability::Disk } else { Durability::Memory };
    let handle = open(fs, &format!(".courant/lines/{journal}"), flags).await?;
    let len = usize::try_from(60 + chance.below(400)).expect("a small number");
    let most = len as u64 - 30;
    let mut ends: Vec<usize> = (0..1 + chance.below(4))
        .map(|_| usize::try_from(25 + chance.below(most)).expect("a small number"))
        .collect();
    ends.sort_unstable();
    ends.dedup();
    let tried = model.begin_line(journal, len, durability, ends.clone());
    let is_cut = chance.one_in(5);
    if !is_cut {
        ends.push(len);
    }
    actor.note(format_args!("writes line {} to {journal} by {ends:?}", tried.tag));
    let content = tried.content();
    let mut begin = 0;
    for end in ends {
        let at = WriteAt { handle, offset: 0, content: &content[begin..end], flags };
        let written = fs.write(at).await;
        match written {
            Ok(written) if written == end - begin => {}
            Ok(written) => {
                let tag = tried.tag;
                model.complain(format_args!("a piece of line {tag} is answered {written}"));
            }
            Err(error) => {
                close(fs, handle);
                return Err(error);
            }
        }
        begin = end;
        if chance.one_in(2) {
            tokio::time::sleep(chance.millis(0..40)).await;
        }
    }
    if !is_cut {
        model.written(&tried);
    }
    close(fs, handle);
    Ok(())
}
