//! Findings as they are printed: a line each, or all in one object.

use super::source::Subject;
use crate::progress::Progress;
use crate::{Error, output, size};
use client::audit::Finding;
use serde::Serialize;

/// What was found so far.
#[derive(Debug)]
pub struct Report {
    /// Findings are printed as they come.
    is_text: bool,
    findings: Vec<Finding>,
    totals: Totals,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
struct Totals {
    journals: u64,
    fragments: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Shown<'f> {
    journal: Option<&'f str>,
    begin: Option<i64>,
    end: Option<i64>,
    kind: &'static str,
    object: &'f str,
    detail: &'f str,
}

#[derive(Serialize)]
struct Whole<'f> {
    findings: Vec<Shown<'f>>,
    #[serde(flatten)]
    totals: Totals,
}

impl Report {
    pub fn new(is_text: bool) -> Self {
        Report { is_text, findings: Vec::new(), totals: Totals::default() }
    }

    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// A journal was checked.
    pub fn checked(&mut self, subject: &Subject) {
        self.totals.journals += 1;
        self.totals.fragments += subject.listed.len() as u64;
        let spans = subject.listed.iter().map(|listed| listed.fragment.span.len());
        self.totals.bytes += spans.sum::<u64>();
    }

    /// Takes findings, and tells them where they are told at once.
    pub fn add(&mut self, progress: &Progress, findings: Vec<Finding>) -> Result<(), Error> {
        if self.is_text && !findings.is_empty() {
            let lines: String = findings.iter().map(line).collect();
            progress.aside(|| output::print(&lines))?;
        }
        self.findings.extend(findings);
        Ok(())
    }

    /// What is printed last.
    pub fn end(&self) -> Result<String, Error> {
        if self.is_text {
            return Ok(self.summary());
        }
        let findings = self.findings.iter().map(shown).collect();
        let text = serde_json::to_string_pretty(&Whole { findings, totals: self.totals });
        let failed =
            |error: serde_json::Error| Error::Specs("the report".into(), error.to_string());
        text.map(|text| text + "\n").map_err(failed)
    }

    fn summary(&self) -> String {
        let Totals { journals, fragments, bytes } = self.totals;
        let findings = match self.findings.len() {
            0 => "nothing is wrong".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        let bytes = size::format(bytes);
        format!("journals: {journals}, fragments: {fragments}, verified: {bytes}; {findings}\n")
    }
}

/// `JOURNAL BEGIN..END KIND OBJECT: DETAIL`, with `-` for what there is not.
fn line(finding: &Finding) -> String {
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let journal = or_none(finding.journal.as_ref().map(ToString::to_string).unwrap_or_default());
    let span = or_none(finding.span.map(|span| span.to_string()).unwrap_or_default());
    let object = or_none(finding.object.clone());
    format!("{journal} {span} {} {object}: {}\n", finding.kind.name(), finding.detail)
}

fn shown(finding: &Finding) -> Shown<'_> {
    Shown {
        journal: finding.journal.as_ref().map(|journal| journal.as_str()),
        begin: finding.span.map(|span| span.begin().get()),
        end: finding.span.map(|span| span.end().get()),
        kind: finding.kind.name(),
        object: &finding.object,
        detail: &finding.detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::audit::Kind;
    use protocol::{Offset, Span};

    #[test]
    fn findings_are_lines_and_objects() {
        let gap = Finding {
            journal: Some("a/log".parse().expect("valid")),
            span: Some(Span::at(Offset::from(5), 4)),
            kind: Kind::Gap,
            object: String::new(),
            detail: "no fragment has these bytes".into(),
        };
        let name = Finding {
            journal: None,
            span: None,
            kind: Kind::Name,
            object: "lost/x.raw".into(),
            detail: "wrong name".into(),
        };
        assert_eq!(line(&gap), "a/log 5..9 gap -: no fragment has these bytes\n");
        assert_eq!(line(&name), "- - name lost/x.raw: wrong name\n");
        let report =
            Report { is_text: false, findings: vec![gap, name], totals: Totals::default() };
        let json: serde_json::Value =
            serde_json::from_str(&report.end().expect("can be written")).expect("is JSON");
        assert_eq!(json["findings"][0]["begin"], 5);
        assert_eq!(json["findings"][0]["kind"], "gap");
        assert!(json["findings"][1]["journal"].is_null());
        assert_eq!(json["journals"], 0);
        assert!(report.summary().ends_with("; 2 findings\n"));
    }
}
