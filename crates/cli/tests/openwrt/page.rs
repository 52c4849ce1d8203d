//! The LuCI page in a browser, with a stand-in for LuCI.

use std::path::Path;
use std::process::{Command, Stdio};

use lasthop_testing::browser::{Browser, Window};
use serde_json::{Value, json};

use crate::text;

const PAGE: &str =
    include_str!("../../../../packaging/openwrt/luci-app-lasthop/htdocs/luci-static/resources/view/lasthop.js");
const LUCI: &str = include_str!("luci.js");
const ACL: &str =
    include_str!("../../../../packaging/openwrt/luci-app-lasthop/root/usr/share/rpcd/acl.d/luci-app-lasthop.json");
const MENU: &str =
    include_str!("../../../../packaging/openwrt/luci-app-lasthop/root/usr/share/luci/menu.d/luci-app-lasthop.json");
const STATUS: &str = include_str!("../../../web/tests/status.json");

/// The page in a browser, with `answer` for what lasthopd says: an expression of JavaScript.
fn open(browser: &mut Browser, answer: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    // In a script nothing may end the script.
    let literal = |text: &str| json!(text).to_string().replace("</", "<\\/");
    let style = "body { font: 14px sans-serif; margin: 2em } .td, .th { padding: .2em 1em .2em 0; text-align: left } \
                 .alert-message { background: #fc6; padding: .6em } .cbi-value { display: block; margin: 1em 0 } \
                 .cbi-value b { display: inline-block; width: 16em }  small { margin-left: 1em; color: #666 }";
    let page = format!(
        "<!doctype html><meta charset=utf-8><title>Lasthop</title><style>{style}</style><div id=view></div>\
         <script>{LUCI}</script><script>window.answer = {answer}; start({}).then(() => window.ready = true)</script>",
        literal(PAGE)
    );
    std::fs::write(&file, page).unwrap();
    let window = Window { width: 1000, is_dark: false };
    let said = browser.open(&format!("file://{}", text(&file)), window);
    browser.wait_for("window.ready");
    assert_eq!(said, Vec::<String>::new());
}

/// What stands in the page.
fn shown(browser: &mut Browser) -> String {
    browser.evaluate("document.body.innerText").as_str().unwrap_or_default().to_owned()
}

fn status() -> Value {
    serde_json::from_str(STATUS).expect("JSON")
}

/// An expression for what lasthopd writes.
fn says(status: &Value) -> String {
    json!(status.to_string()).to_string().replace("</", "<\\/")
}

#[test]
fn the_page_shows_the_status_follows_it_and_has_three_settings() {
    let Some(mut browser) = Browser::start() else { return };
    open(&mut browser, &says(&status()));
    let page = shown(&mut browser);
    for part in [
        "Downloads\t19.3 Mbit/s of 19.9 Mbit/s; 3.4 ms wait in the access point’s own queue",
        "laptop\t13.2 Mbit/s\t310 kbit/s\t3.4 ms\t–",
        "..10:00:03\t940 kbit/s",
        "behaves like a download",
    ] {
        assert!(page.contains(part), "`{part}` is not in\n{page}");
    }
    keep_picture(&mut browser);
    // It asks again, and shows what it hears.
    let mut later = status();
    later["version"] = json!("9.9.9");
    later["bypass"] = json!({ "bytes": 1, "share": 0.124, "bypasses_control": true });
    later["dry_run"] = json!(true);
    browser.evaluate(&format!("window.answer = {}; window.polls[0]()", says(&later)));
    browser.wait_for("document.body.innerText.includes('9.9.9')");
    let page = shown(&mut browser);
    assert!(page.contains("12 % of the traffic goes past control") && page.contains("It only tries"), "{page}");

    let fields = browser.evaluate("map.fields.map(of => of.name)");
    assert_eq!(fields, json!(["enabled", "capacity", "lan"]));
    assert_eq!(
        browser.evaluate("[map.config, map.kind, map.name, map.type]"),
        json!(["lasthop", "named", "main", "lasthop"])
    );
    for (field, value, is_right) in [
        ("capacity", "", true),
        ("capacity", "learn", true),
        ("capacity", "40Mbit/s", true),
        ("capacity", "98%", true),
        ("capacity", "40", false),
        ("capacity", "40Mbit/s\nflows = 1", false),
        ("lan", "br-lan", true),
        ("lan", "eth0.2", true),
        ("lan", "lan 1", false),
        ("lan", "a-name-of-16-chars", false),
    ] {
        let found = browser.evaluate(&format!("options.{field}.validate('main', {}) === true", json!(value)));
        assert_eq!(found, json!(is_right), "{field} {value}");
    }
}

