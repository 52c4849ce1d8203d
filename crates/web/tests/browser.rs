//! The page in a real browser: its figures are the socket's, and it survives what happens to a page that stays open.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Controller, Server, status, token};
use lasthop_testing::browser::{Browser, Window};
use serde_json::{Value, json};

const DESK: Window = Window { width: 1280, is_dark: false };
const LIVE: &str = "document.querySelector('#state.live') && !document.getElementById('figures').hidden";

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// What stands at `selector`.
fn shown(browser: &mut Browser, selector: &str) -> String {
    let found = browser.evaluate(&format!("document.querySelector({}).innerText", json!(selector)));
    found.as_str().unwrap_or_default().trim().to_owned()
}

/// Rows of a table, cells between bars.
fn rows(browser: &mut Browser, place: &str) -> Vec<String> {
    let rows = format!(
        "[...document.querySelectorAll('#{place} tbody tr')].map(row => [...row.cells].map(c => c.textContent).join('|'))"
    );
    let Value::Array(rows) = browser.evaluate(&rows) else { panic!("a list") };
    rows.iter().map(|row| row.as_str().unwrap_or_default().to_owned()).collect()
}

/// For people: LASTHOP_PICTURES names a folder.
fn keep_picture(browser: &mut Browser, name: &str) {
    use base64::Engine as _;
    let Some(folder) = std::env::var_os("LASTHOP_PICTURES") else { return };
    let picture = base64::prelude::BASE64_STANDARD.decode(browser.picture()).unwrap();
    std::fs::write(Path::new(&folder).join(format!("{name}.png")), picture).unwrap();
}

/// A controller whose histograms grow by themselves: what a page draws over time.
fn grow(controller: &Controller, n: u64) {
    controller.set(|status| {
        status["running_s"] = json!(status["running_s"].as_f64().unwrap() + 0.1);
        for direction in ["down", "up"] {
            let of = &mut status["directions"][direction];
            let full = if direction == "down" { 1.9e7 } else { 3.9e6 };
            let rate = full * (0.15 + 0.85 * (0.5 + 0.5 * (n as f64 / 17.0).sin()));
            of["rate_bps"] = json!(rate as u64);
            for waiting in of["waiting"].as_array_mut().unwrap() {
                waiting["count"] = json!(waiting["count"].as_u64().unwrap() + 2);
                let buckets = waiting["buckets"].as_array_mut().unwrap();
                let (len, at) = (buckets.len() as f64, 0.5 + 0.4 * (n as f64 / 23.0).sin());
                for bucket in [(len * at) as usize, (len * at * 0.8) as usize] {
                    buckets[bucket][1] = json!(buckets[bucket][1].as_u64().unwrap() + 1);
                }
            }
        }
    });
}

