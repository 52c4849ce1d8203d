//! The program as any client meets it: who is answered, who is refused, and what a slow one costs the others.

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::{Controller, Server, status, token};
use serde_json::json;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn the_sample_is_a_status_of_this_version() {
    let read: lasthop_status::Status = serde_json::from_value(status(7)).unwrap();
    assert_eq!(read.format, lasthop_status::FORMAT);
}

#[test]
fn a_status_goes_through_as_it_is() {
    let folder = folder();
    let socket = folder.path().join("x.sock");
    let _controller = Controller::start(&socket, status(7));
    let server = Server::start(&["--socket", text(&socket)]);
    assert_eq!(server.get("/status", &[]).json(), status(7));
    assert_eq!(server.events().next().unwrap()["status"], status(7));
    let session = server.get("/session", &[]).json();
    assert_eq!((&session["reads"], &session["controls"]), (&json!(true), &json!(false)));
}

#[test]
fn a_name_that_somebody_else_has_looked_up_as_this_machine_is_refused() {
    let server = Server::start(&["--socket", "/nonexistent", "--host", "router.lan"]);
    let port = server.host().rsplit_once(':').unwrap().1;
    for host in [&format!("localhost:{port}"), &format!("127.0.0.1:{port}"), "router.lan", "[::1]:1"] {
        assert_eq!(server.get("/", &[&format!("Host: {host}")]).code(), 200, "{host}");
    }
    for path in ["/", "/web.js", "/session", "/events", "/status", "/nothing"] {
        assert_eq!(server.get(path, &["Host: evil.example"]).code(), 421, "{path}");
    }
    assert_eq!(server.get("/", &["Host: localhost", "Host: evil.example"]).code(), 421);
    assert_eq!(server.get("http://evil.example/", &["Host: localhost"]).code(), 421);
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 421", "a Host is a must");
    assert_eq!(server.get("/counts", &[]).json()["refused_host"], 9);
}

#[test]
fn every_answer_tells_the_browser_to_trust_nothing_else() {
    let server = Server::start(&["--socket", "/nonexistent"]);
    let answers =
        [server.get("/", &[]), server.get("/nothing", &[]), server.get("/status", &[]), server.get("/", &["Host: x"])];
    for answer in answers {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    }
    assert_eq!(server.get("/status", &[]).header("cache-control"), Some("no-store"));
    let page = server.get("/web.js", &["Accept-Encoding: deflate, gzip"]);
    assert_eq!(page.header("content-encoding"), Some("gzip"));
    let tag = format!("If-None-Match: {}", page.header("etag").unwrap());
    assert_eq!(server.get("/web.js", &[&tag]).code(), 304);
    assert!(server.get("/web.js", &[]).body().contains("EventSource"));
}

