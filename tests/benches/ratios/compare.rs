//! A run beside an earlier one: which rows became worse.

use crate::report::{say, short};
use serde_json::Value;
use std::path::Path;

/// What is seen: a number that is worse by more than a quarter.
const WORSE: f64 = 0.25;

/// What an earlier run wrote.
pub struct Earlier {
    cases: Vec<Value>,
}

impl Earlier {
    /// `None` where the file is none of a run.
    pub fn read(path: &Path) -> Option<Earlier> {
        let text = std::fs::read_to_string(path).ok()?;
        let report: Value = serde_json::from_str(&text).ok()?;
        let cases = report["cases"].as_array()?.clone();
        cases.iter().all(|case| case["counts"].is_number()).then_some(Earlier { cases })
    }

    /// Tells which cases are worse than they were; whether none is. Those that one run alone has
    /// are left out.
    pub fn is_kept_by(&self, cases: &[Value]) -> bool {
        let pairs = cases.iter().filter_map(|case| Some((case, self.find(case)?)));
        let worse: Vec<String> = pairs.filter_map(|(now, then)| complaint(now, then)).collect();
        match worse.is_empty() {
            true => say("no row is worse by more than a quarter"),
            false => worse.iter().for_each(|line| say(line)),
        }
        worse.is_empty()
    }

    fn find(&self, sought: &Value) -> Option<&Value> {
        let is_same = |case: &&Value| ["row", "what"].iter().all(|key| case[key] == sought[key]);
        self.cases.iter().find(is_same)
    }
}

fn complaint(now: &Value, then: &Value) -> Option<String> {
    let (is, was) = (now["counts"].as_f64()?, then["counts"].as_f64()?);
    let is_worse = match now["more is better"].as_bool()? {
        true => is < was / (1.0 + WORSE),
        false => is > was * (1.0 + WORSE),
    };
    let (row, what) = (&now["row"], now["what"].as_str()?);
    is_worse.then(|| format!("worse: row {row}, {what}: {}, was {}", short(is), short(was)))
}
