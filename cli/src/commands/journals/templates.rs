//! `courant journals templates`: how journals are created by their names alone.

use super::apply::read_specs;
use crate::table::Table;
use crate::{Error, output, size};
use client::specs::TemplateSpec;
use client::{Remote, Template};
use protocol::duration;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  courant journals templates list
  courant journals templates list -o yaml > templates.yaml     to edit, and then
  courant journals templates put --specs templates.yaml
  courant journals templates delete local/app/

A journal that is created by its name, as by writing to a new file of a mount, takes its spec from
the template with the longest prefix of the name. That one alone counts: nothing is inherited. Names
whose last part matches a pattern of `refuse` (* and ?) are refused. Journals that exist stay as
they are.";

/// List and change the templates that new journals are made by.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Templates {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show all templates.
    List {
        /// The form of the output. What yaml shows, `put` takes.
        #[arg(short = 'o', long, value_enum, default_value = "table")]
        format: Format,
    },
    /// Put templates in the place of those of their prefixes.
    Put {
        /// The file of templates, in YAML; - is standard input.
        #[arg(long, value_name = "FILE", default_value = "-")]
        specs: PathBuf,
    },
    /// Remove a template. Journals stay.
    Delete {
        /// Its prefix, such as `local/app/`.
        prefix: String,
    },
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    Table,
    Yaml,
}

impl Templates {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        match self.command {
            Command::List { format } => list(remote, format).await,
            Command::Put { specs } => {
                let (origin, text) = read_specs(&specs)?;
                for spec in TemplateSpec::parse(&origin, &text)? {
                    let TemplateSpec { prefix, refuse, spec } = spec;
                    let told = format!("put the template of {prefix:?}\n");
                    let is_built_in = false;
                    remote.put_template(Template { prefix, spec, refuse, is_built_in }).await?;
                    output::print(&told)?;
                }
                Ok(())
            }
            Command::Delete { prefix } => delete(remote, prefix).await,
        }
    }
}

async fn list(remote: &Remote, format: Format) -> Result<(), Error> {
    let templates = remote.templates().await?;
    output::print(&match format {
        Format::Table => table(&templates).shown(),
        Format::Yaml => {
            let spec = |template: Template| TemplateSpec {
                prefix: template.prefix,
                refuse: template.refuse,
                spec: template.spec,
            };
            TemplateSpec::to_yaml(&templates.into_iter().map(spec).collect::<Vec<_>>())?
        }
    })
}

async fn delete(remote: &Remote, prefix: String) -> Result<(), Error> {
    let templates = remote.templates().await?;
    if !templates.iter().any(|template| template.prefix == prefix && !template.is_built_in) {
        return Err(Error::NoTemplate(prefix));
    }
    remote.delete_template(&prefix).await?;
    output::print(&format!("deleted the template of {prefix:?}\n"))
}

fn table(templates: &[Template]) -> Table {
    let mut table =
        Table::new(["PREFIX", "#RF", "#LENGTH", "CODEC", "RETENTION", "STORES", "REFUSE"]);
    for template in templates {
        let spec = &template.spec;
        let prefix = match template.is_built_in {
            true => "\"\" (built in)".to_owned(),
            false => format!("{:?}", template.prefix),
        };
        let retention = match spec.fragment.retention.is_zero() {
            true => "for ever".to_owned(),
            false => duration::format(spec.fragment.retention),
        };
        table.row(vec![
            prefix,
            spec.replication.to_string(),
            size::format(spec.fragment.length),
            spec.fragment.codec.to_string(),
            retention,
            spec.fragment.stores.join(","),
            template.refuse.join(" "),
        ]);
    }
    table
}
