//! `.courant/status`: the state of a mount as a text of `name value` lines.

use crate::names::{STATUS, control_inode};
use crate::{Attr, Filesystem};
use client::Space;
use std::fmt::Write;

impl Filesystem {
    pub(crate) fn status_text(&self) -> String {
        let Space { total, free } = self.journals.space();
        let lines: [(&str, &dyn std::fmt::Display); 8] = [
            ("prefix", &self.options.prefix),
            ("passthrough", &self.has_passthrough()),
            ("read-only", &self.options.read_only),
            ("nodes", &self.nodes.len()),
            ("handles", &self.handles.len()),
            ("placeholders", &self.placeholders.len()),
            ("space-total-bytes", &total),
            ("space-free-bytes", &free),
        ];
        let mut text = String::new();
        for (name, value) in lines {
            writeln!(text, "{name} {value}").expect("a string takes every byte");
        }
        text
    }

    pub(crate) fn status_attr(&self) -> Attr {
        let size = self.status_text().len() as u64;
        Attr { size, ..Attr::file(&self.options, control_inode(STATUS), false) }
    }
}
