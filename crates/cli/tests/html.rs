//! `--html`: what a page says is what the report says, and a browser shows it.

use std::path::Path;
use std::process::Command;

use lasthop_command::table::figure;
use lasthop_testing::browser::{Browser, Window};
use serde_json::Value;

const LASTHOP: &str = env!("CARGO_BIN_EXE_lasthop");

const HOME: &str = r#"format = 1
name = "a <b>small</b> home"
duration = "12s"
[[server]]
name = "W"
delay = "5ms"
[wifi]
attempts = 4
[[station]]
name = "N"
[[flow]]
name = "film"
from = "W"
to = "N"
kind = "ftp"
cc = "newreno"
[[flow]]
name = "game"
from = "W"
to = "N"
kind = "game-server"
"#;

/// The page and the report of a run.
fn played(folder: &Path, more: &[&str]) -> (String, Value) {
    std::fs::write(folder.join("home.toml"), HOME).unwrap();
    let typed = ["sim", "home.toml", "--html", "run.html", "--json", "run.json"];
    let run = Command::new(LASTHOP).args(typed).args(more).current_dir(folder).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(String::from_utf8_lossy(&run.stderr).contains("run.html"), "it says where the page is");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    (read("run.html"), serde_json::from_str(&read("run.json")).unwrap())
}

/// The chart whose caption begins so.
fn chart(page: &str, caption: &str) -> Value {
    let charts =
        page.split("<script type=\"application/json\">").skip(1).filter_map(|rest| rest.split("</script>").next());
    let mut charts = charts.map(|json| serde_json::from_str::<Value>(json).unwrap());
    charts.find(|chart| chart["caption"].as_str().unwrap().starts_with(caption)).unwrap_or_else(|| panic!("{caption}"))
}

fn curve(chart: &Value, name: &str) -> Vec<Option<f64>> {
    let series = chart["series"].as_array().unwrap().iter().find(|one| one["name"] == name).expect("the curve");
    series["y"].as_array().unwrap().iter().map(Value::as_f64).collect()
}

fn most(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().copied().fold(0.0, f64::max)
}

#[test]
fn a_page_says_what_the_report_says() {
    let folder = tempfile::tempdir().unwrap();
    let (page, report) = played(folder.path(), &[]);
    for (i, name) in ["film", "game"].iter().enumerate() {
        let of = &report["flows"][i];
        let delay = |which: &str| figure(of["delay"][which].as_f64().unwrap());
        let (_, row) = page.split_once(&format!("<th scope=\"row\">{name}</th>")).expect("a row of the flow");
        let row = row.split("</tr>").next().unwrap();
        for cell in
            [delay("p50"), delay("p95"), delay("p99"), delay("max"), figure(of["goodput_bps"].as_f64().unwrap() / 1e6)]
        {
            assert!(row.contains(&format!("<td class=\"number\">{cell}</td>")), "{name}: {cell} in {row}");
        }
    }
    let game = &report["flows"][1];
    let delays = curve(&chart(&page, "Delay of games"), "game");
    let (seen, reported) = (most(&delays), game["delay"]["max"].as_f64().unwrap());
    assert!((seen - reported).abs() <= reported / 1000.0, "the largest delay is {reported} ms, and {seen} ms is drawn");
    let shares = chart(&page, "Share of packets");
    let p99 = game["delay"]["p99"].as_f64().unwrap();
    for (at, share) in shares["at"].as_array().unwrap().iter().zip(curve(&shares, "game")) {
        let (at, share) = (at.as_f64().unwrap(), share.unwrap());
        assert!(
            if share < 99.0 { at < p99 * 1.01 } else { at > p99 * 0.99 },
            "{share} % by {at} ms, and p99 is {p99} ms"
        );
    }
    assert_eq!(most(&curve(&shares, "game")), 100.0);
    let summary = page.split("<p class=\"summary\">").nth(1).unwrap();
    assert!(summary.starts_with("Of games, calls and video, game waited most"), "{summary:.100}");
    let added = figure(game["added_delay"]["p99"].as_f64().unwrap());
    assert!(summary.contains(&format!("at most {added} ms.")), "{summary:.200}");
}

#[test]
fn the_curves_of_windows_and_of_the_queue_are_those_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (page, report) = played(folder.path(), &[]);
    let windows = chart(&page, "Windows of film");
    let tcp = &report["flows"][0]["tcp"];
    let largest = tcp["cwnd_max"].as_f64().unwrap() * 1460.0 / 1e3;
    let drawn = most(&curve(&windows, "congestion window"));
    assert!(drawn > largest * 0.5 && drawn <= largest * 1.01, "at most {largest} kB, and {drawn} kB is drawn");
    let (offered, read) = (curve(&windows, "advertised by its receiver"), curve(&windows, "read by its sender"));
    assert!(offered[60..] == read[60..], "nothing lowers it, and after a second its receiver has settled");
    let queue = report["queues"][0]["max_packets"].as_f64().unwrap();
    let drawn = most(&curve(&chart(&page, "Queue of the access point"), "packets"));
    // The curve counts the packet in service, too.
    assert!(drawn > queue * 0.7 && drawn <= queue + 1.0, "at most {queue} packets, and {drawn} are drawn");

    let (page, _) = played(folder.path(), &["--set", "control.window.capacity=98%"]);
    let windows = chart(&page, "Windows of film");
    let (offered, read) = (curve(&windows, "advertised by its receiver"), curve(&windows, "read by its sender"));
    let lowered = offered.iter().zip(&read).filter(|(offered, read)| read < offered).count();
    assert!(lowered > 300, "control lowers what is read in most of the run, not in {lowered} stretches of 600");
    assert!(page.contains("What the controller did"));
}

#[test]
fn a_page_of_a_run_opens_without_a_complaint_wherever_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (page, _) = played(folder.path(), &["--set", "control.window.capacity=98%"]);
    assert!(page.contains("a &lt;b&gt;small&lt;/b&gt; home") && !page.contains("<b>small"));
    assert_eq!(page.matches("://").count(), 1, "the comment that names uPlot holds the only address");
    let Some(mut browser) = Browser::start() else { return };
    for (width, is_dark) in [(360, false), (1280, true)] {
        let said =
            browser.open(&format!("file://{}", folder.path().join("run.html").display()), Window { width, is_dark });
        assert_eq!(said, Vec::<String>::new());
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(width.into()), "{width} points wide, and it takes {wide}");
        assert!(browser.evaluate("document.querySelectorAll('.plot canvas').length").as_u64() >= Some(5));
    }
}

#[test]
fn a_page_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("home.toml"), HOME.replace("newreno", "nobody")).unwrap();
    let run =
        Command::new(LASTHOP).args(["sim", "home.toml", "--html", "run.html"]).current_dir(folder.path()).output();
    assert_eq!(run.unwrap().status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the scenario alone is there");
}
