//! A page as a whole.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};

use crate::chart::Chart;
use crate::table::Table;
use crate::{CHARTS, STYLE, UPLOT_CSS, UPLOT_JS, UPLOT_LICENCE, escape};

/// A page in the making: what is added is shown in that order.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    title: String,
    parts: Vec<Part>,
    footer: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Summary(String),
    Heading(String),
    Prose(String),
    Verbatim(String),
    Table(Table),
    Charts(Vec<Chart>),
}

impl Document {
    /// A page with a title and nothing else.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), parts: Vec::new(), footer: String::new() }
    }

    /// The answer in a sentence or two, set apart from the rest.
    pub fn summary(&mut self, text: &str) {
        self.parts.push(Part::Summary(text.to_owned()));
    }

    /// A heading; what comes next belongs to it.
    pub fn heading(&mut self, text: &str) {
        self.parts.push(Part::Heading(text.to_owned()));
    }

    /// A paragraph.
    pub fn prose(&mut self, text: &str) {
        self.parts.push(Part::Prose(text.to_owned()));
    }

    /// Lines as a terminal shows them.
    pub fn verbatim(&mut self, text: &str) {
        self.parts.push(Part::Verbatim(text.to_owned()));
    }

    /// A table.
    pub fn table(&mut self, table: Table) {
        self.parts.push(Part::Table(table));
    }

    /// Charts side by side, as far as there is room.
    pub fn charts(&mut self, charts: impl IntoIterator<Item = Chart>) {
        self.parts.push(Part::Charts(charts.into_iter().collect()));
    }

    /// Small print at the end: what made the page, and how.
    pub fn footer(&mut self, text: &str) {
        text.clone_into(&mut self.footer);
    }

    /// The page as HTML.
    #[must_use]
    pub fn render(&self) -> String {
        let style = format!("{UPLOT_CSS}\n{STYLE}");
        let title = escape::text(&self.title);
        let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
        let _ = writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">", policy(&style));
        out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
        let _ = writeln!(out, "<title>{title}</title>\n<style>{style}</style></head><body><main>\n<h1>{title}</h1>");
        let mut has_charts = false;
        for part in &self.parts {
            has_charts |= matches!(part, Part::Charts(_));
            write_part(&mut out, part);
        }
        out.push_str("</main>\n");
        if !self.footer.is_empty() {
            let _ = writeln!(out, "<footer><p>{}</p></footer>", escape::text(&self.footer));
        }
        if has_charts {
            let _ = writeln!(out, "<!-- uPlot draws the charts.\n\n{UPLOT_LICENCE}-->");
            let _ = writeln!(out, "<script>{UPLOT_JS}</script>\n<script>{CHARTS}</script>");
        }
        out.push_str("</body></html>\n");
        out
    }
}

fn write_part(out: &mut String, part: &Part) {
    let _ = match part {
        Part::Summary(text) => writeln!(out, "<p class=\"summary\">{}</p>", escape::text(text)),
        Part::Heading(text) => writeln!(out, "<h2>{}</h2>", escape::text(text)),
        Part::Prose(text) => writeln!(out, "<p>{}</p>", escape::text(text)),
        Part::Verbatim(text) => writeln!(out, "<pre tabindex=\"0\">{}</pre>", escape::text(text)),
        Part::Table(table) => {
            table.write(out);
            Ok(())
        }
        Part::Charts(charts) => {
            out.push_str("<div class=\"row\">\n");
            charts.iter().for_each(|chart| chart.write(out));
            out.push_str("</div>\n");
            Ok(())
        }
    };
}

/// The page runs its own two scripts and its own style, each known by its hash, and asks for nothing.
fn policy(style: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes())));
    format!(
        "default-src 'none'; script-src {} {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(UPLOT_JS),
        hash(CHARTS),
        hash(style)
    )
}
