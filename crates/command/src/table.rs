//! A small table: columns as wide as their longest cell, text left, numbers right, two spaces between. Where that is wider than it
//! may be, columns are left out, those first that are said to be missed least; then long names are cut.

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
    headings: usize,
    rows: Vec<Row>,
    /// Columns that may be left out, first those missed least.
    dispensable: Vec<usize>,
}

/// A table as wide as it may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fitted {
    /// Its lines.
    pub text: String,
    /// Last headings of the columns that had no room.
    pub left_out: Vec<String>,
}

/// Least characters of a name that is cut.
const LEAST_NAME: usize = 8;

#[derive(Debug)]
enum Row {
    Cells(Vec<String>),
    Rule,
}

impl Table {
    /// A table of columns with these places and headings; every heading line has one cell per column.
    pub fn new(aligns: &[Align], headings: &[&[&str]]) -> Self {
        let rows = headings.iter().map(|line| Row::Cells(line.iter().map(|&c| c.to_owned()).collect())).collect();
        let mut table = Self { aligns: aligns.to_vec(), headings: headings.len(), rows, dispensable: Vec::new() };
        table.rule();
        table
    }

    /// These columns may be left out where there is no room, the first one first.
    #[must_use]
    pub fn dispensable(mut self, columns: &[usize]) -> Self {
        self.dispensable = columns.to_vec();
        self
    }

