//! `courant journals prune`: deletes what journals do not keep, by its age or by their size.

use crate::progress::Progress;
use crate::selection::Selection;
use crate::{Error, output, size};
use client::{Deleted, Remote};
use protocol::{Journal, JournalSpec, duration};

const EXAMPLES: &str = "\
Examples:
  courant journals prune --dry-run local/log                 what would be deleted
  courant journals prune -l 'name:prefix=local/app/'

A journal keeps its fragments for `fragment.retention` of its spec; none, or 0, keeps for ever. With
the label courant/retain-bytes it keeps at least so many bytes below its head, in whole fragments.
The broker deletes, in whatever store they are. It does so by itself once a minute; this does it
now, and to the last object. The fragment that ends highest always stays.";

/// Delete stored fragments that are older than their journal's retention, or beyond its size.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Prune {
    #[command(flatten)]
    selection: Selection,

    /// Only say what would be deleted.
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let listed = self.selection.listed(remote).await?;
        let progress = Progress::steps("pruning", listed.len() as u64);
        for journal in listed {
            let name = &journal.spec.name;
            let text = match limits(&journal.spec)? {
                None => format!("{name}: kept for ever (its retention is 0)\n"),
                Some(limits) => {
                    let deleted = remote.prune(name, self.dry_run).await?;
                    self.told(name, &limits, &deleted)
                }
            };
            progress.aside(|| output::print(&text))?;
            progress.advance(1);
        }
        Ok(())
    }

    fn told(&self, journal: &Journal, limits: &str, deleted: &Deleted) -> String {
        let did = if self.dry_run { "would delete" } else { "deleted" };
        let (count, size) = (deleted.objects.len(), size::format(deleted.bytes));
        let mut text = format!("{journal}: {did} what is {limits} (objects: {count}, {size})\n");
        if self.dry_run {
            text.extend(deleted.objects.iter().map(|object| format!("  {object}\n")));
        }
        text
    }
}

/// What a journal does not keep; `None` where it keeps everything.
fn limits(spec: &JournalSpec) -> Result<Option<String>, Error> {
    let retention = spec.fragment.retention;
    let age = (!retention.is_zero()).then(|| format!("older than {}", duration::format(retention)));
    let bytes = spec.retain_bytes().map_err(client::Error::from)?;
    let far = bytes
        .map(|bytes| format!("more than {} below its head", size::format(bytes.unsigned_abs())));
    let limits: Vec<_> = age.into_iter().chain(far).collect();
    Ok((!limits.is_empty()).then(|| limits.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::specs;
    use protocol::request::Change;

    #[test]
    fn what_goes_is_said_by_the_limits_of_the_spec() {
        // Case: retention, label, what goes; nothing, or a refusal
        let cases = [
            ("0s", "", Ok(None)),
            ("30s", "", Ok(Some("older than 30s"))),
            ("0s", "1073741824", Ok(Some("more than 1.0 GiB below its head"))),
            ("30s", "1500", Ok(Some("older than 30s or more than 1.5 KiB below its head"))),
            ("30s", "many", Err("courant/retain-bytes (many)")),
        ];
        for (retention, bytes, expected) in cases {
            let labels = match bytes {
                "" => String::new(),
                bytes => format!("labels: [{{name: courant/retain-bytes, value: '{bytes}'}}],"),
            };
            let text = format!(
                "- {{name: local/log, replication: 1, {labels} fragment: {{length: 1024, \
                 compression_codec: NONE, refresh_interval: 1s, retention: {retention}}}}}"
            );
            let changes = specs::changes("test", &text).expect("valid");
            let [Change::Upsert { spec, .. }] = &changes[..] else { panic!("{changes:?}") };
            match (limits(spec), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), expected),
                (Err(refused), Err(word)) => assert!(refused.to_string().contains(word)),
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        }
    }
}
