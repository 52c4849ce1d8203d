//! A chart: numbers that `assets/charts.js` draws, and a table of them for whoever does not see it.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};

use crate::escape;
use crate::table::{Column, Table};

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// From value to value.
    Lines,
    /// A value holds until the next.
    Steps,
    /// A dot for each value, small where there are many.
    Points,
    /// A bar from each place to the next: a histogram.
    Bars,
    /// Cells, the darker the more: `rows` and `cells` in place of series.
    Heat,
}

/// One of the two axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What and in which unit: "time, s".
    pub label: String,
    /// Powers of ten are equally far apart.
    pub log: bool,
    /// Where it begins, where the values do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Where it ends: two charts side by side have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Values are seconds since 1970, shown as the reader's own date and time.
    pub time: bool,
}

impl Axis {
    /// A linear one as long as its values need it.
    #[must_use]
    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// As the legend calls it.
    pub name: String,
    /// One value for each of the chart's places; `None`, and what is no number, is a gap.
    #[serde(serialize_with = "short_or_gap")]
    pub y: Vec<Option<f64>>,
    /// Which of the colours (`--series-0` to `--series-6` of the style); by its place among the series where it says none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colour: Option<usize>,
}

impl Series {
    /// A curve whose colour comes of its place.
    #[must_use]
    pub fn new(name: &str, y: Vec<Option<f64>>) -> Self {
        Self { name: name.to_owned(), y, colour: None }
    }
}

/// A chart. Its JSON is what `assets/charts.js` reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// What it shows.
    pub caption: String,
    /// How.
    pub kind: Kind,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// Places on the horizontal axis, ascending.
    #[serde(serialize_with = "short")]
    pub at: Vec<f64>,
    /// The curves.
    pub series: Vec<Series>,
    /// Edges of the rows of a heat map, ascending, one more than there are rows.
    #[serde(serialize_with = "short", skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<f64>,
    /// Values of a heat map, a column for each of `at`, the lowest row first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Vec<f64>>,
    /// Charts with the same word show the cursor at the same place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<String>,
}

impl Chart {
    /// A chart without curves.
    #[must_use]
    pub fn new(caption: &str, kind: Kind, x: Axis, y: Axis) -> Self {
        let (at, series, rows, cells) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { caption: caption.to_owned(), kind, x, y, at, series, rows, cells, sync: None }
    }

    pub(crate) fn write(&self, out: &mut String) {
        let _ = writeln!(out, "<figure data-chart><figcaption>{}</figcaption>", escape::text(&self.caption));
        let _ = writeln!(
            out,
            "<div class=\"plot\"></div>\n<script type=\"application/json\">{}</script>",
            escape::json(self)
        );
        out.push_str("<details><summary>The same in a table</summary>\n");
        self.in_words().write(out);
        out.push_str("</details></figure>\n");
    }

    /// The chart for whoever does not see it: every bar of a histogram; of a curve and of a heat map's row what it spans.
    fn in_words(&self) -> Table {
        let caption = format!("{}: {} by {}", self.caption, self.y.label, self.x.label);
        match self.kind {
            Kind::Bars => {
                let heads = self.series.iter().map(|one| Column::number(&one.name));
                let mut table = Table::new(&caption, [Column::number(&self.x.label)].into_iter().chain(heads));
                for (i, at) in self.at.iter().enumerate() {
                    let values = self.series.iter().map(|one| one.y.get(i).copied().flatten());
                    table.row([Some(*at)].into_iter().chain(values).map(|value| value.map_or_else(dash, figure)));
                }
                table
            }
            Kind::Lines | Kind::Steps | Kind::Points => {
                let mut table = spans(&caption, "curve");
                for one in &self.series {
                    table.row(span(one.name.clone(), one.y.iter().flatten().copied()));
                }
                table
            }
            Kind::Heat => {
                let mut table = spans(&caption, &self.y.label);
                for (row, edges) in self.rows.windows(2).enumerate() {
                    let name = format!("{} to {}", figure(edges[0]), figure(edges[1]));
                    table.row(span(name, self.cells.iter().filter_map(|column| column.get(row).copied())));
                }
                table
            }
        }
    }
}

fn spans(caption: &str, what: &str) -> Table {
    let columns = ["values", "least", "mean", "most", "last"].map(Column::number);
    Table::new(caption, [Column::text(what)].into_iter().chain(columns))
}

fn span(name: String, values: impl Iterator<Item = f64>) -> Vec<String> {
    let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let mut cells = vec![name, values.len().to_string()];
    if let Some(last) = values.last() {
        let (least, most) = values.iter().fold((*last, *last), |(low, high), v| (low.min(*v), high.max(*v)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        cells.extend([least, mean, most, *last].map(figure));
    }
    cells
}

fn dash() -> String {
    "–".to_owned()
}

/// Three digits that matter.
fn figure(value: f64) -> String {
    let digits = if value == 0.0 || !value.is_finite() { 0 } else { 2 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}

/// Four digits that matter: a curve of 600 places takes a few kilobytes, and nobody sees more.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() { value } else { format!("{value:.3e}").parse().unwrap_or(value) }
}

fn short<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    // Places are told apart by more digits than values: 1234.56 s.
    to.collect_seq(values.iter().map(|value| (value * 1e4).round() / 1e4))
}

fn short_or_gap<S: Serializer>(values: &[Option<f64>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(|value| value.filter(|v| v.is_finite()).map(rounded)))
}
