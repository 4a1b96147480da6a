//! `courant journals list`: the specs of journals, as a table or as text that `apply` takes.

use crate::table::Table;
use crate::{Error, output, proto, random, selection};
use client::{Remote, Snapshots, specs};
use protocol::response::{ListResponse, ListedJournal};
use protocol::wire::gazette;
use protocol::{Selector, SuspendLevel};
use std::pin::pin;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  courant journals list
  courant journals list -l 'name:prefix=local/app/' --stores --rf
  courant journals list -L content-type -L tag
  courant journals list -l 'tag in (a, b), !old' --watch
  courant journals list -o yaml > specs.yaml      to edit, and then
  courant journals apply --specs specs.yaml";

/// List journals.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct List {
    /// Journals by their labels, such as `name:prefix=local/` or `tag in (a, b), !old`.
    #[arg(short = 'l', long, default_value = "", hide_default_value = true)]
    selector: Selector,

    /// The form of the output. What yaml and json show, `journals apply` takes.
    #[arg(short = 'o', long, value_enum, default_value = "table")]
    format: Format,

    /// Show the list again after each change, for ever.
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    columns: Columns,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    /// For people.
    Table,
    /// A tree of specs, with their revisions.
    Yaml,
    /// The whole answer, as protobuf's JSON.
    Json,
    /// The whole answer, as protobuf's text.
    Proto,
}

/// Columns of the table beside the name.
#[derive(clap::Args, Debug, Default)]
struct Columns {
    /// A label to show as a column. May be given more than once.
    #[arg(short = 'L', long = "label-columns", value_name = "LABEL")]
    labels: Vec<String>,

    /// Show the primary broker; <S> marks suspended journals.
    #[arg(short = 'p', long)]
    primary: bool,

    /// Show all brokers that hold the journal.
    #[arg(short = 'r', long)]
    replicas: bool,

    /// Show how many replicas are wanted.
    #[arg(long)]
    rf: bool,

    /// Show the stores of fragments.
    #[arg(long)]
    stores: bool,
}

impl List {
    pub async fn run(self, remote: &Arc<Remote>) -> Result<(), Error> {
        if !self.watch {
            let list = remote.list_whole(self.selector.clone()).await?;
            selection::note_if_none(&self.selector, list.journals.is_empty());
            return self.show(list);
        }
        let seed = random::number()?;
        let mut snapshots = Snapshots::new(remote.clone(), self.selector.clone(), seed);
        let mut closed = pin!(output::closed());
        let mut is_first = true;
        loop {
            let list = tokio::select! {
                biased;
                list = snapshots.next() => list?,
                () = &mut closed => return Err(Error::OutputClosed),
            };
            if !std::mem::take(&mut is_first) {
                output::print(self.between())?;
            }
            self.show(list)?;
        }
    }

    fn show(&self, list: ListResponse) -> Result<(), Error> {
        output::print(&match self.format {
            Format::Table => self.columns.table(&list.journals).shown(),
            Format::Yaml => specs::to_yaml(list.journals)?,
            Format::Json => proto::json(&gazette::ListResponse::from(list), WHOLE)?,
            Format::Proto => proto::text(&gazette::ListResponse::from(list), WHOLE),
        })
    }

    /// What stands between two lists of a watch.
    fn between(&self) -> &'static str {
        match self.format {
            Format::Table | Format::Proto => "\n",
            // Another document.
            Format::Yaml => "---\n",
            Format::Json => "",
        }
    }
}

const WHOLE: &str = "protocol.ListResponse";

impl Columns {
    fn table(&self, listed: &[ListedJournal]) -> Table {
        let mut heading = vec!["NAME".to_owned()];
        let shown = [
            (self.primary, "PRIMARY"),
            (self.replicas, "REPLICAS"),
            (self.rf, "#RF"),
            (self.stores, "STORES"),
        ];
        heading
            .extend(shown.iter().filter(|(is_shown, _)| *is_shown).map(|(_, n)| (*n).to_owned()));
        heading.extend(self.labels.iter().map(|label| label.to_uppercase()));
        let mut table = Table::new(heading);
        for journal in listed {
            table.row(self.row(journal));
        }
        table
    }

    fn row(&self, journal: &ListedJournal) -> Vec<String> {
        let spec = &journal.spec;
        let mut cells = vec![spec.name.to_string()];
        if self.primary {
            cells.push(primary(journal));
        }
        if self.replicas {
            let members = journal.route.members.iter().map(|member| member.suffix.as_str());
            cells.push(members.collect::<Vec<_>>().join(","));
        }
        if self.rf {
            cells.push(spec.replication.to_string());
        }
        if self.stores {
            cells.push(spec.fragment.stores.join(","));
        }
        let values = |label: &String| spec.labels.values_of(label).collect::<Vec<_>>().join(",");
        cells.extend(self.labels.iter().map(values));
        cells
    }
}

fn primary(journal: &ListedJournal) -> String {
    let member = journal.route.primary_member();
    let name = member.map_or("<none>", |member| member.suffix.as_str());
    let level = journal.spec.suspend.map(|suspend| suspend.level).unwrap_or_default();
    match level {
        SuspendLevel::None => name.to_owned(),
        SuspendLevel::Partial | SuspendLevel::Full => format!("{name} <S>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::request::Change;
    use protocol::{ProcessId, Route};

    fn listed() -> Vec<ListedJournal> {
        let text = "
- {name: local/log, replication: 1, labels: [{name: tag, value: a}, {name: tag, value: b}],
   fragment: {length: 1024, compression_codec: NONE, refresh_interval: 1s, stores: ['file:///']}}
- {name: x/sus, replication: 3, suspend: {level: FULL},
   fragment: {length: 1024, compression_codec: NONE, refresh_interval: 1s}}
";
        let changes = specs::changes("test", text).expect("valid");
        let member = ProcessId::new("local", "broker-1").expect("valid");
        let routes = [Route::alone(member, "http://b".into()), Route::default()];
        let listed = |(change, route)| match change {
            Change::Upsert { spec, .. } => {
                ListedJournal { spec: *spec, mod_revision: 7, create_revision: 7, route }
            }
            Change::Delete { .. } => panic!("nothing is deleted"),
        };
        changes.into_iter().zip(routes).map(listed).collect()
    }

    #[test]
    fn the_table_has_the_columns_that_are_asked_for() {
        let plain = Columns::default();
        assert_eq!(plain.table(&listed()).to_string(), "NAME\nlocal/log\nx/sus\n");
        let all = Columns {
            labels: vec!["tag".into()],
            primary: true,
            replicas: true,
            rf: true,
            stores: true,
        };
        let expected = "\
NAME       PRIMARY     REPLICAS  RF  STORES    TAG
local/log  broker-1    broker-1   1  file:///  a,b
x/sus      <none> <S>             3
";
        assert_eq!(all.table(&listed()).to_string(), expected);
    }
}
