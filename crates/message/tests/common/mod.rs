//! A house with a server of messages, for tests of several commands.

// Not every test uses all of it.
#![allow(dead_code)]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lasthop_messenger::server::{Cost, Server, ServerError, Settings};
use lasthop_messenger::store::StoreError;
use tempfile::TempDir;

/// A server with accounts for anna and ben, and a folder for everything else.
pub struct House {
    pub folder: TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl House {
    pub fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = Settings { hashing: Cost { memory_kib: 64, passes: 1 }, ..Settings::default() };
        settings.bounds.free_bytes = 0;
        settings.messages_per_minute = 100_000;
        settings.connections = 100;
        settings.connections_per_address = 100;
        let server = open(&folder.path().join("store"), &settings);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        for name in ["anna", "ben"] {
            let account = server.add_account(name, &address.to_string()).expect("an account");
            account.save_new(&folder.path().join(format!("{name}.toml"))).expect("its file");
        }
        fs::create_dir(folder.path().join("in")).expect("a folder");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            server.serve(listener, &stopped).expect("served");
        });
        Self { folder, stop, thread: Some(thread) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `lasthop-message ...` in the house's folder.
    pub fn command(&self, account: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop-message"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("LASTHOP_ACCOUNT", format!("{account}.toml")).env("XDG_STATE_HOME", self.path("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, account: &str, arguments: &[&str]) -> Output {
        self.command(account, arguments).output().expect("the binary starts")
    }

    /// Files in a folder, sorted; hidden ones, too.
    pub fn files(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("utf-8")).collect();
        names.sort();
        names
    }

    /// Ends the server.
    pub fn shut(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.shut();
    }
}

/// Opens a store. A child that another test is just starting holds copies of this process's locks until it is another
/// program.
fn open(folder: &Path, settings: &Settings) -> Server {
    for _ in 0..100 {
        match Server::open(folder, settings.clone()) {
            Err(ServerError::Store(StoreError::InUse(_))) => thread::sleep(Duration::from_millis(20)),
            outcome => return outcome.expect("a server"),
        }
    }
    panic!("the store stays in use");
}
