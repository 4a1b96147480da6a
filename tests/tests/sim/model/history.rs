//! A journal that was read whole, against what was promised of it.

use super::{After, Book, Condition, DISTURBED, Known, LOSS_MAX, index, value_of};
use client::Durability;
use protocol::{LabelSet, Offset, Span};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// A journal, whole: its readable bytes in runs, and what is lost between them.
#[derive(Debug, Default)]
pub struct Found {
    /// Below, everything is trimmed.
    pub first: Offset,
    pub head: Offset,
    pub runs: Vec<(Offset, Vec<u8>)>,
    pub lost: Vec<Span>,
    pub registers: LabelSet,
}

/// Appends by the offset at which they lie.
type Places = BTreeMap<Offset, Place>;

/// An append, and how much of it there is.
pub(super) struct Place {
    tag: u64,
    len: usize,
}

impl Book {
    pub(super) fn audit(
        &mut self,
        found: &Found,
        after: After,
        disturbed: Option<Instant>,
    ) -> Result<(), String> {
        if found.head < self.head {
            return Err(format!("the head {} is below {}", found.head, self.head));
        }
        let settled = match after {
            After::Power(at) => self.settled_at(at, disturbed),
            After::Calm | After::Kill => Offset::ZERO,
        };
        self.keep(found)?;
        for lost in &found.lost {
            self.lose(*lost, after, settled)?;
        }
        for (begin, run) in &found.runs {
            self.saw(Offset::ZERO, *begin, run)?;
        }
        let places = self.cut(found)?;
        self.audit_promises(&places, found)?;
        self.audit_registers(&places, value_of(&found.registers))?;
        self.go_on(&places, found, after);
        Ok(())
    }

    /// The end of what was acknowledged long enough before a power cut: a sync has covered it.
    fn settled_at(&self, cut: Instant, disturbed: Option<Instant>) -> Offset {
        let since = |at: Instant| cut.saturating_duration_since(at);
        if disturbed.is_some_and(|at| since(at) < DISTURBED) {
            return Offset::ZERO;
        }
        let old = self.acknowledged.iter().filter(|(at, _)| since(*at) > LOSS_MAX);
        old.map(|(_, end)| *end).max().unwrap_or_default()
    }

    /// What is lost is lost for good and by a power cut alone, is young, and was not promised.
    fn lose(&mut self, lost: Span, after: After, settled: Offset) -> Result<(), String> {
        // What was lost before may be told together with what follows it.
        let mut fresh = lost.begin();
        while let Some(before) = self.lost.iter().find(|before| before.contains(fresh)) {
            fresh = before.end();
        }
        if fresh >= lost.end() {
            return Ok(());
        }
        if !matches!(after, After::Power(_)) {
            return Err(format!("{lost} is lost without a power cut"));
        }
        if fresh < self.durable {
            return Err(format!("{lost} is lost, and was durable below {}", self.durable));
        }
        if fresh < settled {
            return Err(format!(
                "{lost} is lost, and below {settled} it is more than a second old"
            ));
        }
        let (from, to) = (index(fresh), index(lost.end()));
        if self.known.len() < to {
            self.known.resize(to, Known::Nothing);
            self.bytes.resize(to, 0);
        }
        for known in &mut self.known[from..to] {
            *known = match known {
                Known::Byte | Known::Gone => Known::Gone,
                Known::Nothing | Known::Lost => Known::Lost,
            };
        }
        self.lost.push(Span::between(fresh, lost.end()));
        Ok(())
    }

