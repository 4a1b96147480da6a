//! Templates as bytes: their spec in Gazette's encoding, so that it grows as specs do.

use super::Template;
use prost::Message;
use protocol::wire::gazette;
use protocol::{Invalid, JournalSpec, Pattern};

/// What the key space holds under a prefix. Field numbers stay.
#[derive(Clone, PartialEq, Message)]
struct Stored {
    #[prost(message, optional, tag = "1")]
    spec: Option<gazette::JournalSpec>,
    #[prost(string, repeated, tag = "2")]
    refuse: Vec<String>,
}

impl Template {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let refuse = self.refuse.iter().map(|pattern| pattern.as_str().to_owned()).collect();
        Stored { spec: Some(self.spec().into()), refuse }.encode_to_vec()
    }

    pub(crate) fn decode(prefix: String, bytes: &[u8]) -> Result<Self, Invalid> {
        let stored = Stored::decode(bytes)
            .map_err(|error| Invalid::new(format!("not an encoded template ({error})")))?;
        let spec = JournalSpec::try_from(stored.spec.unwrap_or_default())?;
        let refuse = stored.refuse.into_iter().map(Pattern::new).collect();
        Ok(Template { prefix, defaults: spec.into(), refuse })
    }
}