#[test]
fn the_figures_on_the_page_are_those_of_the_socket() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let server = Server::start(&["--socket", text(&socket), "--every", "100ms"]);
    let said = browser.open(&server.address, DESK);
    browser.wait_for(LIVE);
    assert_eq!(said, Vec::<String>::new());
    assert_eq!(shown(&mut browser, "#down .big"), "3.4 ms");
    assert_eq!(shown(&mut browser, "#down .two div:nth-child(2) .big"), "19.3 Mbit/s");
    assert_eq!(shown(&mut browser, "#up .big"), "38 ms");
    let card = shown(&mut browser, "#down");
    for part in ["in the access point's own queue", "of 19.9 Mbit/s, measured, ± 3.4 %", "97 % used", "short"] {
        assert!(card.contains(part), "`{part}` is not in\n{card}");
    }
    assert_eq!(
        rows(&mut browser, "devices"),
        [
            "laptop|13.2 Mbit/s|310 kbit/s|3.4 ms|–|3",
            "living-room-tv|6.15 Mbit/s|90 kbit/s|1.9 ms|–|1",
            "..10:00:03|940 kbit/s|3.8 Mbit/s|–|38 ms|2",
            "10.0.0.5|0 bit/s|56 kbit/s|–|–|1"
        ]
    );
    let udp = rows(&mut browser, "udp");
    assert!(udp[0].starts_with("10.0.0.2:51820 <- 192.0.2.44:443|laptop|1.28 Mbit/s|9 Mbit/s|a download"), "{udp:?}");
    assert!(udp[0].contains("its rate grew 4.0 times|31|2") && udp[2].contains("(WireGuard)"), "{udp:?}");
    let left = rows(&mut browser, "left");
    assert_eq!(
        left[..2],
        ["UDP: games, calls, small flows|910,221", "of a connection older than the controller|3,211"]
    );
    assert!(shown(&mut browser, "#decisions li").contains("behaves like a download"), "the newest is first");
    assert_eq!(shown(&mut browser, "#paused"), "Nothing is paused.");
    browser.evaluate("document.getElementById('flows-head').click()");
    browser.wait_for("document.querySelectorAll('#flows tbody tr').length === 5");
    assert!(
        rows(&mut browser, "flows")[0]
            .starts_with("10.0.0.2:50010 <- 192.0.2.1:443|laptop|11.9 Mbit/s|12.1 Mbit/s|limited")
    );

    // And it follows.
    controller.set(|status| {
        status["directions"]["down"]["queue_ms"] = json!(123.4);
        status["devices"][1]["down_bps"] = json!(18_500_000);
        status["devices"][1]["name"] = json!("<b>evil</b>");
        status["paused"] = json!([{ "what": "windows", "device": null, "left_s": 61.0 }]);
    });
    browser.wait_for("document.querySelector('#down .big').textContent === '123 ms'");
    assert_eq!(shown(&mut browser, "#paused"), "window control for all, 1 min 1 s left");
    browser.wait_for("document.querySelector('#devices tbody th').textContent.startsWith('<b>evil</b>')");
    assert_eq!(shown(&mut browser, "#state"), "paused");
    let server_told = server.get("/status", &[]).json();
    assert_eq!(server_told["directions"]["down"]["queue_ms"], 123.4);
    assert_eq!(browser.complaints(&server.address), Vec::<String>::new());
}

#[test]
fn it_fits_a_phone_and_a_desk_in_the_dark_and_in_the_light() {
    let Some(mut browser) = Browser::start_for(120) else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let evening = folder.path().join("evening.json");
    let measured = json!({ "findings": { "verdict": "shorter", "counted": 11, "planned": 12, "grades": { "off": "C", "on": "A+" },
        "waiting": { "off": 84.2, "on": 3.9, "ratio": 0.047, "low": 0.041, "high": 0.055 },
        "throughput": { "off": 1.91e7, "on": 1.89e7, "ratio": 0.99, "low": 0.97, "high": 1.01 } } });
    std::fs::write(&evening, measured.to_string()).unwrap();
    let arguments = ["--socket", text(&socket), "--every", "100ms", "--measurement", text(&evening)];
    let server = Server::start(&arguments);
    let mut background = Vec::new();
    for (width, is_dark) in [(360, false), (360, true), (1280, false), (1280, true)] {
        let said = browser.open(&server.address, Window { width, is_dark });
        assert_eq!(said, Vec::<String>::new(), "{width} points, dark: {is_dark}");
        browser.wait_for(LIVE);
        let frames = if std::env::var_os("LASTHOP_PICTURES").is_some() { 100 } else { 12 };
        for n in 0..frames {
            grow(&controller, n);
            std::thread::sleep(Duration::from_millis(100));
        }
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(width.into()), "{width} points wide, and it takes {wide}");
        let drawn = "[...document.querySelectorAll('.plot canvas')].map(c => c.getContext('2d').getImageData(0, 0, c.width, \
             c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length > 1000)";
        assert_eq!(browser.evaluate(drawn), json!([true, true, true, true]));
        browser.wait_for("!document.getElementById('measurement').hidden");
        assert!(shown(&mut browser, "#measurement").contains("11 of 12 pairs"));
        background.push(browser.evaluate("getComputedStyle(document.documentElement).backgroundColor"));
        keep_picture(&mut browser, &format!("page-{width}-{}", if is_dark { "dark" } else { "light" }));
        assert_eq!(browser.complaints(&server.address), Vec::<String>::new());
    }
    assert_eq!(background[0], background[2]);
    assert_ne!(background[0], background[1], "the dark page is dark");
}

