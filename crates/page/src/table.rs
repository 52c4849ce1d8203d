//! A table of a page.

use std::fmt::Write as _;

use crate::escape;

/// A column: its heading and whether its cells are numbers, which stand to the right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    heading: String,
    is_number: bool,
}

impl Column {
    /// Of words.
    #[must_use]
    pub fn text(heading: &str) -> Self {
        Self { heading: heading.to_owned(), is_number: false }
    }

    /// Of numbers; the heading names the unit.
    #[must_use]
    pub fn number(heading: &str) -> Self {
        Self { heading: heading.to_owned(), is_number: true }
    }
}

/// Rows of cells below headings. The first cell of a row names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    caption: String,
    /// Headings above others, and how many columns each is above.
    groups: Vec<(String, usize)>,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(caption: &str, columns: impl IntoIterator<Item = Column>) -> Self {
        let (groups, rows) = (Vec::new(), Vec::new());
        Self { caption: caption.to_owned(), groups, columns: columns.into_iter().collect(), rows }
    }

    /// Headings above those of the columns: what each says, and of how many columns from the left on.
    #[must_use]
    pub fn below(mut self, groups: impl IntoIterator<Item = (String, usize)>) -> Self {
        self.groups = groups.into_iter().collect();
        self
    }

    /// Adds a row; missing cells are empty, and there are no more cells than columns.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    pub(crate) fn write(&self, out: &mut String) {
        // Wider than a phone, it is scrolled by itself, by keys too.
        let caption = escape::text(&self.caption);
        let _ = write!(out, "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table>");
        let _ = write!(out, "<caption>{caption}</caption><thead>");
        if !self.groups.is_empty() {
            out.push_str("<tr>");
            for (heading, columns) in &self.groups {
                let scope = if heading.is_empty() { "td" } else { "th scope=\"colgroup\"" };
                let end = &scope[..2];
                let _ = write!(out, "<{scope} colspan=\"{columns}\">{}</{end}>", escape::text(heading));
            }
            out.push_str("</tr>");
        }
        out.push_str("<tr>");
        for column in &self.columns {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column), escape::text(&column.heading));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            out.push_str("<tr>");
            for (i, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                let cell = escape::text(cell);
                let _ = match i {
                    0 => write!(out, "<th scope=\"row\"{}>{cell}</th>", class(column)),
                    _ => write!(out, "<td{}>{cell}</td>", class(column)),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
}

fn class(column: &Column) -> &'static str {
    if column.is_number { " class=\"number\"" } else { "" }
}
