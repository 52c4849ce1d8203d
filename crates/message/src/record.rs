//! Recording by `arecord`, as a child process that ends when this one does.

use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::signals::Stop;
use lasthop_messenger::client::sound;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

const PROGRAM: &str = "arecord";
/// Longest recording, in seconds.
const LONGEST: u32 = 3600;
/// Voice: 16 bits, 16 kHz, mono, 32 kB a second.
const FORMAT: [&str; 8] = ["-t", "wav", "-f", "S16_LE", "-r", "16000", "-c", "1"];
/// Bytes before the first sample.
const HEADER: u64 = 44;
/// How long it may take to end.
const FAREWELL: Duration = Duration::from_secs(3);
/// How often it is looked whether the recording shall end.
const LOOK: Duration = Duration::from_millis(50);

/// Records into `path`, which is new, until `seconds` are over, Enter is pressed or a signal comes.
pub fn record(path: &Path, seconds: Option<u32>, device: Option<&str>, stop: &Stop) -> Outcome {
    check_for_devices(device)?;
    let mut command = Command::new(PROGRAM);
    command.arg("-q").args(FORMAT).args(["-d", &seconds.unwrap_or(LONGEST).to_string()]);
    command.args(device.iter().flat_map(|device| ["-D", device])).arg(path);
    let mut child = spawn(&mut command).map_err(not_started)?;
    let ends = if seconds.is_none() && io::stdin().is_terminal() { "Enter or Ctrl-C ends" } else { "Ctrl-C ends" };
    eprintln!("recording; {ends} it and sends");
    let enter = on_enter(seconds.is_none());
    let status = loop {
        if let Some(status) = child.try_wait().context("cannot wait for arecord")? {
            break status;
        }
        if stop.has_come() || enter.load(Ordering::Relaxed) {
            break end(&mut child)?;
        }
        thread::sleep(LOOK);
    };
    let said = child.stderr.take().map(io::read_to_string).and_then(Result::ok).unwrap_or_default();
    // Whether anything was recorded is for the file to say: the header of one whose program died says nothing.
    let is_empty = std::fs::metadata(path).map_or(0, |file| file.len()) <= HEADER;
    if is_empty {
        let _ = std::fs::remove_file(path);
        return Err(Failure::work(anyhow!("arecord recorded nothing ({status}): {}", last_line(&said))));
    }
    let length = sound::length(path).map_or("something".to_owned(), |length| format!("{:.1} s", length.as_secs_f64()));
    match stop.take() {
        // Ctrl-C says that enough was said; any other signal that there is no time to send it.
        Some(signal) if signal != Signal::INT.as_raw() => {
            Err(Failure::Paused(signal, format!("recorded {length}, which is kept: {}", path.display())))
        }
        _ => {
            eprintln!("recorded {length}");
            Ok(())
        }
    }
}

fn spawn(command: &mut Command) -> io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Of its own, so that Ctrl-C reaches it once, from here.
    command.process_group(0);
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::INT))?)) };
    command.spawn()
}

fn not_started(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::request(anyhow!(
            "recording needs the program arecord: install the package alsa-utils, or send a file instead"
        )),
        _ => Failure::work(anyhow::Error::new(error).context("cannot start arecord")),
    }
}

/// Lets it write what it has and end; less politely when it does not.
fn end(child: &mut Child) -> Outcome<ExitStatus> {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            let _ = kill_process(pid, signal);
        }
        let since = Instant::now();
        while since.elapsed() < FAREWELL {
            if let Some(status) = child.try_wait().context("cannot wait for arecord")? {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
    }
    Err(Failure::work(anyhow!("arecord does not end")))
}

/// Becomes true when a line comes from the terminal.
fn on_enter(wanted: bool) -> Arc<AtomicBool> {
    let pressed = Arc::new(AtomicBool::new(false));
    if wanted && io::stdin().is_terminal() {
        let pressed = Arc::clone(&pressed);
        // Ends with the process at the latest: nothing else reads from the terminal.
        thread::spawn(move || {
            let mut line = String::new();
            if io::stdin().read_line(&mut line).is_ok() {
                pressed.store(true, Ordering::Relaxed);
            }
        });
    }
    pressed
}

/// A device that was named is for `arecord` to judge.
fn check_for_devices(device: Option<&str>) -> Outcome {
    let cards = Command::new(PROGRAM).arg("-l").stdin(Stdio::null()).output().map_err(not_started)?;
    if device.is_some() || lists_a_card(&cards) {
        return Ok(());
    }
    Err(Failure::request(anyhow!(
        "there is no input device: plug in a microphone (`arecord -l` lists what there is), name another source by --device \
         (`arecord -L`), or send a file instead"
    )))
}

fn lists_a_card(listing: &Output) -> bool {
    String::from_utf8_lossy(&listing.stdout).lines().any(|line| line.starts_with("card "))
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or("it said nothing")
}
