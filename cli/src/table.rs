//! Tables of text: columns that line up, without lines between them.

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
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.is_number.len()).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(&self.is_number);
            let cells = cells.map(|((cell, width), is_number)| match is_number {
                true => format!("{cell:>width$}"),
                false => format!("{cell:width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
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
}
