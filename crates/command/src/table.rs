//! A small table: columns as wide as their longest cell, text left, numbers right, two spaces between.

/// Where a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names.
    Left,
    /// Numbers: units stand under units.
    Right,
}

/// Rows of cells under one or two heading lines.
#[derive(Debug)]
pub struct Table {
    aligns: Vec<Align>,
    rows: Vec<Row>,
}

#[derive(Debug)]
enum Row {
    Cells(Vec<String>),
    Rule,
}

impl Table {
    /// A table of columns with these places and headings; every heading line has one cell per column.
    pub fn new(aligns: &[Align], headings: &[&[&str]]) -> Self {
        let rows = headings.iter().map(|line| Row::Cells(line.iter().map(|&c| c.to_owned()).collect())).collect();
        let mut table = Self { aligns: aligns.to_vec(), rows };
        table.rule();
        table
    }

    /// Adds a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(Row::Cells(cells.into_iter().map(Into::into).collect()));
    }

    /// Adds a thin line between groups of rows.
    pub fn rule(&mut self) {
        self.rows.push(Row::Rule);
    }

    /// The text, every line with `indent` spaces before it and none after.
    pub fn render(&self, indent: usize) -> String {
        let widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| self.cells().map(|row| row.get(column).map_or(0, |c| c.chars().count())).max().unwrap_or(0))
            .collect();
        let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let mut text = String::new();
        for row in &self.rows {
            let line = match row {
                Row::Rule => "-".repeat(total),
                Row::Cells(cells) => self.line(cells, &widths),
            };
            text.push_str(&" ".repeat(indent));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Rule => None,
        })
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded = self.aligns.iter().zip(widths).enumerate().map(|(column, (align, &width))| {
            let cell = cells.get(column).map_or("", String::as_str);
            match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        });
        padded.collect::<Vec<_>>().join("  ")
    }
}

/// `1234567` as `1,234,567`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A figure with about three digits that matter: 0.031, 6.71, 88.2, 1234.
pub fn figure(value: f64) -> String {
    match value.abs() {
        v if v < 0.0995 => format!("{value:.3}"),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Adds `sentence` to `text` in lines of at most `width` columns, broken at blanks, each after `indent`.
pub fn wrap(text: &mut String, sentence: &str, indent: &str, width: usize) {
    let mut line = String::from(indent);
    for word in sentence.split(' ') {
        let empty = line.len() == indent.len();
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            text.push_str(&line);
            text.push('\n');
            line = String::from(indent);
        } else if !empty {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

/// The figure, or a dash where there is none.
pub fn figure_or_dash(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| "-".to_owned(), figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_names_left() {
        let mut table = Table::new(&[Align::Left, Align::Right], &[&["flow", "sent"]]);
        table.row(["game", "7"]);
        table.row(["ftp", "1,200"]);
        assert_eq!(table.render(1), " flow   sent\n -----------\n game      7\n ftp   1,200\n");
    }

    #[test]
    fn figures_keep_about_three_digits() {
        let shown: Vec<String> = [0.031, 9.994, 9.996, 88.24, 1234.4].into_iter().map(figure).collect();
        assert_eq!(shown, ["0.031", "9.99", "10.0", "88.2", "1234"]);
        assert_eq!(figure_or_dash(Some(f64::NAN)), "-");
    }

    #[test]
    fn a_long_sentence_breaks_at_blanks() {
        let mut text = String::new();
        wrap(&mut text, "one two three four", "  ", 9);
        assert_eq!(text, "  one two\n  three\n  four\n");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