#[test]
fn the_page_says_what_is_wrong_where_no_controller_or_another_version_answers() {
    let Some(mut browser) = Browser::start() else { return };
    let mut old = status();
    old["format"] = json!(1);
    for (answer, told) in [
        ("''", "it is not running"),
        ("'error: no controller answers at /run/lasthop/lasthop.sock'", "no controller answers at"),
        (&*says(&old), "version 1 of its status, and this page version 2"),
        ("'null'", "version ? of its status"),
        ("'[]'", "version ? of its status"),
        ("'{\"format\": \"<img src=x>\"}'", "version <img src=x> of its status"),
        ("new Error('Access to command denied by ACL')", "Access to command denied by ACL"),
    ] {
        open(&mut browser, answer);
        let page = shown(&mut browser);
        assert!(page.contains(told), "{answer}: `{told}` is not in\n{page}");
        assert!(page.contains("Enabled"), "its settings are there all the same: {page}");
    }
}

#[test]
fn names_of_devices_are_text_whatever_is_in_them() {
    let Some(mut browser) = Browser::start() else { return };
    let hostile = "<img src=x onerror=\"window.taken = 1\"><script>window.taken = 2</script>&lt;%s";
    let mut status = status();
    for place in ["name", "id"] {
        status["devices"][0][place] = json!(hostile);
    }
    status["waits"] = json!([hostile]);
    status["version"] = json!(hostile);
    status["interfaces"][0]["name"] = json!(hostile);
    status["directions"]["down"]["queue_place"] = json!(hostile);
    status["decisions"][0]["line"] = json!(hostile);
    for _ in 0..200 {
        let one = status["devices"][0].clone();
        status["devices"].as_array_mut().unwrap().push(one);
    }
    open(&mut browser, &says(&status));
    assert_eq!(browser.evaluate("document.querySelectorAll('#view img, #view script').length"), json!(0));
    assert_eq!(browser.evaluate("window.taken === undefined"), json!(true));
    let page = shown(&mut browser);
    assert!(page.matches(hostile).count() >= 5, "{page}");
    assert!(page.contains("and 184 more"), "{page}");
}

#[test]
fn the_page_may_run_the_one_command_that_it_runs_and_reads_this_version_of_the_status() {
    let acl: Value = serde_json::from_str(ACL).unwrap();
    let read = &acl["luci-app-lasthop"]["read"];
    assert_eq!(read["file"], json!({ "/usr/sbin/lasthopd status --json": ["exec"] }));
    assert_eq!(read["cgi-io"], json!(["exec"]));
    assert_eq!(acl["luci-app-lasthop"]["write"], json!({ "uci": ["lasthop"] }));
    let menu: Value = serde_json::from_str(MENU).unwrap();
    assert_eq!(menu["admin/network/lasthop"]["action"], json!({ "type": "view", "path": "lasthop" }));
    assert_eq!(menu["admin/network/lasthop"]["depends"]["acl"], json!(["luci-app-lasthop"]));
    assert!(PAGE.contains(&format!("const FORMAT = {};", lasthop_status::FORMAT)));
    let Some(mut browser) = Browser::start() else { return };
    open(&mut browser, &says(&status()));
    assert_eq!(browser.evaluate("calls"), json!(["/usr/sbin/lasthopd status --json"]));
}

/// For people: LASTHOP_PICTURES names a folder.
fn keep_picture(browser: &mut Browser) {
    let Some(folder) = std::env::var_os("LASTHOP_PICTURES") else { return };
    let mut decode = Command::new("base64");
    decode
        .arg("-d")
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(Path::new(&folder).join("openwrt.png")).unwrap());
    let mut decode = decode.spawn().unwrap();
    let picture = browser.picture();
    std::io::Write::write_all(&mut decode.stdin.take().unwrap(), picture.as_bytes()).unwrap();
    decode.wait().unwrap();
}
