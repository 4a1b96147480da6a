//! `courant journals fragments`: what stores and brokers hold of journals.

use crate::selection::Selection;
use crate::table::Table;
use crate::{Error, output, proto, size, time};
use client::Remote;
use protocol::request::FragmentsRequest;
use protocol::response::{ListedFragment, ListedJournal};
use protocol::wire::gazette;
use protocol::{Fragment, SuspendLevel};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  courant journals fragments                         of all journals
  courant journals fragments local/log
  courant journals fragments -l 'name:prefix=local/' -o json --url-ttl 1h
  courant journals fragments local/log --from $(date -d yesterday +%s)";

/// List fragments of journals: the local ones, and those in stores.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, mut_group("Selection", |group| group.required(false)))]
pub struct Fragments {
    #[command(flatten)]
    selection: Selection,

    /// The form of the output.
    #[arg(short = 'o', long, value_enum, default_value = "table")]
    format: Format,

    /// Leave out fragments that were stored before, in Unix seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    from: i64,

    /// Leave out fragments that were stored later, and those that are only local.
    #[arg(long, value_name = "SECONDS")]
    to: Option<i64>,

    /// Show URLs by which the fragments can be fetched for this long, such as 1h.
    #[arg(long, value_name = "DURATION", value_parser = time::duration)]
    url_ttl: Option<Duration>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    /// For people.
    Table,
    /// One answer with the fragments of all journals, as protobuf's JSON.
    Json,
    /// The same as protobuf's text.
    Proto,
}

impl Fragments {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let mut all = Vec::new();
        for (journal, listed) in self.selection.named_or_listed(remote).await? {
            let is_of_one = self.selection.is_of_one();
            if let Some(why) = listed.and_then(|listed| unlisted(&listed, is_of_one)) {
                output::note(&format!("{journal}: {why}"));
                continue;
            }
            let request = FragmentsRequest {
                begin_mod_time: self.from,
                end_mod_time: self.to,
                signature_ttl: self.url_ttl,
                ..FragmentsRequest::new(journal)
            };
            all.extend(remote.fragments(request).await?);
        }
        let text = match self.format {
            Format::Table => table(&all, self.url_ttl.is_some()).shown(),
            Format::Json => proto::json(&answer(all), ANSWER)?,
            Format::Proto => proto::text(&answer(all), ANSWER),
        };
        output::print(&text)
    }
}

fn table(fragments: &[ListedFragment], has_urls: bool) -> Table {
    let mut heading =
        vec!["JOURNAL", "#BEGIN", "#END", "#SIZE", "STORED", "CODEC", "SHA1", "STORE"];
    heading.extend(has_urls.then_some("URL"));
    let mut table = Table::new(heading);
    for listed in fragments {
        let mut row = cells(&listed.fragment);
        row.extend(has_urls.then(|| listed.signed_url.clone()));
        table.row(row);
    }
    table
}

fn cells(fragment: &Fragment) -> Vec<String> {
    let stored = match fragment.is_persisted() {
        true => time::format(fragment.mod_time),
        false => "local".to_owned(),
    };
    vec![
        fragment.journal.to_string(),
        fragment.begin().to_string(),
        fragment.end().to_string(),
        size::format(fragment.span.len()),
        stored,
        fragment.codec.to_string(),
        // What still grows has no sum.
        if fragment.sum.is_zero() { "-".to_owned() } else { fragment.sum.to_string() },
        fragment.backing_store.clone(),
    ]
}

const ANSWER: &str = "protocol.FragmentsResponse";

/// The fragments as one answer. It comes of many, so that none of their headers is its own.
fn answer(fragments: Vec<ListedFragment>) -> gazette::FragmentsResponse {
    let listed = |listed: ListedFragment| gazette::fragments_response::Fragment {
        spec: Some(listed.fragment.into()),
        signed_url: listed.signed_url,
    };
    let fragments = fragments.into_iter().map(listed).collect();
    gazette::FragmentsResponse { fragments, ..Default::default() }
}

/// Why a journal is passed over. One that may not be read fails the command where it was named, and
/// does not keep the others from being listed elsewhere.
fn unlisted(listed: &ListedJournal, is_of_one: bool) -> Option<&'static str> {
    let spec = &listed.spec;
    let is_suspended = spec.suspend.is_some_and(|suspend| suspend.level == SuspendLevel::Full);
    match is_suspended {
        true => Some("suspended, so no broker has a list: append to it to resume it"),
        false if !spec.flags.may_read() && !is_of_one => {
            Some("write-only, so its fragments are not listed")
        }
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Codec, Offset, Span, Sum};

    fn sum() -> Sum {
        Sum::new([0x5a; 20])
    }

    fn listed() -> Vec<ListedFragment> {
        let journal: protocol::Journal = "local/log".parse().expect("valid");
        let span = |begin: u32, len| Span::at(Offset::from(begin), len);
        let stored = Fragment {
            mod_time: 1_709_251_200,
            backing_store: "file:///".into(),
            ..Fragment::local(journal.clone(), span(0, 2048), sum(), Codec::Gzip)
        };
        let local = Fragment::local(journal, span(2048, 100), Sum::ZERO, Codec::None);
        let signed = |fragment, url: &str| ListedFragment { fragment, signed_url: url.into() };
        vec![signed(stored, "http://store/x"), signed(local, "")]
    }

    #[test]
    fn stored_and_local_fragments_are_told_apart() {
        let sum = sum().to_string();
        let text = table(&listed(), true).to_string();
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0].last(), Some(&"URL"));
        let stored = ["local/log", "0", "2048", "2.0", "KiB", "2024-03-01T00:00:00Z", "GZIP"];
        assert_eq!(rows[1][..7], stored);
        assert_eq!(rows[1][7..], [sum.as_str(), "file:///", "http://store/x"]);
        assert_eq!(rows[2], ["local/log", "2048", "2148", "100", "B", "local", "NONE", "-"]);
        let json = proto::json(&answer(listed()), ANSWER).expect("can be written");
        let json: serde_json::Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!(json["fragments"][0]["spec"]["compression_codec"], "GZIP");
        assert_eq!(json["fragments"][1]["spec"]["begin"], "2048");
        assert_eq!(json["fragments"][1]["signed_url"], "");
    }
}
