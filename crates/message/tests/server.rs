//! `lasthop message serve` as its owner and its clients meet it, kill -9 included.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lasthop_messenger::account::Account;
use lasthop_messenger::channel::Incoming;
use lasthop_messenger::client::{ClientError, Session};
use lasthop_messenger::protocol::{MessageId, Refusal, Reply, Request, Sha256, TransferId};
use lasthop_messenger::server::{Order, Ordered, Server, Settings, order};
use lasthop_messenger::transfer::Hash;
use lasthop_messenger::tuning::End;

const MESSENGER: &str = env!("CARGO_BIN_EXE_lasthop-message");
const IDLE: Duration = Duration::from_secs(30);
const KILLS: usize = 100;

/// A number that is hard to foresee, and the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

fn body(number: u64) -> Vec<u8> {
    let mut random = Random((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.below(1);
    let length = [0, 1, 3_000, 400_000, 1_000_000][random.below(5) as usize];
    let piece: Vec<u8> = (0..997).map(|_| random.below(256) as u8).collect();
    piece.into_iter().cycle().take(length).collect()
}

fn sha256(bytes: &[u8]) -> Sha256 {
    let mut hash = Hash::new();
    hash.add(bytes);
    hash.finish()
}

fn serve(store: &Path, address: &str) -> Child {
    let mut command = Command::new(MESSENGER);
    command.args(["serve", "--keep-free", "1MB", "--per-minute", "100000", "--listen", address, "--store"]);
    command.arg(store).stderr(Stdio::piped()).spawn().expect("the server starts")
}

/// Waits until it serves; what it says after that is read and thrown away.
fn wait_until_it_serves(child: &mut Child) -> bool {
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while said.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if line.contains("serving on") {
            drain(said);
            return true;
        }
        line.clear();
    }
    false
}

fn drain(mut said: BufReader<ChildStderr>) {
    thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
}

fn account(store: &Path, name: &str, address: &str) -> Account {
    let what = Order::Add { name: name.into(), address: address.into() };
    let Ordered::Added(account) = order(store, &what).expect("the store can be used") else { panic!("not added") };
    account
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// What the server does: slowly enough to be killed in the middle.
fn slowly() -> End {
    let (delay, buffer, pacing) = ("1ms".parse().unwrap(), "64KiB".parse().ok(), "20MB/s".parse().ok());
    End { packet: "16KiB".parse().unwrap(), delay, buffer, pacing }
}

/// Sends a message as far as it goes in one connection. `resumed` counts those that went on.
fn send(account: &Account, number: u64, bytes: &[u8], resumed: &mut u64) -> Result<MessageId, ClientError> {
    let mut session = Session::open(account, None, IDLE)?;
    let offer = Request::Offer {
        transfer: TransferId(u128::from(number).to_be_bytes()),
        to: "ben".into(),
        name: format!("{number}"),
        bytes: bytes.len() as u64,
        receiver: slowly(),
    };
    let offset = match session.ask(&offer)? {
        Reply::Kept { message } => return Ok(message),
        Reply::Continue { offset } => offset as usize,
        other => panic!("{other:?}"),
    };
    *resumed += u64::from(offset > 0);
    let mut at = offset;
    for packet in bytes[offset..].chunks(16 << 10) {
        let fill = |buffer: &mut [u8]| {
            buffer[..packet.len()].copy_from_slice(packet);
            Ok::<_, ()>(packet.len())
        };
        let sent = session.channel().send_packet(at as u64, packet.len(), fill).unwrap().map(drop);
        sent.map_err(|error| session.lost(error))?;
        at += packet.len();
    }
    match session.ask(&Request::Finish { sha256: sha256(bytes) })? {
        Reply::Kept { message } => Ok(message),
        other => panic!("{other:?}"),
    }
}

/// What ben has got.
#[derive(Default)]
struct Got {
    /// Whole messages, by the server's number; and what was there of others when the connection was lost.
    whole: BTreeMap<u64, u64>,
    parts: BTreeMap<u64, Vec<u8>>,
    /// Those of which the server said that they are deleted.
    done: BTreeSet<u64>,
    resumed: u64,
}

/// Fetches what is there, as far as it goes in one connection.
fn fetch(account: &Account, got: &mut Got) -> Result<(), ClientError> {
    let mut session = Session::open(account, None, IDLE)?;
    let Reply::Listing { messages, .. } = session.ask(&Request::List { after: None })? else { panic!("no listing") };
    for listed in messages {
        let (id, number) = (listed.message.0, listed.name.parse::<u64>().unwrap());
        assert!(!got.done.contains(&id), "message {id} was received and is there again");
        let whole = body(number);
        assert_eq!(listed.bytes, whole.len() as u64);
        if !got.whole.contains_key(&id) {
            fetch_one(&mut session, listed.message, got, &whole)?;
            assert!(got.whole.values().all(|other| *other != number), "{number} came as two messages");
            got.whole.insert(id, number);
        }
        match session.ask(&Request::Received { message: listed.message }) {
            Ok(Reply::Done) | Err(ClientError::Refused(Refusal::NoSuchMessage)) => got.done.insert(id),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return Err(error),
        };
    }
    Ok(())
}

fn fetch_one(session: &mut Session, message: MessageId, got: &mut Got, whole: &[u8]) -> Result<(), ClientError> {
    let mut part = got.parts.remove(&message.0).unwrap_or_default();
    got.resumed += u64::from(!part.is_empty());
    let outcome = receive(session, message, &mut part);
    if outcome.is_err() {
        got.parts.insert(message.0, part);
        return outcome.map(drop);
    }
    assert!(part == whole && outcome? == sha256(whole), "message {message} is not what was sent");
    Ok(())
}

fn receive(session: &mut Session, message: MessageId, part: &mut Vec<u8>) -> Result<Sha256, ClientError> {
    let fetch = Request::Fetch { message, offset: part.len() as u64, sender: slowly() };
    let Reply::Start { .. } = session.ask(&fetch)? else { panic!("no start") };
    loop {
        match session.channel().receive::<Reply>() {
            Ok(Incoming::Packet { offset, bytes }) => {
                assert_eq!(offset, part.len() as u64);
                part.extend_from_slice(bytes);
            }
            Ok(Incoming::Control(Reply::End { sha256, .. })) => return Ok(sha256),
            Ok(Incoming::Control(other)) => panic!("{other:?}"),
            Err(error) => return Err(session.failed(error)),
        }
    }
}

/// Of an error that a killed server may cause: anything else is a mistake.
fn is_a_lost_connection(error: &ClientError) -> bool {
    let is_expected = matches!(
        error,
        ClientError::Lost(_)
            | ClientError::Unreachable { .. }
            | ClientError::Refused(Refusal::Busy { .. } | Refusal::Stopping)
    );
    assert!(is_expected, "{error}");
    is_expected
}

/// A server killed at random points, and two clients that do not mind.
#[test]
fn a_server_killed_a_hundred_times_loses_nothing_and_delivers_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (store, address) = (folder.path().join("box"), free_address());
    let (anna, ben) = (account(&store, "anna", &address), account(&store, "ben", &address));
    let (over, all_sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));

    let acknowledged = Arc::new(Mutex::new(BTreeMap::new()));
    let sender = {
        let (over, acknowledged) = (Arc::clone(&over), Arc::clone(&acknowledged));
        thread::spawn(move || {
            let mut resumed = 0;
            for number in 0.. {
                let bytes = body(number);
                let id = loop {
                    match send(&anna, number, &bytes, &mut resumed) {
                        Ok(id) => break id,
                        Err(error) => assert!(is_a_lost_connection(&error)),
                    }
                    thread::yield_now();
                };
                let before = acknowledged.lock().unwrap().insert(id.0, number);
                assert_eq!(before, None, "two messages have the number {id}");
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            resumed
        })
    };
    let recipient = {
        let all_sent = Arc::clone(&all_sent);
        thread::spawn(move || {
            let mut got = Got::default();
            loop {
                let is_last = all_sent.load(Ordering::Relaxed);
                if let Err(error) = fetch(&ben, &mut got) {
                    assert!(is_a_lost_connection(&error));
                    thread::yield_now();
                } else if is_last {
                    return got;
                }
            }
        })
    };

    let mut random = Random(6);
    for kill in 0..KILLS {
        let mut server = serve(&store, &address);
        // Some are killed while they start.
        if kill % 4 == 0 || wait_until_it_serves(&mut server) {
            thread::sleep(Duration::from_micros(random.below(150_000)));
        }
        server.kill().unwrap();
        server.wait().unwrap();
    }
    let mut server = serve(&store, &address);
    assert!(wait_until_it_serves(&mut server), "it starts after all that");
    over.store(true, Ordering::Relaxed);
    let resumed = sender.join();
    all_sent.store(true, Ordering::Relaxed);
    let outcome = recipient.join().and_then(|got| Ok((resumed?, got)));
    server.kill().unwrap();
    server.wait().unwrap();
    let (resumed, got) = outcome.expect("both clients got through");

    let acknowledged = acknowledged.lock().unwrap();
    assert_eq!(got.whole, *acknowledged, "what was acknowledged is what was delivered");
    let (messages, downloads) = (acknowledged.len(), got.resumed);
    println!("{messages} messages, {resumed} uploads and {downloads} downloads resumed, {KILLS} kills");
    assert!(resumed > 0 && downloads > 0, "no transfer was under way when the server was killed");
    let last = Server::open(&store, Settings::default()).unwrap();
    assert_eq!((last.swept().messages, last.swept().damaged.len()), (0, 0));
    let bodies: Vec<PathBuf> = std::fs::read_dir(store.join("bodies")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(bodies.len() as u64, last.swept().uploads, "nothing is left of what was delivered: {bodies:?}");
}

fn lasthop(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(MESSENGER).current_dir(folder).arg("serve").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn an_owner_makes_accounts_before_and_while_it_serves_and_ctrl_c_ends_it_in_order() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (address, store) = (free_address(), folder.path().join("box"));
    let run = |arguments: &[&str]| lasthop(folder.path(), arguments);
    let (code, _, said) = run(&["--store", "box", "--add", "anna", "--address", &address]);
    assert!(code == Some(0) && said.contains("anna.toml") && said.contains("next:"), "{said}");
    let (code, _, said) = run(&["--store", "boxx", "--remove", "anna"]);
    assert!(code == Some(2) && said.contains("no store") && !folder.path().join("boxx").exists(), "{said}");
    let file = folder.path().join("anna.toml");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, _, said) = run(&["--store", "box", "--add", "anna"]);
    assert!(code == Some(2) && said.contains("is there already"), "{said}");

    let mut server = serve(&store, &address);
    assert!(wait_until_it_serves(&mut server));
    let (code, _, said) = run(&["--store", "box", "--add", "anna", "--output", "other.toml"]);
    assert!(code == Some(2) && said.contains("--remove anna") && !folder.path().join("other.toml").exists(), "{said}");
    let (code, _, said) = run(&["--store", "box", "--add", "ben", "--output", "nowhere/ben.toml"]);
    assert!(code == Some(1) && said.contains("no account was made"), "{said}");
    assert_eq!(run(&["--store", "box", "--add", "ben", "--address", &address]).0, Some(0));
    let ben = Account::load(&folder.path().join("ben.toml")).unwrap();
    let anna = Account::load(&file).unwrap();
    send(&anna, 3, &body(3), &mut 0).unwrap();
    let (code, listed, _) = run(&["--store", "box", "--accounts"]);
    let waiting: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!((code, waiting), (Some(0), vec![vec!["anna", "0"], vec!["ben", "1"]]));
    let mut got = Got::default();
    fetch(&ben, &mut got).unwrap();
    assert_eq!(got.done, BTreeSet::from([1]));
    assert_eq!(run(&["--store", "box", "--remove", "anna"]).0, Some(0));
    assert!(matches!(send(&anna, 4, b"x", &mut 0), Err(ClientError::Refused(Refusal::WrongSecret))));
    let (code, _, said) = run(&["--store", "box", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(1) && said.contains("in use by another process"), "{said}");

    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(!store.join("control").exists());

    let index = store.join("index.redb");
    std::fs::OpenOptions::new().write(true).open(&index).unwrap().set_len(5000).unwrap();
    let (code, _, said) = run(&["--store", "box"]);
    assert!(code == Some(1) && said.contains("from a backup") && !said.contains("panicked"), "{said}");
}

/// The most memory that a process has had, in bytes.
fn most_memory(process: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn every_connection_at_full_stretch_stays_below_64_mib_in_all() {
    let folder = tempfile::tempdir().unwrap();
    let (store, address) = (folder.path().join("box"), free_address());
    let anna = account(&store, "anna", &address);
    let mut server = Command::new(MESSENGER)
        .args(["serve", "--connections-per-address", "24", "--listen", &address, "--store"])
        .arg(&store)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(wait_until_it_serves(&mut server));
    let sessions: Vec<Session> = (0..24).map(|_| Session::open(&anna, None, IDLE).unwrap()).collect();
    let largest = End { packet: "1MiB".parse().unwrap(), ..End::default() };
    let stretch = |mut session: Session| {
        session.say(&Request::Sink { receiver: largest }).unwrap();
        for packet in 0..3 {
            let fill = |_: &mut [u8]| Ok::<_, ()>(1 << 20);
            session.channel().send_packet(packet << 20, 1 << 20, fill).unwrap().unwrap();
        }
        let taken = session.ask(&Request::Finish { sha256: [0; 32] }).unwrap();
        assert!(matches!(taken, Reply::Taken { bytes: 3_145_728, .. }), "{taken:?}");
        session.say(&Request::Source { millis: 10_000, bytes: 3 << 20, sender: largest }).unwrap();
        while let Incoming::Packet { .. } = session.channel().receive::<Reply>().unwrap() {}
        session
    };
    let open: Vec<Session> = thread::scope(|scope| {
        let threads: Vec<_> = sessions.into_iter().map(|session| scope.spawn(|| stretch(session))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let most = most_memory(&server);
    println!("{} connections: {:.1} MiB", open.len(), most as f64 / 1_048_576.0);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(most < 64 << 20, "{most} bytes");
}

/// Modes of all that is below `folder`, without those of links.
fn modes(folder: &Path) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let about = entry.metadata().unwrap();
            found.insert(entry.path(), about.permissions().mode() & 0o7777);
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn what_server_and_clients_make_is_its_owners_alone_whatever_the_umask_is() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let run = |command: &str| {
        let command = format!("umask 0; exec {command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &command, MESSENGER, &address]).current_dir(folder.path());
        shell.env("XDG_STATE_HOME", folder.path().join("state"));
        shell
    };
    let add = run("\"$0\" serve --store box --add anna --address \"$1\"").output().unwrap();
    assert!(add.status.success(), "{}", String::from_utf8_lossy(&add.stderr));
    let mut server =
        run("\"$0\" serve --store box --listen \"$1\"").stderr(Stdio::piped()).spawn().expect("the server starts");
    assert!(wait_until_it_serves(&mut server));
    let send = |to: &str| {
        let command = format!("\"$0\" send --account anna.toml --to {to} - < anna.toml");
        run(&command).output().unwrap()
    };
    assert!(send("anna").status.success());
    // It stays in the state's folder, to be sent again.
    assert!(!send("nobody").status.success());
    let found = modes(folder.path());
    for (path, mode) in &found {
        assert_eq!(*mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    let is_there = |part: &str| found.keys().any(|path| path.to_string_lossy().contains(part));
    for part in ["box/control", "box/bodies/1", "box/identity.pem", "state/lasthop/messages/unsent/stdin", "anna.toml"]
    {
        assert!(is_there(part), "{part} in {found:?}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn an_account_file_that_others_can_read_is_refused_with_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anna.toml");
    account(&folder.path().join("box"), "anna", "127.0.0.1:9").save_new(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let list = |account: &str| {
        let command = format!("\"$0\" fetch --list --state state --account {account}");
        let output =
            Command::new("bash").args(["-c", &command, MESSENGER]).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = list("anna.toml");
    assert!(code == Some(2) && said.contains("(mode 0644): chmod 600 anna.toml"), "{said}");
    // From where secrets are kept, as a password manager, it may come through a pipe.
    let (code, said) = list("<(cat anna.toml)");
    assert!(code == Some(1) && said.contains("cannot reach the server"), "{said}");
}
