//! `.courant/status`: the state of a mount as a text of `name value` lines.

use crate::names::{STATUS, control_inode};
use crate::{Attr, Filesystem};
use client::Space;
use std::fmt::Write;

impl Filesystem {
    pub(crate) fn status_text(&self) -> String {
        let Space { total, free } = self.journals.space();
        let lines: [(&str, &dyn std::fmt::Display); 10] = [
            ("prefix", &self.options.prefix),
            ("passthrough", &self.has_passthrough()),
            ("read-only", &self.options.read_only),
            ("lines", &self.options.lines),
            ("async", &self.options.asynchronous),
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
        if let Some(away) = self.journals.away() {
            let lines = [
                format!("broker-away-seconds {}", away.lasts().as_secs()),
                format!("broker-away-because {}", away.why),
            ];
            lines.iter().for_each(|line| writeln!(text, "{line}").expect("a string takes it"));
        }
        for (name, value) in self.journals.state() {
            writeln!(text, "{name} {value}").expect("a string takes every byte");
        }
        self.add_staged(&mut text);
        for reason in self.specs_refused.all() {
            writeln!(text, "spec-refused {reason}").expect("a string takes every byte");
        }
        self.add_opened(&mut text);
        text
    }

    /// What waits to be committed, and what became of files that are closed.
    fn add_staged(&self, text: &mut String) {
        let Some(staging) = &self.staging else { return };
        let waiting = staging.waiting();
        let numbers = [
            ("staged-bytes", waiting.bytes),
            ("staged-files", waiting.drafts as u64),
            ("staged-aside", waiting.aside),
        ];
        for (name, value) in numbers {
            writeln!(text, "{name} {value}").expect("a string takes every byte");
        }
        for outcome in staging.outcomes.all() {
            writeln!(text, "closed {outcome}").expect("a string takes every byte");
        }
    }

    pub(crate) fn status_attr(&self) -> Attr {
        let size = self.status_text().len() as u64;
        Attr { size, ..Attr::file(&self.options, control_inode(STATUS), false) }
    }
}
