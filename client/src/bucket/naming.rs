//! Which journal each object of a store belongs to, told by paths and offsets alone.
//!
//! A fragment's path is `JOURNAL/POSTFIX/NAME`, and nothing marks where the journal's name ends
//! (gazette-spec 3.1 to 3.3). The rule, from the deepest directory up:
//!
//! 1. A directory that holds fragments is a journal.
//! 2. A directory below it is part of it, and not a journal of its own, if its name looks like one
//!    that a postfix template makes: it has a `=` (`date=2026-11-29`, and everything below such a
//!    one), or is a date that begins with a year (`2026`, `2026-11-29`).
//! 3. But only if the offsets agree: parts of one journal lie behind each other. Where more than
//!    half of the smaller one's bytes are at offsets that the other has as well, as other
//!    fragments, both are journals; so are parts with a gap between them whose names are not in
//!    the order of their offsets.
//!
//! So `topic/part=0` and `topic/part=1`, which both begin at 0, are two journals, `log/day=1` and
//! `log/day=2` are the journal `log`, and a nested journal `a/b/c` stays apart from `a/b`. What the
//! rule can't know: a journal `topic/part=0` without a sibling is named `topic`, and postfixes that
//! look like no date stay part of the name. Then [`Postfix::Known`] says it.

use index::name;
use index::store::Object;
use protocol::{Fragment, Journal, Pattern, Span, Sum};
use std::collections::{BTreeMap, BTreeSet};

/// How the directories between a journal and its fragments are told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Postfix {
    /// By the rule of this module.
    #[default]
    Guessed,
    /// The last directories, where they match one of these patterns from `/` to `/` (`*` stands for
    /// any run of characters, `?` for one); the first that does counts. Else there is no postfix.
    Known(Vec<String>),
}

/// An object in the directory of a journal, or named like a fragment, that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strange {
    /// The journal whose directory it is in.
    pub journal: Option<Journal>,
    /// Below the store.
    pub path: String,
    /// What is wrong with its name.
    pub reason: String,
}

/// What lies in a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// The fragments of each journal, in the order of their offsets.
    pub journals: BTreeMap<Journal, Vec<Fragment>>,
    pub strange: Vec<Strange>,
    /// Objects that have nothing to do with journals.
    pub others: u64,
}

/// A fragment in a directory.
#[derive(Debug)]
struct Leaf {
    /// What its name says, and the postfix as far as it is known.
    named: name::Named,
    mod_time: i64,
    /// The name itself.
    file: String,
}

impl Leaf {
    /// The same one, seen from the directory above `dir`.
    fn within(mut self, dir: &str) -> Leaf {
        self.named.path_postfix = join(dir, &self.named.path_postfix);
        self
    }
}

/// Sorts the objects of a store into journals.
pub fn sort(store: &str, objects: &[Object], postfix: &Postfix) -> Named {
    let mut root = Dir::default();
    let mut unnamed = Vec::new();
    for object in objects {
        let (dir, file) = object.path.rsplit_once('/').unwrap_or(("", &object.path));
        match name::parse(file) {
            Ok(named) => {
                let (mod_time, file) = (object.mod_time, file.to_owned());
                root.add(dir, Leaf { named, mod_time, file });
            }
            Err(error) => unnamed.push((object, error.to_string())),
        }
    }
    let mut named = Named::default();
    for group in groups(root, postfix) {
        named.take(store, group);
    }
    for (object, reason) in unnamed {
        let journal = named.journal_of(&object.path);
        if journal.is_some() || looks_like_a_fragment(&object.path) {
            named.strange.push(Strange { journal, path: object.path.clone(), reason });
        } else {
            named.others += 1;
        }
    }
    named
}