    /// Adds a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(Row::Cells(cells.into_iter().map(Into::into).collect()));
    }

    /// Adds a thin line between groups of rows.
    pub fn rule(&mut self) {
        self.rows.push(Row::Rule);
    }

    /// Which columns hold numbers, from the left.
    pub fn numbers(&self) -> impl Iterator<Item = bool> {
        self.aligns.iter().map(|align| *align == Align::Right)
    }

    /// The heading lines; a cell above others has blank ones behind it.
    pub fn headings(&self) -> impl Iterator<Item = &[String]> {
        cells(&self.rows[..self.headings])
    }

    /// The rows below the headings.
    pub fn rows(&self) -> impl Iterator<Item = &[String]> {
        cells(&self.rows[self.headings..])
    }

    /// The text with all columns, every line with `indent` spaces before it and none after.
    pub fn render(&self, indent: usize) -> String {
        let all: Vec<usize> = (0..self.aligns.len()).collect();
        self.text(indent, &all, &self.widths(&all))
    }

    /// The same in lines of at most `width` columns, as far as leaving columns out and cutting names (of the first column) goes.
    pub fn fit(&self, indent: usize, width: usize) -> Fitted {
        let mut shown: Vec<usize> = (0..self.aligns.len()).collect();
        let mut left_out = Vec::new();
        let mut dispensable = self.dispensable.iter();
        let mut widths = self.widths(&shown);
        while indent + total(&widths) > width
            && let Some(column) = dispensable.next()
        {
            shown.retain(|other| other != column);
            left_out.push(*column);
            widths = self.widths(&shown);
        }
        if let Some(name) = widths.first_mut() {
            let over = (indent + *name + widths_behind(&shown, self, 1)).saturating_sub(width);
            *name = (*name).min((*name - over.min(*name)).max(LEAST_NAME));
        }
        left_out.sort_unstable();
        Fitted {
            text: self.text(indent, &shown, &widths),
            left_out: left_out.iter().map(|c| self.heading(*c)).collect(),
        }
    }

    /// The last heading of a column, which names it.
    fn heading(&self, column: usize) -> String {
        let own = self.rows[..self.headings].iter().rev().find_map(|row| match row {
            Row::Cells(cells) => cells.get(column).filter(|cell| !cell.is_empty()),
            Row::Rule => None,
        });
        own.cloned().unwrap_or_default()
    }

    /// How wide the shown columns are.
    fn widths(&self, shown: &[usize]) -> Vec<usize> {
        let width = |place: usize, column: usize| {
            let cells = self.rows.iter().enumerate().filter_map(|(row, cells)| match cells {
                Row::Cells(cells) if !self.runs_on(row, cells, shown.get(place + 1).copied()) => cells.get(column),
                _ => None,
            });
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        shown.iter().enumerate().map(|(place, column)| width(place, *column)).collect()
    }

    /// A heading above others may reach over the columns behind it, of which it speaks.
    fn runs_on(&self, row: usize, cells: &[String], behind: Option<usize>) -> bool {
        let is_above = row + 1 < self.headings;
        is_above && behind.is_some_and(|column| cells.get(column).is_some_and(String::is_empty))
    }

    fn text(&self, indent: usize, shown: &[usize], widths: &[usize]) -> String {
        let mut text = String::new();
        for (row, cells) in self.rows.iter().enumerate() {
            let line = match cells {
                Row::Rule => "-".repeat(total(widths)),
                Row::Cells(cells) => self.line(row, cells, shown, widths),
            };
            text.push_str(&" ".repeat(indent));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn line(&self, row: usize, cells: &[String], shown: &[usize], widths: &[usize]) -> String {
        let mut line = String::new();
        // Where the column begins.
        let mut at = 0_usize;
        for (place, (&column, &width)) in shown.iter().zip(widths).enumerate() {
            let cell = cut(cells.get(column).map_or("", String::as_str), width, place == 0);
            let runs_on = cell.chars().count() > width && self.runs_on(row, cells, shown.get(place + 1).copied());
            let cell = match self.aligns[column] {
                Align::Right if !runs_on => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            };
            // One that runs on has taken blanks of the columns behind it.
            line.push_str(&" ".repeat(at.saturating_sub(line.chars().count())));
            line.push_str(if cell.trim().is_empty() { "" } else { &cell });
            at += width + 2;
        }
        line
    }
}

fn cells(rows: &[Row]) -> impl Iterator<Item = &[String]> {
    rows.iter().filter_map(|row| match row {
        Row::Cells(cells) => Some(cells.as_slice()),
        Row::Rule => None,
    })
}

/// Columns with two spaces between.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

/// What all columns but the first `n` take, with the spaces before them.
fn widths_behind(shown: &[usize], table: &Table, n: usize) -> usize {
    table.widths(shown).iter().skip(n).map(|width| width + 2).sum()
}

/// A name, with an ellipsis at its end where it is longer than its column.
fn cut(cell: &str, width: usize, is_name: bool) -> String {
    if !is_name || cell.chars().count() <= width {
        return cell.to_owned();
    }
    cell.chars().take(width.saturating_sub(1)).chain(['…']).collect()
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

    fn wide() -> Table {
        let aligns = [Align::Left, Align::Right, Align::Right, Align::Right];
        let headings: [&[&str]; 2] = [&["", "delay, ms", "", "added"], &["flow", "p50", "p95", "p99"]];
        let mut table = Table::new(&aligns, &headings).dispensable(&[2, 1]);
        table.row(["a long name", "1.00", "22.0", "9.99"]);
        table
    }

    #[test]
    fn a_heading_above_others_reaches_over_them() {
        let shown = wide().render(2);
        assert_eq!(shown.lines().nth(1), Some("  flow          p50   p95    p99"), "{shown}");
        assert_eq!(shown.lines().next(), Some("               delay, ms   added"), "{shown}");
        assert_eq!(wide().fit(2, 80), Fitted { text: shown, left_out: Vec::new() });
    }

    #[test]
    fn what_has_no_room_is_left_out_and_then_names_are_cut() {
        let fitted = wide().fit(2, 27);
        assert_eq!(fitted.left_out, ["p50", "p95"]);
        assert!(fitted.text.lines().all(|line| line.chars().count() <= 27), "{}", fitted.text);
        let fitted = wide().fit(2, 18);
        assert!(fitted.text.contains("  a long n…   9.99\n"), "{}", fitted.text);
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