#[test]
fn without_the_token_nothing_is_told_and_with_it_everything() {
    let folder = folder();
    let socket = folder.path().join("x.sock");
    let _controller = Controller::start(&socket, status(7));
    let (own, file) = token(folder.path(), "read");
    let server = Server::start(&["--socket", text(&socket), "--token-file", text(&file)]);
    assert_eq!(server.get("/metrics", &[]).code(), 401);
    for path in ["/status", "/events", "/measurement", "/counts"] {
        let answer = server.get(path, &[]);
        assert_eq!((answer.code(), answer.body().contains("laptop")), (401, false), "{path}");
        assert_eq!(server.get(path, &["Authorization: Bearer wrong-wrong-wrong"]).code(), 403, "{path}");
        assert_eq!(server.get(path, &["Cookie: lasthop=00"]).code(), 401, "{path}");
    }
    let bearer = format!("Authorization: Bearer {own}");
    assert_eq!(server.get("/status", &[&bearer]).json(), status(7));
    assert_eq!(server.get(&format!("/status?token={own}"), &[]).code(), 401, "a token in an address is none");

    let origin = format!("Origin: http://{}", server.host());
    let login = server.post("/login", &[&origin], &own);
    let cookie = login.header("set-cookie").expect("a cookie").to_owned();
    assert_eq!(login.code(), 204);
    assert!(
        cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(&own) && !cookie.contains("Secure"),
        "{cookie}"
    );
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(server.get("/status", &[&cookie]).code(), 200);
    assert_eq!(
        server.post("/command", &[&origin, &cookie], r#"{"resume":{"what":"udp"}}"#).code(),
        401,
        "it only reads"
    );
    assert_eq!(server.post("/logout", &[&origin, &cookie], "").code(), 204);
    assert_eq!(server.get("/status", &[&cookie]).code(), 401);
    let said = server.end();
    assert!(!said.contains(&own), "{said}");
}

#[test]
fn who_guesses_has_to_wait() {
    let folder = folder();
    let (own, file) = token(folder.path(), "read");
    let server = Server::start(&["--socket", "/nonexistent", "--token-file", text(&file)]);
    let origin = format!("Origin: http://{}", server.host());
    let codes: Vec<u16> =
        (0..8).map(|n| server.post("/login", &[&origin], &format!("guess-number-{n:04}")).code()).collect();
    assert_eq!(codes, [403, 403, 403, 403, 403, 429, 429, 429]);
    let late = server.post("/login", &[&origin], &own);
    assert_eq!((late.code(), late.header("retry-after")), (429, Some("10")), "the right one waits, too");
    let said = server.end();
    assert!(said.contains("wrong token") && !said.contains("guess"), "{said}");
}

#[test]
fn only_our_own_page_or_a_token_changes_anything() {
    let folder = folder();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let (control, file) = token(folder.path(), "control");
    let server = Server::start(&["--socket", text(&socket), "--control-token-file", text(&file)]);
    let pause = r#"{"pause":{"what":"windows","device":"laptop","for_s":60.0}}"#;
    let (origin, bearer) = (format!("Origin: http://{}", server.host()), format!("Authorization: Bearer {control}"));
    assert_eq!(server.get("/status", &[]).code(), 200, "on this machine everybody reads");
    assert_eq!(server.post("/command", &[&origin], pause).code(), 401);
    assert_eq!(server.post("/command", &[], pause).code(), 403);
    for foreign in ["Origin: http://evil.example", "Origin: null", "Origin: https://127.0.0.1"] {
        assert_eq!(server.post("/command", &[foreign, &bearer], pause).code(), 403, "{foreign}");
        assert_eq!(server.post("/login", &[foreign], &control).code(), 403, "{foreign}");
    }
    assert_eq!(controller.commands.lock().unwrap().len(), 0);
    let done = server.post("/command", &[&bearer], pause);
    assert_eq!((done.code(), &done.json()["done"][0]["device"]), (200, &json!("laptop")));
    assert_eq!(
        controller.commands.lock().unwrap().as_slice(),
        [serde_json::from_str::<serde_json::Value>(pause).unwrap()]
    );
    let odd = server.post("/command", &[&bearer], r#"{"stop":{}}"#);
    assert_eq!((odd.code(), odd.json()["refused"].is_string()), (409, true));
    assert_eq!(server.post("/command", &[&bearer], &"x".repeat(2_000)).code(), 400);
    assert_eq!(controller.commands.lock().unwrap().len(), 1, "what is not understood is not handed on");
}

#[test]
fn beyond_this_machine_a_token_and_encryption_are_asked_for() {
    let folder = folder();
    let (_, file) = token(folder.path(), "read");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lasthop-web")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let everywhere = ["--listen", "0.0.0.0:0"];
    let with = |more: &[&str]| run(&[&everywhere, more].concat());
    for ((code, said), hint) in [
        (with(&[]), "--token-file"),
        (with(&["--token-file", text(&file)]), "--tls-cert"),
        (with(&["--token-file", text(&file), "--behind-proxy"]), "--host"),
        (run(&["--behind-proxy", "--host", "x"]), "--token-file"),
        (run(&["--every", "10ms"]), "100 ms"),
    ] {
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(hint), "{said}");
    }
}

#[test]
fn the_controller_is_asked_once_per_tick_for_all_and_only_while_somebody_watches() {
    let folder = folder();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let server = Server::start(&["--socket", text(&socket), "--every", "100ms"]);
    let asked = || controller.asked.load(Ordering::Relaxed);
    let before = asked();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(server.events().take(10).count(), 10));
        }
    });
    // Ten each; the first of those who came between two ticks is of the tick before.
    assert!((8..=16).contains(&(asked() - before)), "{} times", asked() - before);
    while server.get("/counts", &[]).json()["viewers"] != 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = asked();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(asked(), left, "nobody watches");
}