#[test]
fn a_controller_that_goes_is_told_and_one_that_comes_is_shown_by_itself() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let server = Server::start(&["--socket", text(&socket), "--every", "100ms"]);
    browser.open(&server.address, DESK);
    browser.wait_for(LIVE);
    drop(controller);
    browser.wait_for("!document.getElementById('notice').hidden");
    assert!(shown(&mut browser, "#notice").contains("no controller answers"));
    assert_eq!(shown(&mut browser, "#state"), "no controller");
    let mut another = status(8);
    another["version"] = json!("0.3.0");
    another["directions"]["down"]["waiting"] = json!([]);
    let _controller = Controller::start(&socket, another);
    browser.wait_for(LIVE);
    assert!(shown(&mut browser, "#who").ends_with("version 0.3.0"));
    assert_eq!(browser.evaluate("document.getElementById('notice').hidden"), true);
    assert_eq!(browser.complaints(&server.address), Vec::<String>::new());
}

#[test]
fn somebody_logs_in_and_pauses_and_the_token_is_nowhere() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let ((own, file), (read, read_file)) = (token(folder.path(), "control"), token(folder.path(), "read"));
    let tokens = ["--token-file", text(&read_file), "--control-token-file", text(&file)];
    let server = Server::start(&[&["--socket", text(&socket), "--every", "100ms"][..], &tokens].concat());
    let said = browser.open(&server.address, DESK);
    assert_eq!(said, Vec::<String>::new());
    browser.wait_for("!document.getElementById('login').hidden");
    assert_eq!(browser.evaluate("document.getElementById('figures').hidden"), true);
    let log_in = |browser: &mut Browser, token: &str| {
        let token = json!(token);
        browser.evaluate(&format!(
            "document.getElementById('token').value = {token}; document.getElementById('login').requestSubmit()"
        ));
    };
    log_in(&mut browser, &read);
    browser.wait_for(LIVE);
    assert_eq!(browser.evaluate("document.getElementById('pause').hidden"), true, "it only reads");
    browser.evaluate("document.getElementById('more').click()");
    log_in(&mut browser, &own);
    browser.wait_for(
        "!document.getElementById('pause').hidden && document.getElementById('pause-device').options.length === 5",
    );
    browser.evaluate("document.getElementById('pause-device').value = '02:00:5e:10:00:01'; document.getElementById('pause').requestSubmit()");
    browser.wait_for("document.querySelector('#paused button')");
    assert!(shown(&mut browser, "#paused").contains("window control for laptop, 10 min left"));
    browser.evaluate("document.querySelector('#paused button').click()");
    browser.wait_for("document.getElementById('paused').innerText.includes('Nothing')");
    let asked = controller.commands.lock().unwrap().clone();
    let device = "02:00:5e:10:00:01";
    assert_eq!(
        asked,
        [
            json!({ "pause": { "what": "windows", "device": device, "for_s": 600.0 } }),
            json!({ "resume": { "what": "windows", "device": device } })
        ]
    );
    for secret in [&own, &read] {
        assert!(
            browser.asked_for().iter().all(|address| !address.contains(secret.as_str())),
            "an address has the token"
        );
        let page = browser
            .evaluate("document.documentElement.outerHTML + document.getElementById('token').value + location.href");
        assert!(!page.as_str().unwrap().contains(secret.as_str()), "the page has the token");
    }
    assert_eq!(browser.evaluate("document.cookie + localStorage.length + sessionStorage.length"), "00");
    assert_eq!(browser.complaints(&server.address), Vec::<String>::new());
    assert_eq!(browser.evaluate("fetch('logout', { method: 'POST' }).then(answer => answer.status)"), 204);
    browser.open(&server.address, DESK);
    browser.wait_for("!document.getElementById('login').hidden && document.getElementById('figures').hidden");
    let said = server.end();
    assert!(!said.contains(&own) && !said.contains(&read), "{said}");
}

