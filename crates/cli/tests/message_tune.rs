//! `lasthop message tune` as its users meet it, against a server that runs in the test.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use lasthop_messenger::server::{Cost, Server, Settings};
use lasthop_messenger::tuning::Profile;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const LASTHOP: &str = env!("CARGO_BIN_EXE_lasthop");
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/messages.md");
const SLOW: [&str; 4] = ["--set", "fetch.receiver.delay=20ms", "--set", "fetch.receiver.packet=4KiB"];

/// A server with an account, and a folder for everything else.
struct House {
    folder: TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl House {
    fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = Settings { hashing: Cost { memory_kib: 64, passes: 1 }, ..Settings::default() };
        settings.bounds.free_bytes = 0;
        let server = Server::open(&folder.path().join("store"), settings).expect("a server");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let account = server.add_account("ben", &address).expect("an account");
        account.save_new(&folder.path().join("ben.toml")).expect("its file");
        fs::create_dir(folder.path().join("card")).expect("a folder");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            server.serve(listener, &stopped).expect("served");
        });
        Self { folder, stop, thread: Some(thread) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LASTHOP);
        command.args(["message", "tune", "--account", "ben.toml", "--storage", "card"]).args(arguments);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    fn profile(&self) -> Option<Profile> {
        Profile::load(&self.folder.path().join("ben.profile.toml")).expect("a profile that can be read")
    }

    fn left_on_the_card(&self) -> usize {
        fs::read_dir(self.folder.path().join("card")).expect("a folder").count()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("utf-8")
}

/// Every name of a field in `value`.
fn names(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            into.push(name.clone());
            names(value, into);
        }),
        Value::Array(values) => values.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

#[test]
fn a_device_is_explained_its_profile_kept_and_every_field_of_the_json_is_in_the_schema() {
    let house = House::open();
    let output = house.run(&[&["--seconds", "2", "--json", "-"][..], &SLOW].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    for expected in ["receiver's delay", "storage:", "fetch: the limit was", "buffers: ", "packet: ", "kept in"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (schema, mut all) = (fs::read_to_string(SCHEMA).expect("the schema"), Vec::new());
    let tune = &schema[schema.find("lasthop message tune").expect("a section on it")..];
    names(&json, &mut all);
    assert!(all.len() > 100);
    for name in all {
        let documented = tune.match_indices(&name).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            edge(tune[..at].chars().next_back()) && edge(tune[at + name.len()..].chars().next())
        });
        assert!(documented, "{name} is not in schema/messages.md");
    }
    let kept = house.profile().expect("a profile");
    assert!(kept.fetch.receiver.delay.duration().is_zero());
    assert_eq!(json["profile"]["fetch"]["receiver"]["delay"], "0us");
    assert_eq!(house.left_on_the_card(), 0);
}

#[test]
fn a_dry_run_keeps_nothing_and_a_wrong_key_names_the_right_one() {
    let house = House::open();
    let output = house.run(&["--seconds", "2", "--dry-run"]);
    assert!(output.status.success() && text(&output.stdout).contains("nothing was kept"), "{output:?}");
    assert_eq!(house.profile(), None);
    let output = house.run(&["--set", "fetch.reciever.delay=1ms"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("fetch.receiver.delay"), "{}", text(&output.stderr));
    assert_eq!(house.run(&["--seconds", "21"]).status.code(), Some(2));
}

#[test]
fn ctrl_c_ends_it_and_nothing_is_left_behind() {
    let house = House::open();
    let mut child = house.command(&[&["--seconds", "20"][..], &SLOW].concat()).spawn().expect("the binary starts");
    let (mut said, mut stderr) = (String::new(), BufReader::new(child.stderr.take().expect("its stderr")));
    stderr.read_line(&mut said).expect("it says what it does");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    stderr.read_to_string(&mut said).expect("it ends");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("nothing is left behind"), "{said}");
    assert_eq!((house.left_on_the_card(), house.profile()), (0, None));
}
