//! `lasthop measure serve` and `measure responsiveness`: with clients that others wrote, and behind queues of a known length. The
//! latter need root and tc, and say SKIPPED without them.

#[path = "responsiveness/shaped.rs"]
mod shaped;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use shaped::{Shape, Shaped};

/// A server that ends with this.
struct Serving {
    child: Child,
    url: String,
    fingerprint: String,
}

impl Serving {
    /// Runs `serve`, which is `lasthop measure serve` inside or outside of a namespace.
    fn start(mut serve: Command) -> Self {
        let mut child = serve.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut after = |word: &str| {
            let line = lines.by_ref().find_map(|line| Some(line.split_once(word)?.1.trim().to_owned()));
            line.unwrap_or_else(|| panic!("the server says nothing with {word}"))
        };
        let url = after("responsiveness ").trim_end_matches(" \\").to_owned();
        let fingerprint = after("--fingerprint ");
        // Its farewell has somewhere to go.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url, fingerprint }
    }

    fn on_loopback() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(["measure", "serve", "--listen", "127.0.0.1:0"]);
        Self::start(command)
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program that is not ours says; says SKIPPED where it is not there.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("SKIPPED: {program}: {error}");
            None
        }
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn curl_gets_and_posts_over_http2_and_http1() {
    let serving = Serving::on_loopback();
    for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let said = |more: &[&str]| {
            let arguments =
                [&["-sk", "--max-time", "10", flag, "-w", "%{http_version} %{http_code} %{size_download}\n"], more]
                    .concat();
            run("curl", &arguments).map(|output| text(&output))
        };
        let Some(small) = said(&[&serving.at("/small")]) else { return };
        assert_eq!(small, format!("x{version} 200 1\n"));
        let config = said(&[&serving.at("/config")]).expect("curl is there");
        let (json, end) = config.rsplit_once('}').expect("JSON");
        let json: Value = serde_json::from_str(&format!("{json}}}")).expect("JSON");
        assert_eq!(
            (&json["version"], &json["urls"]["upload_url"]),
            (&1.into(), &serving.at("/slurp").into()),
            "{json}"
        );
        assert_eq!(json["urls"]["large_https_download_url"], serving.at("/large"));
        assert!(end.starts_with(&format!("{version} 200")), "{end}");
        let well_known = said(&[&serving.at("/.well-known/nq")]).expect("curl is there");
        assert!(!well_known.contains("https_upload_url"), "the draft's names only: {well_known}");
        let posted = said(&["--data-binary", &"y".repeat(100_000), &serving.at("/slurp")]).expect("curl is there");
        assert_eq!(posted, format!("{version} 200 0\n"));
        for (method, path, status) in
            [("POST", "/small", "405"), ("GET", "/slurp", "405"), ("GET", "/etc/passwd", "404")]
        {
            let answered = said(&["-X", method, &serving.at(path)]).expect("curl is there");
            assert_eq!(answered, format!("{version} {status} 0\n"), "{method} {path}");
        }
    }
}

#[test]
fn the_large_object_is_eight_gigabytes_of_which_nothing_compresses() {
    let serving = Serving::on_loopback();
    let folder = tempfile::tempdir().expect("a folder");
    let [head, body] = ["head", "body"].map(|name| folder.path().join(name).display().to_string());
    // curl ends when it has a megabyte more than it may take.
    let part = format!("curl -sk --http2 -D {head} {} | head -c 1000000 > {body}", serving.at("/large"));
    let Some(_) = run("curl", &["--version"]) else { return };
    run("sh", &["-c", &part]).expect("a shell");
    let head = std::fs::read_to_string(head).expect("headers").to_lowercase();
    assert!(head.contains("content-length: 8589934592") && !head.contains("content-encoding"), "{head}");
    let packed = run("gzip", &["-c", &body]).map_or(1_000_000, |output| output.stdout.len());
    assert_eq!(std::fs::metadata(&body).expect("the body").len(), 1_000_000);
    assert!(packed > 990_000, "{packed} bytes");
}