/// Heap and nodes after so many seconds at ten updates a second, against those after the first of them.
fn stays_small(seconds: u64) {
    let Some(mut browser) = Browser::start_for(seconds as u32 + 60) else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let server = Server::start(&["--socket", text(&socket), "--every", "100ms"]);
    browser.open(&server.address, DESK);
    browser.wait_for(LIVE);
    browser.evaluate("document.getElementById('flows-head').click()");
    let mut first = None;
    for n in 0..seconds * 10 {
        grow(&controller, n);
        // Flows that come and go are rows that come and go.
        controller.set(|status| status["flows"][0]["flow"] = json!(format!("10.0.0.2:{} <- 192.0.2.1:443", 1024 + n)));
        std::thread::sleep(Duration::from_millis(100));
        if n == seconds * 10 / 4 {
            first = Some((browser.weight(), server.resident_kb()));
        }
    }
    let ((heap, nodes), kb) = first.expect("a quarter");
    let ((heap_then, nodes_then), kb_then) = (browser.weight(), server.resident_kb());
    let events = browser.evaluate("Number(document.documentElement.dataset.events)").as_f64().unwrap();
    println!(
        "{events} events in {seconds} s; heap {heap} then {heap_then} bytes; nodes {nodes} then {nodes_then}; server {kb} then {kb_then} kB"
    );
    assert!(events > seconds as f64 * 7.0, "{events} events");
    assert!(heap_then < heap * 1.2 + 1e6, "the heap grows: {heap} bytes, then {heap_then}");
    assert!(nodes_then < nodes + 300.0, "nodes: {nodes}, then {nodes_then}");
    assert!(kb_then < kb + 2_000, "the server grows: {kb} kB, then {kb_then} kB");
    assert_eq!(browser.complaints(&server.address), Vec::<String>::new());
}

#[test]
fn a_page_that_stays_open_does_not_grow() {
    stays_small(8);
}

/// cargo test -p lasthop-web --test browser -- --ignored --nocapture
#[test]
#[ignore = "ten minutes"]
fn a_page_that_stays_open_for_ten_minutes_does_not_grow() {
    stays_small(600);
}

/// The book's picture (there with 256 colours, which makes it 42 kB), of a controller that runs: sudo lasthop emulate scenarios/homes/evening.toml --set duration=220s
/// --set control.window.capacity=learn --socket /tmp/evening.sock, and
/// LASTHOP_SOCKET=/tmp/evening.sock cargo test -p lasthop-web --test browser -- --ignored picture
#[test]
#[ignore = "three minutes, and only beside a controller"]
fn the_books_picture() {
    use base64::Engine as _;
    let Ok(socket) = std::env::var("LASTHOP_SOCKET") else {
        return println!("SKIPPED: LASTHOP_SOCKET names no controller's socket");
    };
    let Some(mut browser) = Browser::start_for(300) else { return };
    let server = Server::start(&["--socket", &socket]);
    browser.open(&server.address, Window { width: 920, is_dark: false });
    browser.wait_for(LIVE);
    std::thread::sleep(Duration::from_secs(170));
    let picture = base64::prelude::BASE64_STANDARD.decode(browser.picture_of(1015, 1.0)).unwrap();
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/src/figures/web.png");
    std::fs::write(place, picture).unwrap();
    keep_picture(&mut browser, "evening");
    assert_eq!(browser.complaints(&server.address), Vec::<String>::new());
}
