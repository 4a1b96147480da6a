//! Whether an append may happen: offset, registers, flags, the writer's sequence.
//!
//! The same questions are asked early, to refuse before content is staged, and again under the
//! writer turn, where the answers are final.

use super::{Target, Terms, refuses_content};
use crate::stored::Foreign;
use crate::{Error, quota};
use index::{Content, Turn};
use protocol::{Journal, LabelSet, Offset, Span};

/// What the turn's holder shall do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Record it. `registers` are set where they change; `after` are those that hold then.
    Append { registers: Option<LabelSet>, after: LabelSet },
    /// This writer's sequence is there already, as that span.
    Repeated(Span),
    /// It has no content and changes nothing: it only learns the head.
    Nothing(Offset),
}

/// Refuses what can't happen, whatever comes before it, in the order of Gazette's checks. A journal
/// only grows, so an offset below the head stays wrong, and one beyond it may become right; a
/// writer's repetition is neither.
pub(super) fn early(target: &Target) -> Result<(), Error> {
    let (served, terms) = (&target.served, &target.terms);
    check_life(target)?;
    check_fork(target)?;
    if terms.writer.is_some() || !served.is_known() {
        return Ok(());
    }
    check_registers(served.journal(), terms, &served.replica().registers())?;
    // In this order: other appends move the head meanwhile, and what they wrote may be stored.
    let stored = served.stored().end();
    let head = served.replica().head();
    match terms.offset {
        Some(expected) if expected < head.max(stored) => {
            let journal = served.journal().clone();
            Err(Error::WrongOffset { journal, expected, head: head.max(stored) })
        }
        None if stored > head
            && !served.replica().is_blank()
            && served.entry().spec.flags.may_write() =>
        {
            Err(Error::StoreIsAhead { journal: served.journal().clone(), stored, head })
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses content where a journal takes none.
fn content(target: &Target) -> Result<(), Error> {
    let journal = || target.served.journal().clone();
    if !target.served.entry().spec.flags.may_write() {
        let detail = "the journal is read-only";
        return Err(Error::NotAllowed { journal: journal(), detail });
    }
    if refuses_content(target) {
        let detail = "an append that suspends carries no content";
        return Err(Error::NotAllowed { journal: journal(), detail });
    }
    Ok(())
}

/// The same, of what may have happened already.
pub(super) fn content_or_repetition(target: &Target) -> Result<(), Error> {
    content(target).or_else(|refusal| match is_repeated(target) {
        true => Ok(()),
        false => Err(refusal),
    })
}

/// Decides, for the holder of the turn.
pub(super) fn under_turn(
    target: &Target,
    turn: &Turn,
    content: &Content,
) -> Result<Verdict, Error> {
    check_life(target)?;
    check_fork(target)?;
    if !content.is_empty() {
        content_or_repetition(target)?;
    }
    let state = State {
        head: turn.head(),
        registers: turn.registers(),
        last: target.terms.writer.and_then(|writer| turn.last_of(&writer.id)),
        is_empty: content.is_empty(),
    };
    let verdict = decide(target.served.journal(), &target.terms, state)?;
    // After what was asserted and what is repeated: a repetition takes no room.
    if matches!(verdict, Verdict::Append { .. }) {
        quota::check(&target.served, turn.head(), content.len())?;
    }
    Ok(verdict)
}

fn check_life(target: &Target) -> Result<(), Error> {
    let served = &target.served;
    let is_other = target.terms.life.is_some_and(|life| life != served.life());
    if is_other || served.replica().watch().borrow().is_gone {
        return Err(Error::Deleted(served.journal().clone()));
    }
    Ok(())
}

/// Refuses every append to a journal of which the store has other bytes at offsets that are local
/// ones too: whatever is appended, readers of the bucket would see another journal. One that takes
/// no content has nothing to refuse.
fn check_fork(target: &Target) -> Result<(), Error> {
    let served = &target.served;
    match served.stored().second_writer() {
        Some(Foreign { detail, is_fork: true }) if served.entry().spec.flags.may_write() => {
            Err(Error::SecondWriter { journal: served.journal().clone(), detail })
        }
        _ => Ok(()),
    }
}

/// Refuses by the registers alone, which come before everything that moves the head.
pub(super) fn registers(target: &Target, turn: &Turn) -> Result<(), Error> {
    match is_repeated(target) {
        true => Ok(()),
        false => check_registers(target.served.journal(), &target.terms, &turn.registers()),
    }
}

/// Whether the append is one that happened, or an earlier one of its writer: that is final, also
/// before the turn is taken. It is not refused any more, and costs nothing of what an append costs.
pub(super) fn is_repeated(target: &Target) -> bool {
    target.terms.writer.is_some_and(|writer| {
        let last = target.served.replica().last_of(&writer.id);
        last.is_some_and(|(last, _)| writer.sequence <= last)
    })
}

/// A journal under its turn, and the content.
struct State {
    head: Offset,
    registers: LabelSet,
    /// The writer's last sequence, and where it went.
    last: Option<(u64, Span)>,
    is_empty: bool,
}

fn decide(journal: &Journal, terms: &Terms, state: State) -> Result<Verdict, Error> {
    // First, since what a repetition asserts was true the first time.
    if let (Some(writer), Some((last, span))) = (terms.writer, state.last) {
        if writer.sequence == last {
            return Ok(Verdict::Repeated(span));
        }
        if writer.sequence < last {
            let sequence = writer.sequence;
            return Err(Error::StaleSequence { journal: journal.clone(), sequence, last });
        }
    }
    check_registers(journal, terms, &state.registers)?;
    if let Some(expected) = terms.offset.filter(|expected| *expected != state.head) {
        let head = state.head;
        return Err(Error::WrongOffset { journal: journal.clone(), expected, head });
    }
    if state.is_empty && terms.changes_registers() {
        return Err(Error::RegistersWithoutContent);
    }
    if state.is_empty && terms.writer.is_none() {
        return Ok(Verdict::Nothing(state.head));
    }
    let after = changed(&state.registers, terms);
    let registers = (after != state.registers).then(|| after.clone());
    Ok(Verdict::Append { registers, after })
}

fn check_registers(journal: &Journal, terms: &Terms, registers: &LabelSet) -> Result<(), Error> {
    match &terms.check_registers {
        Some(selector) if !selector.matches_registers(registers) => {
            let (journal, registers) = (journal.clone(), registers.clone());
            Err(Error::RegisterMismatch { journal, registers })
        }
        _ => Ok(()),
    }
}

/// Subtract first, then union (gazette-spec 2.6).
fn changed(registers: &LabelSet, terms: &Terms) -> LabelSet {
    let mut after = registers.clone();
    if let Some(subtract) = &terms.subtract_registers {
        after = after.subtract(subtract);
    }
    if let Some(union) = &terms.union_registers {
        after = after.union(union);
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Writer;
    use protocol::{Selector, Status};

    fn labels(pairs: &[(&str, &str)]) -> LabelSet {
        pairs.iter().fold(LabelSet::default(), |set, (name, value)| {
            set.with(name, value).expect("a valid label")
        })
    }

    fn state(is_empty: bool) -> State {
        let registers = labels(&[("author", "one")]);
        let last = Some((7, Span::at(Offset::from(90), 10)));
        State { head: Offset::from(100), registers, last, is_empty }
    }

    fn writer(sequence: u64) -> Option<Writer> {
        Some(Writer { id: [1; 16], sequence })
    }

    fn selector(name: &str, value: &str) -> Option<Selector> {
        Some(Selector { include: labels(&[(name, value)]), exclude: LabelSet::default() })
    }

    #[test]
    fn appends_are_decided() {
        let journal = Journal::new("a/journal").expect("a valid name");
        let unchanged = Verdict::Append { registers: None, after: labels(&[("author", "one")]) };
        let two = labels(&[("author", "two")]);
        let set = Verdict::Append { registers: Some(two.clone()), after: two.clone() };
        let none = LabelSet::default();
        let cleared = Verdict::Append { registers: Some(none.clone()), after: none };
        let head = Offset::from(100);
        let terms = Terms::default();
        // Case: terms, is empty, the verdict or its status
        let cases: Vec<(Terms, bool, Result<Verdict, Option<Status>>)> = vec![
            (terms.clone(), false, Ok(unchanged)),
            (terms.clone(), true, Ok(Verdict::Nothing(head))),
            (
                Terms { offset: Some(Offset::ZERO), ..terms.clone() },
                false,
                Err(Some(Status::WrongAppendOffset)),
            ),
            (
                Terms { offset: Some(Offset::from(101)), ..terms.clone() },
                true,
                Err(Some(Status::WrongAppendOffset)),
            ),
            (Terms { offset: Some(head), ..terms.clone() }, true, Ok(Verdict::Nothing(head))),
            (
                Terms { check_registers: selector("author", "two"), ..terms.clone() },
                false,
                Err(Some(Status::RegisterMismatch)),
            ),
            // Case: a repetition is answered though its offset was passed meanwhile.
            (
                Terms { writer: writer(7), offset: Some(Offset::from(90)), ..terms.clone() },
                false,
                Ok(Verdict::Repeated(Span::at(Offset::from(90), 10))),
            ),
            (Terms { writer: writer(6), ..terms.clone() }, false, Err(None)),
            (Terms { union_registers: Some(two.clone()), ..terms.clone() }, false, Ok(set)),
            (Terms { union_registers: Some(two.clone()), ..terms.clone() }, true, Err(None)),
            (
                Terms { subtract_registers: Some(labels(&[("author", "one")])), ..terms },
                false,
                Ok(cleared),
            ),
        ];
        for (terms, is_empty, expected) in cases {
            let found = decide(&journal, &terms, state(is_empty));
            assert_eq!(found.map_err(|error| error.status()), expected, "{terms:?}");
        }
    }
}
