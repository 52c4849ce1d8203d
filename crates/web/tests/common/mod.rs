//! A controller that serves what a test wants, the program itself, and a client that speaks HTTP as it is written.

#![allow(dead_code)] // No test uses all of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A status with something in every part of it.
pub fn status(pid: u32) -> Value {
    let text = include_str!("../status.json");
    let mut status: Value = serde_json::from_str(text).expect("JSON");
    status["pid"] = json!(pid);
    status
}

/// Serves a status, and commands beside it, until it is dropped.
pub struct Controller {
    path: PathBuf,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// What it serves.
    pub status: Arc<Mutex<Value>>,
    /// How often it was asked.
    pub asked: Arc<AtomicUsize>,
    /// What it was asked to do.
    pub commands: Arc<Mutex<Vec<Value>>>,
}

impl Controller {
    pub fn start(path: &Path, status: Value) -> Self {
        let (asked, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (status, commands) = (Arc::new(Mutex::new(status)), Arc::new(Mutex::new(Vec::new())));
        let mut own = Self { path: path.to_owned(), ends, threads: Vec::new(), status, asked, commands };
        let (served, count) = (Arc::clone(&own.status), Arc::clone(&own.asked));
        own.serve(path, move |mut stream| {
            count.fetch_add(1, Ordering::Relaxed);
            let text = served.lock().unwrap().to_string();
            let _ = stream.write_all(text.as_bytes());
        });
        let (served, commands) = (Arc::clone(&own.status), Arc::clone(&own.commands));
        own.serve(&lasthop_status::command::path(path), move |mut stream| {
            let mut line = String::new();
            let _ = stream.read_to_string(&mut line);
            let Ok(asked) = serde_json::from_str::<Value>(&line) else { return };
            let pause = |of: &Value| json!({ "what": of["what"], "device": of["device"], "left_s": of["for_s"] });
            let paused: Vec<Value> = asked.get("pause").map(pause).into_iter().collect();
            served.lock().unwrap()["paused"] = json!(paused);
            commands.lock().unwrap().push(asked);
            let _ = write!(stream, "{}", json!({ "done": paused }));
        });
        own
    }

    fn serve(&mut self, path: &Path, answer: impl Fn(UnixStream) + Send + 'static) {
        let listener = UnixListener::bind(path).expect("a socket");
        let ends = Arc::clone(&self.ends);
        self.threads.push(std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                answer(stream.expect("a client"));
            }
        }));
    }

    pub fn set(&self, change: impl Fn(&mut Value)) {
        change(&mut self.status.lock().unwrap());
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for path in [self.path.clone(), lasthop_status::command::path(&self.path)] {
            let _ = UnixStream::connect(&path);
            let _ = std::fs::remove_file(path);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// `lasthop-web`; another build of it where the environment names one (`tools/bench-web`).
pub fn program() -> PathBuf {
    std::env::var_os("LASTHOP_WEB").map_or_else(|| env!("CARGO_BIN_EXE_lasthop-web").into(), PathBuf::from)
}

/// `lasthop-web`, until it is dropped.
pub struct Server {
    child: Child,
    /// "http://127.0.0.1:40123/"
    pub address: String,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(["--listen", "127.0.0.1:0"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut address).expect("a line");
        assert!(address.ends_with("/\n"), "{address}: {}", said(&mut child));
        Self { child, address: address.trim().to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// "127.0.0.1:40123"
    pub fn host(&self) -> &str {
        self.address.split('/').nth(2).expect("an authority")
    }

    pub fn connect(&self) -> TcpStream {
        let port = self.host().rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Its own words, when it has ended.
    pub fn end(mut self) -> String {
        let _ = self.child.kill();
        said(&mut self.child)
    }

    /// Closes its standard input and waits for its end.
    pub fn close_stdin(mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().expect("an end").success()
    }

    /// `GET PATH` with these lines of a head.
    pub fn get(&self, path: &str, head: &[&str]) -> Answer {
        self.ask(&format!("GET {path}"), head, "")
    }

    pub fn post(&self, path: &str, head: &[&str], body: &str) -> Answer {
        self.ask(&format!("POST {path}"), head, body)
    }

    /// The Host is our own where `head` has none.
    pub fn ask(&self, what: &str, head: &[&str], body: &str) -> Answer {
        let mut lines: Vec<String> = head.iter().map(|&line| line.to_owned()).collect();
        if !head.iter().any(|line| line.starts_with("Host:")) {
            lines.push(format!("Host: {}", self.host()));
        }
        lines.push("Connection: close".to_owned());
        if !body.is_empty() {
            lines.push(format!("Content-Length: {}", body.len()));
        }
        let mut stream = self.connect();
        let _ = write!(stream, "{what} HTTP/1.1\r\n{}\r\n\r\n{body}", lines.join("\r\n"));
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("an answer");
        Answer(String::from_utf8_lossy(&text).into_owned())
    }

    /// Lines of events, as they come.
    pub fn events(&self) -> impl Iterator<Item = Value> {
        let mut stream = self.connect();
        let _ = write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.host());
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
    }

    /// Resident memory, kB.
    pub fn resident_kb(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a process");
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
    }
}

fn said(child: &mut Child) -> String {
    let _ = child.kill();
    let mut text = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    let _ = child.wait();
    text
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer as it came.
pub struct Answer(pub String);

impl Answer {
    pub fn code(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let (head, _) = self.0.split_once("\r\n\r\n")?;
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(self.body()).unwrap_or_default()
    }
}

/// A token in a file that only its owner reads.
pub fn token(folder: &Path, name: &str) -> (String, PathBuf) {
    use std::os::unix::fs::OpenOptionsExt as _;
    let (token, path) = (format!("{name}-0123456789abcdef"), folder.join(name));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a file");
    writeln!(file, "{token}").expect("a file");
    (token, path)
}
