//! Tables of text: columns that line up, without lines between them. On a terminal the names of the
//! first column are cut, so that a row is a line; in a pipe or a file they are whole.

use crate::output;

/// What is left of a name at least: less would name nothing.
const NAME_MIN: usize = 16;

/// What stands for the part of a name that was cut out.
const CUT: &str = "..";

/// Rows under a heading. Cells of numbers are aligned to the right.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    is_number: Vec<bool>,
}

impl Table {
    /// A heading that begins with `#` is of numbers; the sign is not shown.
    pub fn new(heading: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let heading: Vec<String> = heading.into_iter().map(Into::into).collect();
        let is_number = heading.iter().map(|name| name.starts_with('#')).collect();
        let shown = |name: String| name.trim_start_matches('#').to_owned();
        Table { rows: vec![heading.into_iter().map(shown).collect()], is_number }
    }

    /// Adds a row, which has as many cells as the heading.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.is_number.len(), "a row fits its heading");
        self.rows.push(cells);
    }

    /// The text as standard output takes it.
    pub fn shown(self) -> String {
        match output::columns() {
            Some(columns) => self.within(columns).to_string(),
            None => self.to_string(),
        }
    }

    /// The same, with names as long as rows of so many characters have room for.
    fn within(mut self, columns: usize) -> Table {
        let others = self.widths().iter().skip(1).map(|width| width + GAP.len()).sum();
        let room = columns.saturating_sub(others).max(NAME_MIN);
        for name in self.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = cut(name, room);
        }
        self
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or_default()
        };
        (0..self.is_number.len()).map(width).collect()
    }
}

/// A name of at most so many characters: its begin and its end, which tell most.
fn cut(name: &str, room: usize) -> String {
    let len = name.chars().count();
    if len <= room {
        return name.to_owned();
    }
    let kept = room - CUT.len();
    let (front, back) = (kept / 2, kept - kept / 2);
    name.chars().take(front).chain(CUT.chars()).chain(name.chars().skip(len - back)).collect()
}

/// Between two columns.
const GAP: &str = "  ";

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(&self.is_number);
            let cells = cells.map(|((cell, width), is_number)| match is_number {
                true => format!("{cell:>width$}"),
                false => format!("{cell:width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join(GAP).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["NAME", "#HEAD", "FLAGS"]);
        table.row(vec!["local/log".into(), "12".into(), "O_RDWR".into()]);
        table.row(vec!["a/longer/name".into(), "1234567".into(), String::new()]);
        let expected = "\
NAME              HEAD  FLAGS
local/log           12  O_RDWR
a/longer/name  1234567
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn names_are_cut_to_the_terminal() {
        let name = "local/some/rather/long/name/of/a/journal";
        // Case: the columns of the terminal, and how the name is shown
        let cases = [
            (100, name),
            (51, name),
            (50, "local/some/rather/..g/name/of/a/journal"),
            (40, "local/some/ra..e/of/a/journal"),
            (10, "local/s..journal"),
        ];
        for (columns, shown) in cases {
            let mut table = Table::new(["NAME", "#HEAD"]);
            table.row(vec![name.into(), "123456789".into()]);
            table.row(vec!["short".into(), "1".into()]);
            let text = table.within(columns).to_string();
            assert_eq!(text.lines().nth(1), Some(&*format!("{shown}  123456789")), "{columns}");
            let short = text.lines().nth(2).expect("there is a row");
            assert!(short.starts_with("short ") && short.ends_with(" 1"), "{columns}: {short}");
        }
    }
}