#[test]
fn who_reads_nothing_holds_up_nobody_and_memory_has_a_bound() {
    let folder = folder();
    let socket = folder.path().join("x.sock");
    let mut large = status(7);
    large["decisions"] = (0..2_000).map(|n| json!({ "at_s": n, "line": "x".repeat(100) })).collect();
    let _controller = Controller::start(&socket, large);
    let server = Server::start(&["--socket", text(&socket), "--every", "100ms"]);
    let idle: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = server.connect();
            write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", server.host()).unwrap();
            stream
        })
        .collect();
    assert_eq!(server.events().take(30).count(), 30);
    let after_30 = server.resident_kb();
    assert_eq!(server.events().take(30).count(), 30);
    // 8 x 30 events of 270 kB would be 65 MB.
    assert!(server.resident_kb() < after_30 + 4_000, "{after_30} kB, then {} kB", server.resident_kb());
    drop(idle);
}

#[test]
fn more_viewers_than_there_is_room_for_are_refused_and_counted() {
    let server = Server::start(&["--socket", "/nonexistent"]);
    let mut open: Vec<_> = (0..16).map(|_| server.events()).collect();
    open.iter_mut()
        .for_each(|events| assert!(events.next().unwrap()["nobody"].as_str().unwrap().contains("lasthop run")));
    assert_eq!(server.get("/events", &[]).code(), 503);
    assert_eq!(server.get("/counts", &[]).json()["refused_viewers"], 1);
    let odd = server.connect();
    (&odd).write_all(b"\x16\x03\x01 nonsense\r\n\r\n").unwrap();
    let _ = (&odd).read_to_end(&mut Vec::new());
    assert_eq!(server.get("/counts", &[]).json()["refused_request"], 1);
}

#[test]
fn a_log_of_an_emulation_is_followed() {
    let folder = folder();
    let log = folder.path().join("log.jsonl");
    let server = Server::start(&["--log", text(&log), "--every", "100ms", "--meanwhile", "not yet"]);
    let mut events = server.events();
    assert_eq!(events.next().unwrap()["nobody"], "not yet");
    let line = |t_s: f64, pid: u32| json!({ "t_s": t_s, "status": status(pid) }).to_string() + "\n";
    std::fs::write(&log, format!("{{\"t_s\":0.0,\"said\":\"begun\"}}\n{}", line(0.1, 7))).unwrap();
    let first = events.find(|event| !event["status"].is_null()).unwrap();
    assert_eq!((&first["status"]["pid"], &first["log"]["said"][0][1]), (&json!(7), &json!("begun")));
    let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(line(0.2, 8).as_bytes()).unwrap();
    let next = events.find(|event| event["status"]["pid"] == 8).unwrap();
    assert_eq!(next["log"]["t_s"], 0.2);
    assert_eq!(server.get("/status", &[]).json(), status(8));
}

#[test]
fn it_ends_with_who_started_it() {
    assert!(Server::start(&["--until-stdin-ends"]).close_stdin());
}

#[test]
fn a_client_of_others_speaks_tls_with_it() {
    if Command::new("curl").arg("--version").output().is_err() {
        return println!("SKIPPED: there is no curl");
    }
    let folder = folder();
    let socket = folder.path().join("x.sock");
    let _controller = Controller::start(&socket, status(7));
    let (own, file) = token(folder.path(), "read");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, (_, key)) = (folder.path().join("cert.pem"), token(folder.path(), "key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = ["--tls-cert", text(&certificate), "--tls-key", text(&key), "--host", "localhost"];
    let server = Server::start(&[&["--socket", text(&socket), "--token-file", text(&file)][..], &tls].concat());
    let address = server.address.trim_end_matches('/');
    let config = folder.path().join("curl");
    std::fs::write(&config, format!("header = \"Authorization: Bearer {own}\"\n")).unwrap();
    let curl = |path: &str, more: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "10", "--cacert", text(&certificate)]).args(more);
        let output = command.arg(format!("{address}{path}")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let found = curl("/status", &["--config", text(&config)]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&found).ok(), Some(status(7)), "{found}");
    let login = curl("/login", &["--include", "--header", &format!("Origin: {address}"), "--data", &own]);
    assert!(login.contains("__Host-lasthop=") && login.contains("; Secure"), "{login}");
    let packed = curl("/web.js", &["--compressed"]);
    assert!(packed.contains("EventSource"));
    let started = Instant::now();
    let events = curl("/events", &["--no-buffer", "--config", text(&config), "--max-time", "1"]);
    assert!(events.matches("data: ").count() >= 2 && started.elapsed() < Duration::from_secs(10), "{events}");
}
