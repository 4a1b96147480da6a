//! `courant fsck`: whether the stored fragments of journals are whole.

mod report;
mod source;

use super::mount::postfix;
use crate::connection::Connection;
use crate::progress::Progress;
use crate::{Error, output, seams, selection};
use client::{Fragments, audit};
use protocol::Selector;
use report::Report;
use source::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  courant fsck --broker http://broker:8080                  all journals of a broker
  courant fsck --broker http://broker:8080 -l name:prefix=logs/ --file-root /srv/store
  courant fsck --store s3://logs/prefix/                    what a store holds, with no broker
  courant fsck --store file:///srv/store/ -o json

Every object is read whole and its sum verified. A line for each finding says journal, offsets, kind
and object: gap, lost (a power cut took it before it was synced), disagreement (overlapping
fragments with other bytes), damaged, missing, unread, name (it is no fragment's). What lies below
the first fragment was trimmed and is no finding. Objects are read with this process's credentials,
else by URLs that the broker signs; names that are no fragment's are seen with the former only.
Exit code 1 when there is a finding.";

/// Verify the stored fragments of journals.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Fsck {
    /// The URL of a store whose journals are found by listing it. No broker is asked then.
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Only journals that match, such as `name:prefix=logs/`. With --store there are no labels,
    /// only names.
    #[arg(short = 'l', long, default_value = "")]
    selector: Selector,

    /// The directory below which file:// stores lie [default: / with --store].
    #[arg(long, value_name = "DIR")]
    file_root: Option<PathBuf>,

    /// With --store: the directories between a journal and its fragments, such as `date=*/hour=*`.
    #[arg(long, value_name = "PATTERN", requires = "store")]
    postfix: Vec<String>,

    /// The form of the output.
    #[arg(short = 'o', long, value_enum, default_value = "text")]
    format: Format,

    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A line for each finding, and one for all.
    Text,
    /// One object, with all findings.
    Json,
}

impl Fsck {
    pub async fn run(self) -> Result<(), Error> {
        let (source, ways) = self.source().await?;
        let mut report = Report::new(self.format == Format::Text);
        let progress = Progress::bytes("verifying", source.total(), true);
        report.add(&progress, source.names())?;
        selection::note_if_none(&self.selector, source.journals().is_empty());
        for journal in source.journals() {
            let subject = source.subject(&journal).await?;
            let read = audit::read_all(&ways, &subject.listed, |len| progress.advance(len)).await;
            report.checked(&subject);
            report.add(&progress, subject.gaps())?;
            report.add(&progress, read)?;
        }
        drop(progress);
        output::print(&report.end()?)?;
        match report.is_clean() {
            true => Ok(()),
            false => Err(Error::Findings(source.name())),
        }
    }

    async fn source(&self) -> Result<(Source, Arc<Fragments>), Error> {
        if let Some(url) = &self.store {
            let root = self.file_root.as_deref().unwrap_or(Path::new("/"));
            let ways = Arc::new(Fragments::new(Some(seams::file_root(root)?)));
            let store = ways.given(url)?;
            let source = Source::of_store(&store, &postfix(&self.postfix), &self.selector).await?;
            return Ok((source, ways));
        }
        let files = self.file_root.as_deref().map(seams::file_root).transpose()?;
        let ways = Arc::new(Fragments::new(files));
        let remote = self.connection.remote()?;
        let source = Source::of_broker(remote, ways.clone(), &self.selector).await?;
        Ok((source, ways))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fsck: Fsck,
    }

    #[test]
    fn a_store_or_a_broker_is_checked() {
        // Case: arguments, whether they are understood
        let cases: [(&[&str], bool); 7] = [
            (&[], true),
            (&["--store", "s3://bucket/", "-o", "json", "-l", "name:prefix=logs/"], true),
            (&["--broker", "http://h:1", "--file-root", "/srv"], true),
            (&["--store", "file:///", "--postfix", "day=*", "--postfix", ""], true),
            (&["--postfix", "day=*"], false),
            (&["-o", "yaml"], false),
            (&["-l", "a=b=,!"], false),
        ];
        for (arguments, expected) in cases {
            let parsed = Line::try_parse_from(["fsck"].iter().chain(arguments));
            assert_eq!(parsed.is_ok(), expected, "{arguments:?}");
        }
        let line = Line::try_parse_from(["fsck", "--store", "file:///"]).expect("valid");
        assert_eq!(line.fsck.selector, Selector::default());
        assert_eq!(postfix(&line.fsck.postfix), client::Postfix::Guessed);
    }
}
