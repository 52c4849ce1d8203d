//! `/metrics`, as Prometheus reads it.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Controller, Server, status, token};
use serde_json::Value;

#[test]
fn metrics_are_those_of_the_status_and_say_when_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let server = Server::start(&["--socket", socket.to_str().unwrap()]);
    let absent = server.get("/metrics", &[]);
    assert_eq!((absent.code(), absent.body().contains("\nlasthop_up 0\n")), (200, true), "{}", absent.0);
    let _controller = Controller::start(&socket, status(7));
    let answer = server.get("/metrics", &[]);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(answer.body(), lasthop_status::prometheus::render(&serde_json::from_value(status(7)).unwrap()));
}

/// Prometheus itself, installed or unpacked.
fn program() -> Option<PathBuf> {
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-results/study/root/usr/bin/prometheus");
    let found = ["/usr/bin/prometheus", unpacked].map(PathBuf::from).into_iter().find(|path| path.exists());
    if found.is_none() {
        println!("SKIPPED: a real Prometheus: there is none (tools/unpack-deps unpack-try fetches it)");
    }
    found
}

/// It runs until it is dropped.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    fn start(program: &Path, folder: &Path, target: &str, token: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "global: {{ scrape_interval: 200ms }}\nscrape_configs:\n- job_name: lasthop\n  authorization: {{ credentials_file: {}              }}\n  static_configs: [{{ targets: [\"{target}\"] }}]\n",
            token.display()
        );
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(program);
        command.arg("--config.file").arg(&file).arg("--storage.tsdb.path").arg(folder.join("data"));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, port }
    }

    /// Values of an expression, once there are some.
    fn ask(&self, expression: &str) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let values = self.values(expression).unwrap_or_default();
            if !values.is_empty() || Instant::now() > deadline {
                return values;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn values(&self, expression: &str) -> Option<Vec<Value>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let body = format!("query={expression}");
        let kind = "Content-Type: application/x-www-form-urlencoded";
        let length = body.len();
        let head = format!("POST /api/v1/query HTTP/1.0\r\n{kind}\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all((head + &body).as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let answer: Value = serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?;
        Some(answer["data"]["result"].as_array()?.iter().map(|one| one["value"][1].clone()).collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_takes_them_with_a_token_and_reckons_with_them() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let _controller = Controller::start(&socket, status(7));
    let (_, file) = token(folder.path(), "read");
    let server = Server::start(&["--socket", socket.to_str().unwrap(), "--token-file", file.to_str().unwrap()]);
    let prometheus = Prometheus::start(&program, folder.path(), server.host(), &file);
    assert_eq!(prometheus.ask("lasthop_up"), ["1"]);
    assert_eq!(prometheus.ask("up{job=%22lasthop%22}"), ["1"]);
    let capacity = status(7)["directions"]["down"]["capacity_bps"].as_f64().unwrap() / 8.0;
    assert_eq!(prometheus.ask("lasthop_capacity_bytes_per_second{direction=%22down%22}"), [capacity.to_string()]);
    let buckets = prometheus.ask("count(lasthop_waiting_seconds_bucket)");
    assert_eq!(buckets, [(16 * 2 * 4).to_string()], "each direction and place has all of its buckets");
}
