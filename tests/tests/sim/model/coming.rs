//! Journals that come and go: each creation is a life of its own, which nothing of an earlier one
//! is in.

use super::{Book, Model};
use protocol::{Journal, Life};
use std::collections::BTreeSet;

impl Model {
    /// A creation was answered, or found the journal there.
    pub fn created(&self, name: &Journal, life: Life) {
        self.trace.line(format_args!("created {name} {life:?}"));
        let has_ended = self.state().ended.contains(&life);
        self.with(name, |book| match book.life.replace(life) {
            _ if has_ended => Err(format!("{life:?} was deleted, and is there again")),
            Some(before) if before != life => Err(format!("it was {before:?}, and is {life:?}")),
            _ => Ok(()),
        });
    }

    /// Somebody asks for its end: from here on it may be there or not.
    pub fn going(&self, name: &Journal) {
        self.trace.line(format_args!("going {name}"));
        self.with(name, |book| {
            book.may_be_gone = true;
            Ok(())
        });
    }

    /// It is not there any more, and its bytes are not either, should its name come again.
    pub fn gone(&self, name: &Journal) {
        self.trace.line(format_args!("gone {name}"));
        let mut state = self.state();
        let book = state.books.insert(name.clone(), Book::default()).unwrap_or_default();
        state.ended.extend(book.life);
    }

    pub fn may_be_gone(&self, name: &Journal) -> bool {
        self.with(name, |book| Ok(book.may_be_gone))
    }

    /// Journals and lives that are there, and whose end nobody asked for.
    pub fn lives(&self) -> BTreeSet<(Journal, Life)> {
        let state = self.state();
        let stays = state.books.iter().filter(|(_, book)| !book.may_be_gone);
        stays.filter_map(|(name, book)| Some((name.clone(), book.life?))).collect()
    }

    /// Those whose creation was answered, and the end not.
    pub fn coming(&self) -> Vec<Journal> {
        let state = self.state();
        let there = state.books.iter().filter(|(_, book)| book.life.is_some());
        there.map(|(name, _)| name.clone()).collect()
    }
}
