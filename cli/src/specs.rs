//! Specs as text: what `journals apply` reads, and what `journals list` writes.
//!
//! The form is that of gazctl's YAML (gazette-spec 4.1): a list of whole specs, one spec, or a list
//! under `journals` or `children`. Nothing is inherited: each journal says all about itself. What
//! `journals list -o json` writes is read as well, where each spec lies under `spec`.

mod read;
mod write;

pub use read::changes;
pub use write::{to_json, to_yaml};
