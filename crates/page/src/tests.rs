use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::*;

fn chart(kind: Kind) -> Chart {
    let mut chart = Chart::new("Delay of </script><b>x</b>", kind, Axis::new("time, s"), Axis::new("delay, ms"));
    chart.at = vec![0.0, 0.5, 1.0];
    chart.series = vec![Series::new("ga\u{2028}me & <co>", vec![Some(1.23456), None, Some(f64::NAN)])];
    chart
}

fn page() -> String {
    let mut page = Document::new("A <title>");
    page.summary("5 < 6 & \"so\"");
    page.heading("<h>");
    page.prose("it's");
    page.verbatim("a\u{1b}[1mb");
    let mut table = Table::new("c<d", [Column::text("flow"), Column::number("p99, ms")]);
    table.row(["<img src=x onerror=alert(1)>", "7"]);
    page.table(table);
    page.charts([chart(Kind::Lines)]);
    page.footer("<f>");
    page.render()
}

/// What stands in the page for its first chart.
fn chart_of(page: &str) -> &str {
    let (_, rest) = page.split_once("<script type=\"application/json\">").expect("a chart");
    rest.split_once("</script>").expect("its end").0
}

fn embedded(page: &str) -> Value {
    serde_json::from_str(chart_of(page)).expect("whole JSON")
}

#[test]
fn what_comes_from_outside_is_only_ever_text() {
    let page = page();
    let ours = page.replace(UPLOT_JS, "").replace(CHARTS, "");
    for forbidden in ["<b>", "<img", "<co>", "<f>", "<h>", "<title> ", "c<d", "\u{1b}"] {
        assert!(!ours.contains(forbidden), "{forbidden:?} came through");
    }
    assert!(!chart_of(&page).contains(['\u{2028}', '<', '&']), "JSON cannot end its element");
    assert!(page.contains("<p class=\"summary\">5 &lt; 6 &amp; &quot;so&quot;</p>"), "text stays readable");
    // One of JSON, two of code: nothing in between ended one and began another.
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (3, 3));
}

#[test]
fn a_chart_arrives_in_the_page_as_it_was_given() {
    let json = embedded(&page());
    assert_eq!(json["caption"], "Delay of </script><b>x</b>");
    assert_eq!(json["series"][0]["name"], "ga\u{2028}me & <co>");
    assert_eq!(json["series"][0]["y"], serde_json::json!([1.235, null, null]), "four digits, gaps as null");
    assert_eq!(json["kind"], "lines");
}

#[test]
fn a_page_asks_no_other_machine_for_anything() {
    let page = page();
    let banner = "/*! https://github.com/leeoniya/uPlot (v";
    assert_eq!(
        page.matches("://").count(),
        page.matches(banner).count(),
        "the comment that names uPlot is the only address"
    );
    for asks in [" src=", " href=", "url(", "@import", "fetch(", "XMLHttpRequest", "WebSocket", "import("] {
        assert!(!page.replace("&lt;img src=x", "").contains(asks), "{asks}");
    }
    assert!(page.contains(UPLOT_LICENCE), "its licence goes with it");
}

#[test]
fn every_kind_of_chart_has_a_table_of_its_values() {
    let table = |kind, more: fn(&mut Chart)| {
        let mut chart = chart(kind);
        more(&mut chart);
        let mut page = Document::new("t");
        page.charts([chart]);
        let page = page.render();
        page.split_once("<details>").and_then(|(_, rest)| rest.split_once("</details>")).expect("a table").0.to_owned()
    };
    let lines = table(Kind::Lines, |_| ());
    assert!(lines.contains("<td class=\"number\">1</td><td class=\"number\">1.23</td>"), "{lines}");
    let bars = table(Kind::Bars, |chart| chart.series[0].y = vec![Some(3.0), None, Some(4.0)]);
    assert!(bars.contains("<th scope=\"row\" class=\"number\">0.500</th><td class=\"number\">–</td>"), "{bars}");
    let heat = table(Kind::Heat, |chart| {
        (chart.rows, chart.cells) = (vec![0.0, 10.0, 20.0], vec![vec![1.0, 2.0], vec![3.0, 4.0]]);
    });
    assert!(heat.contains("10.0 to 20.0</th><td class=\"number\">2</td><td class=\"number\">2.00</td>"), "{heat}");
}

#[test]
fn the_vendored_files_are_those_of_the_version_in_the_lock_file() {
    let lock: Value = serde_json::from_str(include_str!("../assets/package-lock.json")).unwrap();
    let uplot = &lock["packages"]["node_modules/uplot"];
    let version = uplot["version"].as_str().expect("a version");
    assert!(UPLOT_JS.contains(&format!("uPlot (v{version})")), "run `npm ci && npm run vendor` in crates/page/assets");
    assert!(uplot["resolved"].is_null(), "the lock file names no host: see .npmrc beside it");
    assert!(uplot["integrity"].as_str().is_some_and(|sum| sum.starts_with("sha512-")));
    for line in include_str!("../assets/vendor/SHA256SUMS").lines() {
        let (sum, name) = line.split_once("  ").expect("a checksum and a name");
        let file = std::fs::read(format!("{}/assets/vendor/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let found: String = digest(&SHA256, &file).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, sum, "{name} is not what npm has: run `npm ci && npm run vendor` in crates/page/assets");
    }
}

#[test]
fn the_assets_stay_small() {
    let bytes: usize = [UPLOT_JS, UPLOT_CSS, STYLE, CHARTS].iter().map(|asset| asset.len()).sum();
    assert!(bytes < 100_000, "{bytes} bytes go into every page");
}
