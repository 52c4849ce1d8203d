//! `lasthop message send` and `fetch` as their users meet them, against a server that runs in the test.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use lasthop_messenger::account::Account;
use lasthop_messenger::protocol::Secret;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

mod common;
use common::House;

impl House {
    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("written");
        succeeds(&self.run("anna", &["send", "--to", "ben", name]));
    }

    /// Bytes of the largest file in a folder.
    fn largest(&self, folder: &str) -> u64 {
        self.files(folder).iter().map(|name| length(&self.path(folder).join(name))).max().unwrap_or(0)
    }

    fn no_transfer_is_open(&self) {
        let state = self.files("state/lasthop/messages");
        assert!(state.iter().all(|name| name == "unsent"), "{state:?}");
        assert!(self.files("state/lasthop/messages/unsent").is_empty());
        assert!(self.files("in").iter().all(|name| !name.ends_with(".part")), "{:?}", self.files("in"));
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}: {}{}", output.status, stdout(output), stderr(output));
}

/// It fails with this code and says all of this.
#[track_caller]
fn fails(output: &Output, code: i32, says: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(says.iter().all(|words| text.contains(words)), "{says:?} in {text}");
}

/// Bytes and whole numbers that no chance repeats.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 24
    }

    fn bytes(&mut self, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|_| self.next() as u8).collect()
    }
}

/// Lets it run for `millis`, then kills it. What it said, and whether it had come to its end before.
fn kill_after(mut child: Child, millis: u64) -> (Output, bool) {
    thread::sleep(Duration::from_millis(millis));
    let ended = child.try_wait().expect("a status").is_some();
    let _ = child.kill();
    (child.wait_with_output().expect("its output"), ended)
}

#[test]
fn what_the_help_says_sends_lists_and_fetches_a_message() {
    let house = House::open();
    let wav = wav(8_000, 12_000);
    fs::write(house.path("hello.wav"), &wav).expect("written");
    let sent = house.run("nobody", &["send", "--account", "anna.toml", "--to", "ben", "hello.wav"]);
    succeeds(&sent);
    assert!(stdout(&sent).starts_with("hello.wav (1.5 s of sound, 24.0 kB) is in ben's mailbox: message 1; "));
    let listed = house.run("ben", &["fetch", "--list"]);
    succeeds(&listed);
    let row: Vec<String> =
        stdout(&listed).lines().last().expect("a row").split_whitespace().map(str::to_owned).collect();
    assert_eq!(row[..5], ["1", "anna", "hello.wav", "24.0", "kB"]);
    let fetched = house.run("ben", &["fetch"]);
    succeeds(&fetched);
    assert!(stdout(&fetched).contains("hello (2).wav  24.0 kB from anna, "), "{}", stdout(&fetched));
    assert_eq!(fs::read(house.path("hello (2).wav")).expect("the file"), wav, "hello.wav was there");
    assert_eq!(stdout(&house.run("ben", &["fetch"])), "no messages for ben\n");
    house.put("unwanted", b"?");
    assert_eq!(stdout(&house.run("ben", &["fetch", "--discard", "2", "2"])), "deleted unread: 2\n");
    assert_eq!(stdout(&house.run("ben", &["fetch", "--list"])), "no messages for ben\n");
    house.no_transfer_is_open();
}

fn wav(rate: u32, samples: u32) -> Vec<u8> {
    let (bytes, format) = (2 * samples, [16_u32.to_le_bytes(), [1, 0, 1, 0], rate.to_le_bytes()].concat());
    let per_second = [&(2 * rate).to_le_bytes()[..], &[2, 0, 16, 0]].concat();
    let head = [b"RIFF", &(36 + bytes).to_le_bytes()[..], b"WAVEfmt ", &format, &per_second, b"data"].concat();
    [head, bytes.to_le_bytes().to_vec(), vec![7; bytes as usize]].concat()
}

