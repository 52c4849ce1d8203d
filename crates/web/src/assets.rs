//! What the page is made of, in the binary; packed once at the start.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use lasthop_page::{CHARTS, STYLE, UPLOT_CSS, UPLOT_JS, UPLOT_LICENCE};

use crate::token::hash;

const PAGE: &str = include_str!("../assets/web.html");
const STYLE_HERE: &str = include_str!("../assets/web.css");
const ICON: &str = include_str!("../assets/icon.svg");
/// In this order: words and units, charts over time, tables, then what holds them together.
const SCRIPTS: [&str; 4] = [
    include_str!("../assets/words.js"),
    include_str!("../assets/history.js"),
    include_str!("../assets/tables.js"),
    include_str!("../assets/web.js"),
];

/// A file of the page.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its media type.
    pub kind: &'static str,
    /// As it is.
    pub plain: Bytes,
    /// By gzip.
    pub packed: Bytes,
    /// Changes with it.
    pub tag: String,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Assets {
    /// `/`
    pub page: Asset,
    /// `/web.js`
    pub script: Asset,
    /// `/web.css`
    pub style: Asset,
    /// `/icon.svg`
    pub icon: Asset,
    /// `/uplot-licence.txt`
    pub licence: Asset,
}

impl Assets {
    /// Out of the binary.
    #[must_use]
    pub fn new() -> Self {
        let mut scripts = vec![UPLOT_JS.to_owned()];
        scripts.extend([CHARTS].iter().chain(&SCRIPTS).map(|text| dense(text, &OF_SCRIPTS)));
        let style = format!("{UPLOT_CSS}\n{}{}", dense(STYLE, &OF_STYLE), dense(STYLE_HERE, &OF_STYLE));
        Self {
            page: asset("text/html; charset=utf-8", short(PAGE)),
            script: asset("text/javascript; charset=utf-8", scripts.join("\n")),
            style: asset("text/css; charset=utf-8", style),
            icon: asset("image/svg+xml", ICON.to_owned()),
            licence: asset("text/plain; charset=utf-8", UPLOT_LICENCE.to_owned()),
        }
    }

    /// Bytes that a browser fetches to show the page: as they are, and as they go over the wire.
    #[must_use]
    pub fn weight(&self) -> (usize, usize) {
        let of_page = [&self.page, &self.script, &self.style, &self.icon];
        of_page.iter().fold((0, 0), |(plain, packed), one| (plain + one.plain.len(), packed + one.packed.len()))
    }
}

impl Default for Assets {
    fn default() -> Self {
        Self::new()
    }
}

/// Without indentation, empty lines and lines that are comments; no file has a line within a string that begins so.
fn short(text: &str) -> String {
    let mut comment = false;
    let lines = text.lines().map(str::trim);
    let kept = lines.filter(|line| {
        comment |= line.starts_with("/*");
        let is_kept = !comment && !line.is_empty() && !line.starts_with("// ") && *line != "//";
        comment &= !line.ends_with("*/");
        is_kept
    });
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// Spaces that mean nothing in our CSS, and no string of which has them.
const OF_STYLE: [(&str, &str); 6] = [(": ", ":"), ("; ", ";"), (" { ", "{"), (" {\n", "{"), (";}", "}"), (" }", "}")];
/// The same of our JavaScript.
const OF_SCRIPTS: [(&str, &str); 6] =
    [(" = ", "="), (" => ", "=>"), (" === ", "==="), (" ?? ", "??"), (" && ", "&&"), (" || ", "||")];

fn dense(text: &str, of: &[(&str, &str)]) -> String {
    of.iter().fold(short(text), |text, (from, to)| text.replace(from, to))
}

fn asset(kind: &'static str, text: String) -> Asset {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    // Into memory, which cannot fail.
    let _ = packer.write_all(text.as_bytes());
    let packed = packer.finish().unwrap_or_default().into();
    let tag = hash(text.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Asset { kind, plain: text.into(), packed, tag: format!("\"{tag}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_nobody_else() {
        let assets = Assets::new();
        let (plain, packed) = assets.weight();
        println!("the page: {plain} bytes, {packed} of them on the wire");
        assert!(plain < 100_000 && packed < 39_000, "{plain} bytes, {packed} on the wire");
        for text in SCRIPTS.iter().chain(&[PAGE, STYLE_HERE]) {
            assert!(!text.replace("http://www.w3.org/2000/svg", "").contains("://"), "an address in\n{text}");
        }
        // What the policy of the page would refuse.
        assert!(!PAGE.contains("style=") && !PAGE.contains("<style") && !PAGE.contains(" on"));
        assert!(!SCRIPTS.iter().any(|text| text.contains("innerHTML") || text.contains("eval(")));
    }
}
