//! What a repair comes to: what is gone, by journal, and how many steps it took.

use crate::size;
use index::Recovered;
use index::repair::Step;
use protocol::{Journal, Span};
use std::collections::BTreeMap;

/// Adds up the steps of a repair, or of one that was only tried.
#[derive(Debug)]
pub struct Summary {
    is_dry: bool,
    steps: usize,
    /// Bytes that were there and are in no place any more, by journal.
    gone: BTreeMap<Journal, u64>,
}

impl Summary {
    pub fn new(is_dry: bool) -> Self {
        Summary { is_dry, steps: 0, gone: BTreeMap::new() }
    }

    /// What a line begins with.
    pub fn would(&self) -> &'static str {
        if self.is_dry { "would be: " } else { "" }
    }

    pub fn count(&mut self, step: &Step) {
        self.steps += 1;
        if let Step::Damaged { journal, span, .. } = step {
            self.add(journal, *span);
        }
    }

    fn add(&mut self, journal: &Journal, span: Span) {
        *self.gone.entry(journal.clone()).or_default() += span.len();
    }

    /// All of it in lines. What recovery found is told by a start, too.
    pub fn of(mut self, recovered: &Recovered) -> String {
        let gone = recovered.found_damaged.iter().chain(&recovered.lost);
        gone.for_each(|(journal, span)| self.add(journal, *span));
        let mut lines = Vec::new();
        let damaged = recovered.damaged.iter();
        lines.extend(damaged.map(|(journal, span)| format!("damaged: {journal} {span}")));
        let lost = recovered.lost.iter();
        lines.extend(lost.map(|(journal, span)| format!("lost: {journal} {span}")));
        let healed = recovered.healed.iter();
        lines.extend(healed.map(|(journal, span)| {
            format!("healed: {journal} {span} of the mirror: written again from the log")
        }));
        lines.extend(recovered.orphans.iter().map(|file| format!("of no journal: {file}")));
        let places = recovered.damaged_log.iter();
        lines.extend(
            places.map(|(from, to)| {
                format!("the log from {from} to {to}: damaged, and kept in aside")
            }),
        );
        let would = self.would();
        lines.iter_mut().for_each(|line| line.insert_str(0, would));
        lines.extend(self.gone.iter().map(|(journal, len)| {
            format!("{would}gone: {journal}: {len} bytes ({})", size::format(*len))
        }));
        let sum = match self.gone.values().sum::<u64>() {
            0 => "no byte of a journal is gone".to_owned(),
            len => format!("gone: {len} bytes of {} journals", self.gone.len()),
        };
        let changed = if self.is_dry { "; nothing was changed" } else { "" };
        lines.push(format!(
            "journals: {}; steps: {}; {sum}{changed}",
            recovered.journals, self.steps
        ));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::record::Position;
    use protocol::Offset;

    fn span(begin: u32, len: u64) -> Span {
        Span::at(Offset::from(begin), len)
    }

    #[test]
    fn what_is_gone_is_added_up_by_journal() {
        let journal = |name: &str| -> Journal { name.parse().expect("valid") };
        let (one, two) = (journal("local/one"), journal("local/two"));
        let at = "aside/x".into();
        let step = Step::Damaged { journal: one.clone(), span: span(0, 100), at };
        let recovered = Recovered {
            journals: 3,
            damaged: vec![(one.clone(), span(500, 7)), (one.clone(), span(900, 20))],
            found_damaged: vec![(one.clone(), span(900, 20))],
            lost: vec![(two, span(0, 4096))],
            healed: vec![(one, span(5, 1))],
            damaged_log: vec![(Position::new(1, 8), Position::new(1, 16))],
            ..Recovered::default()
        };
        // Case: whether it was only tried, and lines that are there
        let cases: [(bool, [&str; 5]); 2] = [
            (
                false,
                [
                    "gone: local/one: 120 bytes (120 B)",
                    "gone: local/two: 4096 bytes (4.0 KiB)",
                    "healed: local/one 5..6 of the mirror: written again from the log",
                    "the log from 00000001+8 to 00000001+16: damaged, and kept in aside",
                    "journals: 3; steps: 1; gone: 4216 bytes of 2 journals",
                ],
            ),
            (
                true,
                [
                    "would be: gone: local/one: 120 bytes (120 B)",
                    "would be: gone: local/two: 4096 bytes (4.0 KiB)",
                    "would be: healed: local/one 5..6 of the mirror: written again from the log",
                    "would be: the log from 00000001+8 to 00000001+16: damaged, and kept in aside",
                    "journals: 3; steps: 1; gone: 4216 bytes of 2 journals; nothing was changed",
                ],
            ),
        ];
        for (is_dry, expected) in cases {
            let mut summary = Summary::new(is_dry);
            summary.count(&step);
            let text = summary.of(&recovered);
            for line in expected {
                assert!(text.lines().any(|found| found == line), "nothing of {line} in: {text}");
            }
        }
    }
}