impl Named {
    fn take(&mut self, store: &str, group: Group) {
        let journal = match Journal::new(&group.path) {
            Ok(journal) => journal,
            Err(error) => {
                let reason = format!("its directory can be no journal's: {error}");
                let path = if group.path.is_empty() { "/".to_owned() } else { group.path };
                self.strange.push(Strange { journal: None, path, reason });
                return;
            }
        };
        let mut fragments = Vec::with_capacity(group.leaves.len());
        for Leaf { named, mod_time, file } in group.leaves {
            let fragment = named.into_fragment(journal.clone(), store.to_owned(), mod_time);
            // A fragment says where it lies by its fields alone. One that lies elsewhere (an offset
            // without its padding, say) could be listed, and never read.
            let is_there = name::paths(&fragment).any(|path| path.ends_with(&format!("/{file}")));
            if is_there {
                fragments.push(fragment);
            } else {
                let path = join(&join(journal.as_str(), &fragment.path_postfix), &file);
                let reason = format!("it should be {}", name::content_name(&fragment));
                let journal = Some(journal.clone());
                self.strange.push(Strange { journal, path, reason });
            }
        }
        fragments.sort_by_key(|fragment| (fragment.begin(), fragment.end()));
        self.journals.insert(journal, fragments);
    }

    /// The journal that a path is in the directory of; of nested ones the innermost.
    fn journal_of(&self, path: &str) -> Option<Journal> {
        let above = std::iter::successors(path.rsplit_once('/'), |(dir, _)| dir.rsplit_once('/'));
        let known = |(dir, _): (&str, &str)| self.journals.get_key_value(dir);
        above.filter_map(known).map(|(journal, _)| journal.clone()).next()
    }
}

fn looks_like_a_fragment(path: &str) -> bool {
    let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
    let (first, rest) = file.split_once('-').unwrap_or_default();
    first.len() == 16 && first.bytes().all(|b| b.is_ascii_hexdigit()) && rest.contains('-')
}

/// A directory of a store.
#[derive(Debug, Default)]
struct Dir {
    leaves: Vec<Leaf>,
    below: BTreeMap<String, Dir>,
}

impl Dir {
    fn add(&mut self, path: &str, leaf: Leaf) {
        let parts = path.split('/').filter(|part| !part.is_empty());
        let dir = parts.fold(self, |dir, part| dir.below.entry(part.to_owned()).or_default());
        dir.leaves.push(leaf);
    }
}

/// The fragments of one journal, whose name is the path.
#[derive(Debug)]
struct Group {
    path: String,
    leaves: Vec<Leaf>,
}

fn groups(root: Dir, postfix: &Postfix) -> Vec<Group> {
    match postfix {
        Postfix::Guessed => gather("", root, false),
        Postfix::Known(patterns) => {
            let mut by_path = BTreeMap::<String, Vec<Leaf>>::new();
            flatten("", root, &mut |dir, leaf| {
                let (path, postfix) = split(dir, patterns);
                by_path.entry(path.to_owned()).or_default().push(leaf.within(postfix));
            });
            by_path.into_iter().map(|(path, leaves)| Group { path, leaves }).collect()
        }
    }
}

/// The groups of a directory and of all below it. A directory that is a whole group is the first.
fn gather(path: &str, dir: Dir, is_postfix: bool) -> Vec<Group> {
    let (mut parts, mut apart) = (Vec::new(), Vec::new());
    for (part, below) in dir.below {
        let is_postfix = is_postfix || looks_like_a_postfix(&part);
        let path_below = join(path, &part);
        let mut found = gather(&path_below, below, is_postfix);
        let is_whole = found.len() == 1 && found[0].path == path_below;
        match is_postfix && is_whole {
            true => parts.push((part, found.remove(0))),
            false => apart.append(&mut found),
        }
    }
    let is_name = Journal::new(path).is_ok();
    if is_name && is_one_journal(&dir.leaves, &parts) {
        let mut leaves = dir.leaves;
        for (part, group) in parts {
            leaves.extend(group.leaves.into_iter().map(|leaf| leaf.within(&part)));
        }
        if !leaves.is_empty() {
            apart.insert(0, Group { path: path.to_owned(), leaves });
        }
        return apart;
    }
    apart.extend(parts.into_iter().map(|(_, group)| group));
    if !dir.leaves.is_empty() {
        apart.insert(0, Group { path: path.to_owned(), leaves: dir.leaves });
    }
    apart
}

