//! A page with every kind of chart in a real browser.

use lasthop_page::{Axis, Chart, Column, Document, Kind, Series, Table};
use lasthop_testing::browser::{Browser, Window};

fn chart(kind: Kind) -> Chart {
    let mut chart = Chart::new(&format!("{kind:?}"), kind, Axis::new("time, s"), Axis::new("delay, ms"));
    chart.at = (0..200).map(f64::from).collect();
    let wave = |i: usize| Some(20.0 + (i as f64 / 7.0).sin() * 10.0).filter(|_| !(90..=120).contains(&i));
    chart.series = ["game & <call>", "film"].map(|name| Series::new(name, (0..200).map(wave).collect())).to_vec();
    if kind == Kind::Heat {
        chart.series.clear();
        chart.rows = (0..=10).map(|row| f64::from(row) * 5.0).collect();
        chart.cells = (0..200).map(|i| (0..10).map(|row| f64::from(i * row % 7)).collect()).collect();
    }
    chart.sync = Some("time".to_owned());
    chart
}

fn page() -> String {
    let mut page = Document::new("Every kind");
    page.summary("All is well.");
    let columns = (0..12).map(|i| Column::number(&format!("a wide heading {i}")));
    let mut table = Table::new("wide", [Column::text("flow")].into_iter().chain(columns));
    table.row(["</script><script>document.title = 'broken'</script>"]);
    page.table(table);
    page.charts([Kind::Lines, Kind::Steps, Kind::Points, Kind::Bars, Kind::Heat].map(chart));
    let mut by_delay = chart(Kind::Lines);
    by_delay.at = (0..200).map(|i| 1.03_f64.powi(i)).collect();
    by_delay.x = Axis { log: true, min: Some(1.0), max: Some(350.0), ..Axis::new("delay, ms") };
    by_delay.y = Axis { log: true, min: Some(1.0), max: Some(100.0), ..Axis::new("kB") };
    page.charts([by_delay]);
    page.verbatim(&"a line that is much longer than a phone is wide ".repeat(5));
    page.render()
}

#[test]
fn every_kind_of_chart_is_drawn_on_a_phone_and_on_a_desk_in_the_dark_and_in_the_light() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page()).unwrap();
    let mut background = Vec::new();
    for (width, is_dark) in [(360, false), (360, true), (1280, false), (1280, true)] {
        let said = browser.open(&format!("file://{}", file.display()), Window { width, is_dark });
        assert_eq!(said, Vec::<String>::new(), "{width} points, dark: {is_dark}");
        assert_eq!(browser.evaluate("document.querySelectorAll('.plot canvas').length"), 6);
        assert_eq!(browser.evaluate("document.title"), "Every kind");
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(width.into()), "{width} points wide, and it takes {wide}");
        // A canvas on which nothing was drawn is see-through everywhere.
        let drawn = "[...document.querySelectorAll('.plot canvas')].map(c => c.getContext('2d').getImageData(0, 0, c.width, \
             c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length > 1000)";
        assert_eq!(browser.evaluate(drawn), serde_json::json!([true, true, true, true, true, true]));
        background.push(browser.evaluate("getComputedStyle(document.documentElement).backgroundColor"));
    }
    assert_eq!(background[0], background[2]);
    assert_ne!(background[0], background[1], "the dark page is dark");
}

#[test]
fn a_chart_is_read_by_keys_alone() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page()).unwrap();
    browser.open(&format!("file://{}", file.display()), Window { width: 1000, is_dark: false });
    let shown = "document.querySelector('.plot .u-legend .u-value').textContent";
    browser.evaluate("document.querySelector('.plot').focus()");
    browser.press("End");
    assert_eq!(browser.evaluate(shown), "199");
    browser.press("Home");
    browser.press("ArrowRight");
    assert_eq!(browser.evaluate(shown), "2");
    let series = "document.querySelectorAll('.plot .u-legend .u-series')[1].classList.contains('u-off')";
    browser.evaluate("document.querySelectorAll('.plot .u-legend th')[1].focus()");
    browser.press("Enter");
    assert_eq!(browser.evaluate(series), true, "Enter hides a curve");
}

#[test]
fn a_page_that_breaks_its_policy_is_noticed() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    let broken = page().replace("</main>", "<script>document.title = 'broken'</script><img src=\"other.png\"></main>");
    std::fs::write(&file, broken).unwrap();
    let said = browser.open(&format!("file://{}", file.display()), Window { width: 1000, is_dark: false });
    assert!(said.iter().any(|said| said.contains("Content Security Policy")), "{said:?}");
    assert_eq!(browser.evaluate("document.title"), "Every kind");
}
