//! Specs as text: what `journals apply` reads, and what `journals list` and `edit` write.
//!
//! The form is gazctl's (gazette-spec 4.2): a tree of nodes, of which those whose name is empty or
//! ends in `/` are directories. A child takes what it leaves unset from its directory. Besides, a
//! list of nodes is read, and what `journals list -o json` writes, where each spec lies under
//! `spec`.
//!
//! Rooms: `text` (the keys), `node` (a node, unset values and all), `flatten` (a tree to changes),
//! `hoist` (specs to the smallest tree), `read` and `write` (whole documents), `template`.

mod flatten;
mod hoist;
mod node;
mod read;
mod template;
mod text;
mod write;

pub use read::changes;
pub use template::TemplateSpec;
pub use write::to_yaml;
