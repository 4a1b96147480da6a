//! What was measured, as a table and as JSON.

use crate::samples::{Samples, Spread, median};
use serde_json::{Value, json};
use std::path::PathBuf;

/// One line of the table.
#[derive(Debug, Clone)]
pub struct Case {
    /// The row of docs/PERFORMANCE.md.
    pub row: u32,
    pub what: String,
    pub against: &'static str,
    pub unit: &'static str,
    pub samples: Samples,
    pub wanted: Wanted,
}

/// What the ratio is, and what it should be.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    /// Ours divided by theirs, at least so much.
    AtLeast(f64),
    /// Ours divided by theirs, so much at most.
    AtMost(f64),
    /// Theirs divided by ours, at least so much.
    TimesFaster(f64),
    /// Ours, so much at most; theirs is told.
    NoMore(f64),
    /// Ours, so much at least; theirs is told.
    NoLess(f64),
    /// No ratio: the number is told.
    Told,
}

impl Wanted {
    fn ratio(self, samples: &Samples) -> Option<Spread> {
        match self {
            Wanted::AtLeast(_) | Wanted::AtMost(_) => samples.ratio(|ours, theirs| ours / theirs),
            Wanted::TimesFaster(_) => samples.ratio(|ours, theirs| theirs / ours),
            Wanted::NoMore(_) | Wanted::NoLess(_) | Wanted::Told => None,
        }
    }

    /// Whether more of what counts is better than less.
    fn is_more_better(self, unit: &str) -> bool {
        match self {
            Wanted::AtLeast(_) | Wanted::TimesFaster(_) | Wanted::NoLess(_) => true,
            Wanted::AtMost(_) | Wanted::NoMore(_) => false,
            Wanted::Told => unit.ends_with("/s"),
        }
    }

    fn text(self) -> String {
        match self {
            Wanted::AtLeast(ratio) => format!(">= {ratio}"),
            Wanted::AtMost(ratio) => format!("<= {ratio}"),
            Wanted::TimesFaster(ratio) => format!(">= {ratio}"),
            Wanted::NoMore(number) => format!("<= {number}"),
            Wanted::NoLess(number) => format!(">= {number}"),
            Wanted::Told => String::new(),
        }
    }
}

/// The table, which grows on standard output, and the JSON that is written at the end.
pub struct Report {
    machine: Value,
    is_quick: bool,
    cases: Vec<Case>,
}

impl Report {
    pub fn begin(machine: Value, is_quick: bool) -> Report {
        say(&format!("machine: {machine}\n"));
        let (what, ratio) = ("what", "ratio (min..max)");
        say(&format!(
            "| row | {what:<44} | {:>14} | {:>14} | {ratio:<24} | {:<8} |",
            "courant", "against", "wanted"
        ));
        let rule = |width: usize| "-".repeat(width);
        say(&format!("|----:|{}|{}:|{}:|{}|{}|", rule(46), rule(15), rule(15), rule(26), rule(10)));
        Report { machine, is_quick, cases: Vec::new() }
    }

    pub fn add(&mut self, cases: Vec<Case>) {
        cases.iter().for_each(|case| say(&case.line()));
        self.cases.extend(cases);
    }

    /// Writes the JSON, and says where; its cases.
    pub fn end(self) -> Vec<Value> {
        let path = path();
        let cases: Vec<Value> = self.cases.iter().map(Case::json).collect();
        let report = json!({ "machine": self.machine, "quick": self.is_quick, "cases": &cases });
        let text = serde_json::to_string_pretty(&report).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
        say(&format!("\nwritten to {}", path.display()));
        cases
    }
}

impl Case {
    fn line(&self) -> String {
        let told = |numbers: &[f64]| match numbers {
            [] => String::new(),
            numbers => format!("{} {}", short(Spread::of(numbers).median), self.unit),
        };
        let ratio = self.wanted.ratio(&self.samples).map_or_else(String::new, |ratio| {
            let Spread { median, min, max } = ratio;
            format!("{} ({}..{})", short(median), short(min), short(max))
        });
        format!(
            "| {:>3} | {:<44} | {:>14} | {:>14} | {ratio:<24} | {:<8} |",
            self.row,
            self.what,
            told(&self.samples.ours),
            told(&self.samples.theirs),
            self.wanted.text(),
        )
    }

    fn json(&self) -> Value {
        let ratio = self.wanted.ratio(&self.samples);
        json!({
            "row": self.row,
            "what": self.what,
            "against": self.against,
            "unit": self.unit,
            "courant": self.samples.ours,
            "comparator": self.samples.theirs,
            "ratio": ratio.map(|Spread { median, min, max }| {
                json!({ "median": median, "min": min, "max": max })
            }),
            "wanted": self.wanted.text(),
            "counts": self.counts(),
            "more is better": self.wanted.is_more_better(self.unit),
        })
    }

    /// The number by which two runs are compared: a ratio, where there is one.
    fn counts(&self) -> f64 {
        let (ours, theirs) = (median(&self.samples.ours), &self.samples.theirs);
        match (self.wanted.ratio(&self.samples), self.wanted) {
            (Some(ratio), _) => ratio.median,
            (None, Wanted::Told) if !theirs.is_empty() => ours / median(theirs),
            (None, _) => ours,
        }
    }
}

/// Three digits that count, or all before the point.
pub fn short(number: f64) -> String {
    match number.abs() {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        1.0.. => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

/// `bench.json` in the target folder.
fn path() -> PathBuf {
    let bench = std::env::current_exe().unwrap();
    bench.ancestors().nth(3).expect("benches are in target/PROFILE/deps").join("bench.json")
}

#[expect(clippy::print_stdout, reason = "the table is what a bench is for")]
pub fn say(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "a wrong command line is told")]
pub fn complain(line: &str) {
    eprintln!("{line}");
}
