//! What operators ask: pruning, and the templates that journals are created by.

use super::fault::fault_of;
use super::object_of;
use crate::prune::Pruned;
use crate::{Broker, Error};
use bytes::Bytes;
use cluster::Template;
use prost::Message;
use protocol::wire::courant::{self, ChangedTemplate, PruneResponse, PutTemplateRequest};
use protocol::wire::gazette;
use protocol::{Invalid, JournalSpec, Pattern};

/// The answer to a prune.
pub fn pruned(pruned: Result<Pruned, Error>) -> PruneResponse {
    match pruned {
        Ok(Pruned { fragments, first }) => PruneResponse {
            objects: fragments.iter().map(object_of).collect(),
            bytes: fragments.iter().map(|fragment| fragment.span.len()).sum(),
            first: first.get(),
            ..PruneResponse::default()
        },
        Err(error) => PruneResponse {
            fault: fault_of(&error).into(),
            detail: error.to_string(),
            ..PruneResponse::default()
        },
    }
}

/// The templates by prefix. The built-in one is among them until another has its empty prefix.
pub fn templates(broker: &Broker) -> Vec<courant::Template> {
    let put = broker.key_space().templates();
    let built_in = Template::built_in();
    let hides_built_in = put.get(&built_in.prefix).is_some();
    let mut shown = Vec::new();
    if !hides_built_in {
        shown.push(courant::Template { is_built_in: true, ..to_wire(&built_in) });
    }
    shown.extend(put.iter().map(to_wire));
    shown
}

/// Puts a template; answers the revision of the key space.
pub async fn put_template(broker: &Broker, request: PutTemplateRequest) -> Result<i64, Error> {
    let template = from_wire(request.template.unwrap_or_default())?;
    Ok(broker.key_space().put_template(template).await?)
}

/// The answer to a change of the templates.
pub fn changed(revision: Result<i64, Error>) -> ChangedTemplate {
    match revision {
        Ok(revision) => ChangedTemplate { revision, ..ChangedTemplate::default() },
        Err(error) => {
            let (fault, detail) = (fault_of(&error).into(), error.to_string());
            ChangedTemplate { fault, detail, revision: 0 }
        }
    }
}

fn to_wire(template: &Template) -> courant::Template {
    courant::Template {
        prefix: template.prefix.clone(),
        spec: Bytes::from(gazette::JournalSpec::from(template.spec()).encode_to_vec()),
        refuse: template.refuse.iter().map(|pattern| pattern.as_str().to_owned()).collect(),
        is_built_in: false,
    }
}

fn from_wire(template: courant::Template) -> Result<Template, Invalid> {
    let spec = gazette::JournalSpec::decode(template.spec)
        .map_err(|error| Invalid::new(format!("not an encoded JournalSpec ({error})")))?;
    Ok(Template {
        prefix: template.prefix,
        defaults: JournalSpec::try_from(spec)?.into(),
        refuse: template.refuse.into_iter().map(Pattern::new).collect(),
    })
}