    /// Cuts runs of readable bytes into appends that were tried, each whole and there once.
    fn cut(&self, found: &Found) -> Result<Places, String> {
        let (mut places, mut once) = (Places::new(), BTreeSet::new());
        for (begin, run) in &found.runs {
            let mut at = 0;
            while at < run.len() {
                let offset = begin.plus(at as u64);
                let tag = run.get(at + 1..at + 9).and_then(|tag| std::str::from_utf8(tag).ok());
                let tag = tag.and_then(|tag| u64::from_str_radix(tag, 16).ok());
                let Some(attempt) = tag.and_then(|tag| self.attempts.get(&tag)) else {
                    let there = String::from_utf8_lossy(&run[at..run.len().min(at + 40)]);
                    return Err(format!("no append begins at {offset}: {there:?}"));
                };
                let tag = attempt.tried.tag;
                let Some(len) = attempt.len_at(&run[at..]) else {
                    return Err(format!("append {tag} is torn at {offset}"));
                };
                if attempt.is_refused {
                    return Err(format!("append {tag} was refused, and is there at {offset}"));
                }
                if !once.insert(tag) {
                    return Err(format!("append {tag} is there twice, again at {offset}"));
                }
                places.insert(offset, Place { tag, len });
                at += len;
            }
        }
        Ok(places)
    }

    /// What was acknowledged is there, or lost.
    fn audit_promises(&self, places: &Places, found: &Found) -> Result<(), String> {
        let (lost, first) = (&found.lost, found.first);
        let there: BTreeMap<u64, Offset> =
            places.iter().map(|(at, place)| (place.tag, *at)).collect();
        for (tag, attempt) in &self.attempts {
            let at = there.get(tag).copied();
            match (attempt.span, at) {
                (Some(span), Some(at)) if span.begin() != at => {
                    return Err(format!("append {tag} was at {span}, and is at {at}"));
                }
                (Some(span), None) if span.end() <= first => {}
                (Some(span), None) if !lost.iter().any(|lost| lost.covers(span)) => {
                    return Err(format!("append {tag} at {span} is gone, and not named as lost"));
                }
                // Where a write of a mount went is not told: it may be in what was lost.
                (None, None) if attempt.is_acknowledged => {
                    let is_disk = attempt.tried.durability == Durability::Disk;
                    if is_disk || lost.is_empty() {
                        return Err(format!("write {tag} is gone, lost is {lost:?}"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The register followed the appends in their order, and every refusal saw a value that it had.
    fn audit_registers(&mut self, places: &Places, now: Option<u64>) -> Result<(), String> {
        let mut values: Vec<(Offset, Option<u64>)> = vec![(Offset::ZERO, None)];
        let mut value = None;
        for (at, Place { tag, .. }) in places {
            let condition = self.attempts[tag].tried.condition;
            match condition {
                Condition::Register(expected) if value.is_some_and(|value| value != expected) => {
                    return Err(format!("append {tag} at {at} expects {expected}, not {value:?}"));
                }
                _ => {}
            }
            if let Some(set) = condition.sets() {
                value = Some(set);
                values.push((*at, value));
            }
        }
        if value != now {
            return Err(format!("the register is {now:?}, and the appends leave {value:?}"));
        }
        // A power cut may have taken what set it.
        let there: BTreeSet<u64> = places.values().map(|place| place.tag).collect();
        let gone = self.attempts.iter().filter(|(tag, _)| !there.contains(tag));
        let gone: BTreeSet<u64> = gone.filter_map(|(_, a)| a.tried.condition.sets()).collect();
        for (floor, seen) in std::mem::take(&mut self.mismatches) {
            let begin = values.partition_point(|(at, _)| *at < floor).saturating_sub(1);
            let was_there = values[begin..].iter().any(|(_, value)| *value == Some(seen));
            if !was_there && !gone.contains(&seen) {
                return Err(format!("the register was told as {seen} above {floor}"));
            }
        }
        Ok(())
    }

    /// What is there stays there; what is not can only come by being asked for again.
    fn go_on(&mut self, places: &Places, found: &Found, after: After) {
        self.head = found.head;
        if after != After::Calm {
            // A recovery makes durable what it found.
            self.durable = self.head;
            self.acknowledged.clear();
        }
        for attempt in self.attempts.values_mut() {
            attempt.span = None;
            attempt.is_acknowledged = false;
        }
        for (at, Place { tag, len }) in places {
            let attempt = self.attempts.get_mut(tag).expect("it was cut");
            attempt.span = Some(Span::at(*at, *len as u64));
        }
    }
}