#[test]
fn a_sender_killed_a_hundred_times_loses_nothing_and_sends_nothing_twice() {
    let house = House::open();
    let (mut numbers, mut kills, mut bodies) = (Numbers(1), 0, Vec::new());
    let slowly = ["--set", "send.sender.packet=8KiB", "--set", "send.sender.delay=500us"];
    while kills < 100 {
        let (name, body) = (format!("m{}", bodies.len()), numbers.bytes(2_000_000));
        fs::write(house.path(&name), &body).expect("written");
        loop {
            let arguments = [&["send", "--to", "ben", &name], &slowly[..]].concat();
            let child = house.command("anna", &arguments).spawn().expect("it starts");
            let (output, _) = kill_after(child, numbers.next() % 200);
            // Who has read that it is there does not type the command again.
            if stdout(&output).contains("mailbox") {
                break;
            }
            assert_eq!(output.status.code(), None, "{}", stderr(&output));
            kills += 1;
        }
        bodies.push(body);
    }
    succeeds(&house.run("ben", &["fetch", "--into", "in"]));
    assert_eq!(house.files("in").len(), bodies.len());
    for (number, body) in bodies.iter().enumerate() {
        assert!(fs::read(house.path(&format!("in/m{number}"))).expect("the file") == *body, "m{number}");
    }
}

#[test]
fn a_recipient_killed_a_hundred_times_gets_every_message_once() {
    let house = House::open();
    let mut numbers = Numbers(2);
    let (mut kills, mut bodies) = (0, Vec::new());
    let slowly = ["--set", "fetch.sender.packet=8KiB", "--set", "fetch.sender.delay=500us"];
    while kills < 100 {
        for _ in 0..4 {
            bodies.push(numbers.bytes(300_000));
            house.put(&format!("m{}", bodies.len() - 1), &bodies[bodies.len() - 1]);
        }
        loop {
            let arguments = [&["fetch", "--into", "in"], &slowly[..]].concat();
            let child = house.command("ben", &arguments).spawn().expect("it starts");
            let (output, ended) = kill_after(child, numbers.next() % 120);
            if ended {
                succeeds(&output);
                break;
            }
            kills += 1;
        }
    }
    house.no_transfer_is_open();
    assert_eq!(house.files("in").len(), bodies.len(), "{:?}", house.files("in"));
    for (number, body) in bodies.iter().enumerate() {
        assert!(fs::read(house.path(&format!("in/m{number}"))).expect("the file") == *body, "m{number}");
    }
}

#[test]
fn ctrl_c_ends_a_transfer_in_order_and_the_same_command_goes_on() {
    let house = House::open();
    let body = Numbers(3).bytes(3_000_000);
    fs::write(house.path("long"), &body).expect("written");
    let slowly = |end: &str| ["packet=8KiB", "delay=20ms"].map(|set| format!("--set={end}.{set}"));
    for (account, arguments, end, folder) in [
        ("anna", &["send", "--to", "ben", "long"][..], "send.sender", "store/bodies"),
        ("ben", &["fetch", "--into", "in"], "fetch.sender", "in"),
    ] {
        // All of it would take seven seconds.
        let child = house.command(account, arguments).args(slowly(end)).spawn().expect("it starts");
        while house.largest(folder) < 200_000 {
            thread::sleep(Duration::from_millis(20));
        }
        let pid = Pid::from_raw(child.id() as i32).expect("a pid");
        kill_process(pid, Signal::INT).expect("a signal");
        let output = child.wait_with_output().expect("its output");
        fails(&output, 130, &["stopped; ", "the same command goes on"]);
        succeeds(&house.run(account, &[arguments, &["--json", "how.json"]].concat()));
        let written = read_json(&house.path("how.json"));
        let message = &written["messages"][0];
        let (resumed, bytes) = (message["resumed_bytes"].as_u64(), message["bytes"].as_u64());
        assert!(resumed > Some(0) && resumed < bytes && bytes == Some(3_000_000), "{message}");
    }
    assert!(fs::read(house.path("in/long")).expect("the file") == body);
    house.no_transfer_is_open();
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("the file")).expect("JSON")
}

