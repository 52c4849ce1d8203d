//! Pages that people open in a browser: one file that asks no other machine for anything, with charts by uPlot.
//!
//! A [`Document`] is a list of headings, prose, tables and charts; [`Document::render`] makes HTML of it. The assets are public
//! for whoever serves pages in place of writing them. What comes from outside (names of flows, of files) is only ever text: see
//! `escape` and the policy that the page carries (Content-Security-Policy: its own style and scripts, known by their hashes,
//! and nothing else).

mod chart;
mod document;
mod escape;
mod table;

pub use chart::{Axis, Chart, Kind, Series};
pub use document::Document;
pub use table::{Column, Table};

/// uPlot, which draws the charts: defines `uPlot`. MIT; [`UPLOT_LICENCE`] goes with every copy.
pub const UPLOT_JS: &str = include_str!("../assets/vendor/uPlot.iife.min.js");
/// What uPlot needs of style.
pub const UPLOT_CSS: &str = include_str!("../assets/vendor/uPlot.min.css");
/// The licence of uPlot.
pub const UPLOT_LICENCE: &str = include_str!("../assets/vendor/uPlot.LICENSE");
/// The look of every page, after [`UPLOT_CSS`].
pub const STYLE: &str = include_str!("../assets/style.css");
/// Builds charts out of JSON, after [`UPLOT_JS`]: defines `lasthopCharts`.
pub const CHARTS: &str = include_str!("../assets/charts.js");

#[cfg(test)]
mod tests;