#[test]
fn nghttp_gets_three_objects_over_one_connection_and_h2load_finds_no_failure() {
    let serving = Serving::on_loopback();
    if let Some(output) =
        run("nghttp", &["-nv", &serving.at("/small"), &serving.at("/config"), &serving.at("/.well-known/nq")])
    {
        let said = text(&output);
        assert_eq!(said.matches(":status: 200").count(), 3, "{said}");
        assert!(said.contains("SETTINGS_MAX_CONCURRENT_STREAMS(0x03):250"), "{said}");
    }
    let load = ["-n", "2000", "-c", "10", "-m", "50", &serving.at("/small")];
    if let Some(output) = run("h2load", &load) {
        let said = text(&output);
        assert!(said.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"), "{said}");
    }
}

#[test]
fn a_signal_ends_the_server_well_and_it_says_what_it_did() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    let mut child = command
        .args(["measure", "serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line.contains("--fingerprint")));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().is_ok_and(|status| status.success()));
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(lines.any(|line| line.starts_with("0 connections, 0 requests")));
}

#[test]
fn a_long_queue_is_seen_as_long_and_a_short_one_as_short() {
    let Some([long, short]) = Shaped::pairs([Shape::queue_of_ms(300), Shape::queue_of_ms(20)]) else { return };
    // Both at once: each has a network of its own, and the machine has little to do.
    let [long, short] = [long, short].map(|path| std::thread::spawn(move || measured(&path)));
    let [long, short] = [long, short].map(|thread| thread.join().expect("no panic"));
    let figure = |seen: &Seen, name: &str| seen.found[name].as_f64().expect("a number");
    assert!(figure(&long, "rpm") < 300.0, "{:?}", long.found);
    let (far, near) = (figure(&long, "foreign_rpm"), figure(&short, "foreign_rpm"));
    assert!(near > 4.0 * far && figure(&short, "rpm") > figure(&long, "rpm"), "{:?}\n{:?}", long.found, short.found);
    for (seen, tolerance) in [(&long, 0.35), (&short, 0.5)] {
        // ping asked over the same time. Seconds, samples and trimming differ; a lost segment delays a probe and not a ping.
        let by_ping = 60_000.0 / seen.ping_ms;
        let apart = (figure(seen, "foreign_rpm") / by_ping - 1.0).abs();
        assert!(apart < tolerance, "{by_ping} by a ping of {} ms: {:?}", seen.ping_ms, seen.found);
        let share = figure(seen, "goodput_down_bps") / Shape::RATE.as_bps() as f64;
        assert!((0.8..1.0).contains(&share), "{share} of the rate");
    }
}

/// One test behind a queue.
struct Seen {
    found: Value,
    /// Mean round trip of a ping beside it, while the load was there, ms.
    ping_ms: f64,
}

fn measured(path: &Shaped) -> Seen {
    let program = env!("CARGO_BIN_EXE_lasthop");
    let mut serve = path.server.command(program);
    serve.args(["measure", "serve", "--listen", &format!("{}:4043", Shaped::SERVER)]);
    let serving = Serving::start(serve);
    let mut test = path.client.command(program);
    test.args(["measure", "responsiveness", &serving.url, "--fingerprint", &serving.fingerprint]);
    test.args(["--direction", "down", "--for", "10s", "--json"]);
    let test = test.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the test starts");
    // From the fourth second on, when the queue is full, until the test's earliest end.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let ping =
        path.client.command("ping").args(["-q", "-i", "0.05", "-c", "70", Shaped::SERVER]).output().expect("ping");
    let output = test.wait_with_output().expect("the test ends");
    assert!(output.status.success(), "{}", text(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let said = text(&ping);
    let mean = said.split(" = ").nth(1).and_then(|times| times.split('/').nth(1)).and_then(|ms| ms.parse().ok());
    Seen { found: found["results"][0].clone(), ping_ms: mean.unwrap_or_else(|| panic!("{said}")) }
}

/// Answers every client of a Unix socket until the test's process ends.
fn serve(path: &std::path::Path, answer: impl Fn(&mut std::os::unix::net::UnixStream) + Send + 'static) {
    let listener = std::os::unix::net::UnixListener::bind(path).expect("a socket");
    std::thread::spawn(move || listener.incoming().flatten().for_each(|mut stream| answer(&mut stream)));
}

/// Its controller is made up: it says always the same, and obeys.
#[test]
fn each_block_of_a_measurement_that_makes_its_load_has_round_trips_per_minute() {
    use std::io::{Read as _, Write as _};
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("x.sock");
    let mut status: Value = serde_json::from_str(include_str!("../../web/tests/status.json")).expect("JSON");
    status["paused"] = Value::Array(Vec::new());
    serve(&socket, move |stream| drop(write!(stream, "{status}")));
    serve(&lasthop_status::command::path(&socket), |stream| {
        let _ = stream.read_to_end(&mut Vec::new());
        let _ = stream.write_all(b"{\"done\": []}");
    });
    let server = Serving::on_loopback();
    let measured = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(["measure", "--pairs", "1", "--block", "4s", "--discard", "1s", "--json", "-", "--socket"]);
        command.arg(&socket).args(more).output().expect("the program")
    };
    let said = measured(&["--load", &server.url, "--fingerprint", &server.fingerprint]);
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{text}");
    let report: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    for block in report["blocks"].as_array().expect("blocks") {
        assert!(block["rpm"].as_f64().is_some_and(|rpm| rpm > 100.0), "{}", block["rpm"]);
    }
    let wrong = measured(&["--fingerprint", &server.fingerprint]);
    assert_eq!(wrong.status.code(), Some(2), "whom is to be believed of what?");
    let strange = measured(&["--load", &server.url]);
    let text = String::from_utf8_lossy(&strange.stderr);
    assert!(!strange.status.success() && text.contains("certificate"), "{text}");
}