#[test]
fn json_says_what_happened_and_where_the_time_went() {
    let house = House::open();
    house.put("a", &[7; 100_000]);
    let listed = house.run("ben", &["fetch", "--list", "--json", "-"]);
    let listing: Value = serde_json::from_slice(&listed.stdout).expect("stdout is JSON alone");
    assert_eq!(listing["messages"][0]["outcome"], "listed");
    let sets = ["fetch.receiver.packet=1KiB", "fetch.receiver.delay=1ms", "fetch.sender.pacing=10MB/s"];
    let sets = sets.map(|set| ["--set", set]).concat();
    succeeds(&house.run("ben", &[&["fetch", "--json", "how.json", "--into", "in"], &sets[..]].concat()));
    let how = read_json(&house.path("how.json"));
    assert_eq!((&how["format"], &how["command"], &how["account"]), (&1.into(), &"fetch".into(), &"ben".into()));
    assert_eq!(how["tuning"]["receiver"]["delay"], "1ms");
    assert_eq!(how["tuning"]["sender"]["pacing"], "10MB/s");
    let message = &how["messages"][0];
    assert_eq!((&message["name"], &message["from"], &message["bytes"]), (&"a".into(), &"anna".into(), &100_000.into()));
    assert_eq!((&message["outcome"], &message["resumed_bytes"]), (&"fetched".into(), &0.into()));
    let seconds = |key: &str| message[key].as_f64().unwrap_or_else(|| panic!("{key} in {message}"));
    let parts = ["connecting_s", "storage_s", "sleeping_s", "network_s", "rereading_s", "settling_s"];
    assert!(parts.map(seconds).iter().sum::<f64>() <= seconds("took_s"), "{message}");
    assert!(seconds("sleeping_s") >= 0.097, "97 sleeps of a millisecond between 98 packets: {message}");
    assert!(message["tcp"]["srtt_ms"].as_f64() > Some(0.0), "{message}");
}

#[test]
fn errors_say_what_happened_and_what_to_do() {
    let mut house = House::open();
    fs::write(house.path("a"), "a").expect("written");
    let send = ["send", "--to", "ben", "a"];
    let account = Account::load(&house.path("anna.toml")).expect("the account");
    let pin = "00".repeat(32).parse().expect("a pin");
    let not_there = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a free port");
    for (name, account) in [
        ("pin", Account { pin, ..account.clone() }),
        ("secret", Account { secret: Secret("wrong".into()), ..account.clone() }),
        ("server", Account { server: "no-such-host.invalid".into(), ..account.clone() }),
        ("port", Account { server: not_there.to_string(), ..account }),
    ] {
        account.save_new(&house.path(&format!("{name}.toml"))).expect("written");
    }
    fails(&house.run("pin", &send), 1, &["not the server of this account", "nothing was sent", "new account file"]);
    fails(&house.run("secret", &send), 1, &["does not know this account", "account file"]);
    fails(&house.run("server", &send), 1, &["cannot find the server no-such-host.invalid"]);
    fails(&house.run("port", &send), 1, &["cannot reach the server", "is it running", "goes on where"]);
    fails(&house.run("anna", &["send", "--to", "carla", "a"]), 1, &["nobody is called `carla`"]);
    fails(&house.run("anna", &["send", "--to", "ben", "b"]), 2, &["there is no file b"]);
    fails(&house.run("anna", &["send", "--to", "ben", "in"]), 2, &["in is no plain file"]);
    let pipe = std::process::Command::new("mkfifo").arg(house.path("pipe")).status().expect("mkfifo");
    assert!(pipe.success());
    fails(&house.run("anna", &["send", "--to", "ben", "pipe"]), 2, &["pipe is no plain file"]);
    fails(&house.run("anna", &[&send[..], &["--seconds", "3"]].concat()), 2, &["cannot be used with"]);
    fails(&house.run("anna", &["fetch", "77"]), 2, &["no message 77", "--list"]);
    fails(&house.run("anna", &["fetch", "--into", "nowhere"]), 2, &["nowhere is no folder"]);
    let set = ["--set", "fetch.reciever.delay=1ms"];
    fails(&house.run("anna", &[&send[..], &set].concat()), 2, &["did you mean `fetch.receiver.delay`?"]);
    fails(&house.run("anna", &[&send[..], &["--profile", "b"]].concat()), 2, &["there is no profile b"]);
    house.shut();
    fails(&house.run("anna", &["fetch"]), 1, &["cannot reach the server", "the same command goes on"]);
    fails(&house.run("anna", &["fetch", "--list"]), 1, &["cannot reach the server", "same command again later"]);
    house.no_transfer_is_open_but_the_upload();
}