/// Whether a directory's own fragments and those of its parts, in the order of their names, are
/// those of one journal: the third rule.
fn is_one_journal(own: &[Leaf], parts: &[(String, Group)]) -> bool {
    let groups = parts.iter().map(|(_, group)| group.leaves.as_slice());
    let mut ordered: Vec<(usize, &[Leaf])> = (1..).zip(groups).collect();
    ordered.push((0, own));
    ordered.retain(|(_, leaves)| !leaves.is_empty());
    ordered.sort_by_key(|(_, leaves)| (hull(leaves).begin(), hull(leaves).end()));
    let mut known = BTreeSet::<(Span, Sum)>::new();
    let (mut before, mut last) = (None::<Span>, 0);
    for (place, leaves) in ordered {
        let span = hull(leaves);
        if let Some(before) = before {
            let is_gap = span.begin() > before.end();
            let is_disordered = place != 0 && last > place;
            if is_gap && is_disordered || clashes(before, &known, leaves) {
                return false;
            }
        }
        known.extend(leaves.iter().map(|leaf| (leaf.named.span, leaf.named.sum)));
        let begin = before.map_or(span.begin(), Span::begin);
        before = Some(Span::between(begin, before.map_or(span.end(), |b| b.end().max(span.end()))));
        last = if place == 0 { last } else { place };
    }
    true
}

/// Whether most of the smaller one of two sets of fragments is at offsets of the other as well, as
/// other content. Brokers that evaluate a template at other times put the same content twice.
fn clashes(before: Span, known: &BTreeSet<(Span, Sum)>, leaves: &[Leaf]) -> bool {
    let span = hull(leaves);
    let overlap = before.end().min(span.end()).since(span.begin());
    let same = leaves.iter().filter(|leaf| known.contains(&(leaf.named.span, leaf.named.sum)));
    let shared: u64 = same.map(|leaf| leaf.named.span.len()).sum();
    overlap.saturating_sub(shared) > before.len().min(span.len()) / 2
}

/// From the lowest offset to the highest.
fn hull(leaves: &[Leaf]) -> Span {
    let begin = leaves.iter().map(|leaf| leaf.named.span.begin()).min().unwrap_or_default();
    let end = leaves.iter().map(|leaf| leaf.named.span.end()).max().unwrap_or_default();
    Span::between(begin, end)
}

/// Whether a directory's name looks like one that a postfix template makes.
pub(super) fn looks_like_a_postfix(part: &str) -> bool {
    let is_year = part.starts_with("19") || part.starts_with("20");
    let is_date = |byte: u8| byte.is_ascii_digit() || b"-_.:T".contains(&byte);
    part.contains('=') || part.len() >= 4 && is_year && part.bytes().all(is_date)
}

fn join(path: &str, part: &str) -> String {
    match (path, part) {
        ("", part) => part.to_owned(),
        (path, "") => path.to_owned(),
        (path, part) => format!("{path}/{part}"),
    }
}

fn flatten(path: &str, dir: Dir, take: &mut impl FnMut(&str, Leaf)) {
    dir.leaves.into_iter().for_each(|leaf| take(path, leaf));
    dir.below.into_iter().for_each(|(part, below)| flatten(&join(path, &part), below, take));
}

/// The journal and the postfix of a directory.
fn split<'d>(dir: &'d str, patterns: &[String]) -> (&'d str, &'d str) {
    let parts: Vec<&str> = dir.split('/').collect();
    for pattern in patterns {
        let pattern: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
        let Some(from) = parts.len().checked_sub(pattern.len()).filter(|from| *from > 0) else {
            continue;
        };
        let fits = |(pattern, part): (&&str, &&str)| Pattern::new(*pattern).matches(part);
        if pattern.iter().zip(&parts[from..]).all(fits) {
            let len = parts[..from].join("/").len();
            return (&dir[..len], dir[len..].trim_start_matches('/'));
        }
    }
    (dir, "")
}

#[cfg(test)]
mod tests;