impl House {
    /// The message that found nobody, of each of two accounts.
    fn no_transfer_is_open_but_the_upload(&self) {
        let state = self.files("state/lasthop/messages");
        assert!(state.iter().all(|name| name.starts_with("upload-")) && !state.is_empty(), "{state:?}");
    }
}

#[test]
fn what_comes_from_stdin_is_a_message() {
    let house = House::open();
    let body = Numbers(4).bytes(100_000);
    let mut command = house.command("anna", &["send", "--to", "ben", "-", "--name", "photos.tar"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("its stdin"), &body).expect("written");
    succeeds(&child.wait_with_output().expect("its output"));
    succeeds(&house.run("ben", &["fetch", "--into", "in"]));
    assert!(fs::read(house.path("in/photos.tar")).expect("the file") == body);
    house.no_transfer_is_open();
}

#[test]
fn ctrl_c_while_stdin_still_comes_sends_nothing_and_keeps_nothing() {
    let house = House::open();
    let mut command = house.command("anna", &["send", "--to", "ben", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("its stdin");
    std::io::Write::write_all(&mut stdin, b"half").expect("written");
    while house.files("state/lasthop/messages/unsent").is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_raw(child.id() as i32).expect("a pid"), Signal::INT).expect("a signal");
    fails(&child.wait_with_output().expect("its output"), 130, &["stopped"]);
    drop(stdin);
    house.no_transfer_is_open();
    assert!(String::from_utf8_lossy(&house.run("ben", &["fetch", "--list"]).stdout).contains("no messages"));
}

#[test]
fn a_recording_is_sent_and_one_that_could_not_be_is_kept() {
    if !["/usr/bin/arecord", "/bin/arecord"].iter().any(|path| Path::new(path).exists()) {
        eprintln!("SKIPPED: arecord (alsa-utils) is not installed");
        return;
    }
    let mut house = House::open();
    let record = ["send", "--to", "ben", "--record", "--seconds", "1", "--device", "null"];
    succeeds(&house.run("anna", &record));
    house.no_transfer_is_open();
    succeeds(&house.run("ben", &["fetch", "--into", "in"]));
    let [name] = &house.files("in")[..] else { panic!("{:?}", house.files("in")) };
    assert!(name.starts_with("recording-") && name.ends_with(".wav"), "{name}");
    assert_eq!(fs::metadata(house.path("in").join(name)).expect("the file").len(), 44 + 32_000);
    house.shut();
    let failed = house.run("anna", &record);
    let [kept] = &house.files("state/lasthop/messages/unsent")[..] else { panic!("{}", stderr(&failed)) };
    fails(&failed, 1, &["not sent yet, and kept: ", kept, "lasthop message send --account anna.toml --to ben"]);
}

/// A folder with an `arecord` that has a card, records a second at once and then waits for the end.
fn microphone(house: &House) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir(house.path("bin")).expect("a folder");
    fs::write(house.path("bin/second.wav"), wav(16_000, 16_000)).expect("written");
    let program = house.path("bin/arecord");
    let script = "#!/bin/sh\n[ \"$2\" ] || { echo 'card 0: test'; exit; }\nfor last; do :; done\n\
                  cp \"$(dirname \"$0\")/second.wav\" \"$last\"\nexec sleep 600\n";
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    house.path("bin")
}

#[test]
fn ctrl_c_ends_a_recording_and_sends_it_and_a_kill_leaves_it_where_it_is() {
    let house = House::open();
    let path = format!("{}:/usr/bin:/bin", microphone(&house).display());
    let unsent = "state/lasthop/messages/unsent";
    for (signal, code) in [(Signal::INT, Some(0)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let mut command = house.command("anna", &["send", "--to", "ben", "--record"]);
        let child = command.env("PATH", &path).spawn().expect("it starts");
        let is_recorded =
            || house.files(unsent).iter().any(|name| length(&house.path(unsent).join(name)) == 44 + 32_000);
        while !is_recorded() {
            thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_raw(child.id() as i32).expect("a pid"), signal).expect("a signal");
        let output = child.wait_with_output().expect("its output");
        assert_eq!(output.status.code(), code, "{}", stderr(&output));
        assert_eq!(stdout(&output).contains("(1.0 s of sound, 32.0 kB) is in ben's mailbox"), code == Some(0));
        assert_eq!(house.files(unsent).len(), usize::from(code != Some(0)), "{signal:?}");
        house.files(unsent).iter().for_each(|name| fs::remove_file(house.path(unsent).join(name)).expect("removed"));
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[test]
fn without_a_program_to_record_with_it_is_said_what_to_install() {
    let house = House::open();
    let mut command = house.command("anna", &["send", "--to", "ben", "--record"]);
    let output = command.env("PATH", house.path("in")).output().expect("the binary starts");
    fails(&output, 2, &["install the package alsa-utils"]);
    house.no_transfer_is_open();
}

#[test]
fn a_full_disk_is_said_and_the_message_stays_at_the_server() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: mounting a small file system needs root");
        return;
    }
    let house = House::open();
    let body = Numbers(5).bytes(3_000_000);
    house.put("long", &body);
    let disk = Mounted::small(&house.path("in"));
    let output = house.run("ben", &["fetch", "--into", "in"]);
    fails(&output, 1, &["no space left for long", "are kept in ", "stays at the server", "Make room"]);
    assert_eq!(house.files("in").len(), 1, "the part");
    succeeds(&house.run("ben", &["fetch", "--into", "."]));
    assert!(fs::read(house.path("long (2)")).expect("the file") == body);
    drop(disk);
}

/// A file system of 1 MB, until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn small(at: &Path) -> Self {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "lasthop-test"]).arg(at).status();
        assert!(mounted.expect("mount starts").success());
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_long_message_takes_little_memory() {
    let house = House::open();
    fs::File::create(house.path("long")).and_then(|file| file.set_len(200 << 20)).expect("a sparse file");
    for (account, arguments) in [("anna", &["send", "--to", "ben", "long"][..]), ("ben", &["fetch", "--into", "in"])] {
        let child = house.command(account, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let (code, memory_kib) = wait(&child.expect("it starts"));
        assert_eq!(code, 0, "{account}");
        assert!(memory_kib < 64 << 10, "{account}: {memory_kib} KiB");
    }
    assert_eq!(fs::metadata(house.path("in/long")).expect("the file").len(), 200 << 20);
}

/// Exit status and largest resident memory of a child, in KiB.
fn wait(child: &Child) -> (i32, i64) {
    let (mut status, pid) = (0, child.id() as libc::pid_t);
    // SAFETY: all-zero bytes are a value of this struct of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values that live until the call returns; the child is ours and not waited for yet.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid);
    (status, usage.ru_maxrss)
}
