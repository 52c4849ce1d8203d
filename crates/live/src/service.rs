//! What a service manager is told: that control is at work, what it does in one line, and that decisions go on.
//!
//! The protocol of sd_notify(3): datagrams of `KEY=value` lines to the Unix socket that `NOTIFY_SOCKET` names, a path or (`@..`) an
//! abstract name. systemd sets it for `Type=notify`; where nobody did, nobody is told and nothing changes.
//!
//! | message | when |
//! |---|---|
//! | `READY=1` | the interfaces that are there are hooked, or it waits for some; again after a reload |
//! | `STATUS=..` | with that, and whenever the line is another one |
//! | `WATCHDOG=1` | after a decision was applied, four times in `WATCHDOG_USEC`: no decisions, no sign of life |
//! | `RELOADING=1`, `MONOTONIC_USEC=..` | the configuration is read again |
//! | `STOPPING=1` | it ends, or another controller has taken over |
//!
//! Nothing here waits: what the manager does not take now is sent again with the next sign of life. The socket is made before rights
//! are given up; sending needs none.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use lasthop_core::units::{Span, Time};

/// Signs of life in the time after which the manager takes it for dead: one that is late or lost is no death.
const BEATS: u64 = 4;
/// Between two looks whether the line that says what it does is another one.
const LINE_EVERY: Span = Span::from_secs(2);
/// Messages that wait for a manager that takes none.
const MOST_WAITING: usize = 16;
/// Longest line, characters.
const LONGEST_LINE: usize = 512;

/// The service manager, or nobody.
#[derive(Debug, Default)]
pub struct Service {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// Between two signs of life; none where nobody waits for them.
    every: Option<Span>,
    beaten: Option<Time>,
    looked: Option<Time>,
    line: String,
    waiting: Vec<String>,
}

impl Service {
    /// Whom the environment names: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    ///
    /// # Errors
    /// When the socket that is named cannot be one, or no socket can be made.
    pub fn from_environment() -> io::Result<Self> {
        let Ok(name) = env::var("NOTIFY_SOCKET") else { return Ok(Self::default()) };
        let is_ours = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| is_ours).and_then(|us| us.parse().ok());
        Self::at(&name, watchdog.filter(|us| *us > 0).map(Span::from_micros))
    }

    /// The one at the socket `name`, which takes this process for dead after `watchdog` without a sign of life.
    ///
    /// # Errors
    /// As [`Self::from_environment`].
    pub fn at(name: &str, watchdog: Option<Span>) -> io::Result<Self> {
        let address = match name.as_bytes().first() {
            Some(b'/') => SocketAddr::from_pathname(name)?,
            Some(b'@') => SocketAddr::from_abstract_name(&name.as_bytes()[1..])?,
            _ => return Err(io::Error::other(format!("NOTIFY_SOCKET={name} is no path and no abstract name"))),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let every = watchdog.map(|watchdog| Span::from_nanos(watchdog.as_nanos() / BEATS));
        Ok(Self { to: Some((socket, address)), every, ..Self::default() })
    }

    /// Everything that can be hooked is; `line` says what it does.
    pub fn ready(&mut self, line: &str) {
        self.line = one_line(line);
        let message = format!("READY=1\nSTATUS={}", self.line);
        self.say(message);
    }

    /// The configuration is read again; [`Self::ready`] follows.
    pub fn reloading(&mut self, now: Time) {
        self.say(format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_nanos() / 1_000));
    }

    /// It ends.
    pub fn stopping(&mut self) {
        self.say("STOPPING=1".to_owned());
    }

    /// After each decision that was applied: a sign of life where it is time for one, and what it does, as `line` tells, where that
    /// changed.
    pub fn on_decision(&mut self, now: Time, line: impl FnOnce() -> String) {
        if self.to.is_none() {
            return;
        }
        self.send();
        if self.every.is_some_and(|every| self.beaten.is_none_or(|beaten| now.since(beaten) >= every)) {
            self.beaten = Some(now);
            self.say("WATCHDOG=1".to_owned());
        }
        if self.looked.is_none_or(|looked| now.since(looked) >= LINE_EVERY) {
            self.looked = Some(now);
            let line = one_line(&line());
            if line != self.line {
                self.say(format!("STATUS={line}"));
                self.line = line;
            }
        }
    }

    fn say(&mut self, message: String) {
        if self.to.is_some() && self.waiting.len() < MOST_WAITING {
            self.waiting.push(message);
            self.send();
        }
    }

    /// Sends what waits, in order, as far as it is taken; what nobody is there for is forgotten.
    fn send(&mut self) {
        let Some((socket, to)) = &self.to else { return };
        let taken = self.waiting.iter().take_while(|message| {
            let sent = socket.send_to_addr(message.as_bytes(), to);
            !sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        });
        let taken = taken.count();
        self.waiting.drain(..taken);
    }
}

/// Without what ends a line, and no longer than anybody reads.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_LINE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    /// What has come, in order.
    fn heard(manager: &UnixDatagram) -> Vec<String> {
        manager.set_nonblocking(true).unwrap();
        let mut room = [0; 4096];
        std::iter::from_fn(|| manager.recv(&mut room).ok().map(|n| String::from_utf8_lossy(&room[..n]).into_owned()))
            .collect()
    }

    fn told_by(mut service: Service, manager: &UnixDatagram) {
        service.ready("controlling lan0\nin one line");
        assert_eq!(heard(manager), ["READY=1\nSTATUS=controlling lan0 in one line"]);
        service.on_decision(at(10), || "controlling lan0 in one line".to_owned());
        service.on_decision(at(11), || unreachable!("not so often"));
        assert_eq!(heard(manager), ["WATCHDOG=1"], "a line that is the same is not said again");
        service.on_decision(at(12), || "another".to_owned());
        assert_eq!(heard(manager), ["STATUS=another"], "a quarter of the time is not over");
        service.on_decision(at(13), String::new);
        assert_eq!(heard(manager), ["WATCHDOG=1"]);
        service.reloading(at(14));
        service.ready("another");
        service.stopping();
        let said = heard(manager);
        assert_eq!(said, ["RELOADING=1\nMONOTONIC_USEC=14000000", "READY=1\nSTATUS=another", "STOPPING=1"]);
    }

    #[test]
    fn a_manager_is_told_by_a_path_or_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let watchdog = Some(Span::from_secs(12));
        let manager = UnixDatagram::bind(&path).unwrap();
        told_by(Service::at(path.to_str().unwrap(), watchdog).unwrap(), &manager);
        let name = format!("lasthop-test-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        told_by(Service::at(&format!("@{name}"), watchdog).unwrap(), &manager);
    }

    #[test]
    fn without_a_watchdog_there_is_no_sign_of_life_and_without_a_manager_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let mut service = Service::at(path.to_str().unwrap(), None).unwrap();
        service.on_decision(at(1), || "at work".to_owned());
        assert_eq!(heard(&manager), ["STATUS=at work"]);
        let mut nobody = Service::default();
        nobody.ready("at work");
        nobody.on_decision(at(1), || unreachable!("nobody asks"));
        nobody.stopping();
        assert!(nobody.waiting.is_empty());
        assert!(Service::at("vsock:2:1234", None).is_err() && Service::at("", None).is_err());
    }

    #[test]
    fn what_a_busy_manager_does_not_take_comes_later_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let mut service = Service::at(path.to_str().unwrap(), None).unwrap();
        let mut filler = 0;
        while service.waiting.is_empty() {
            assert!(filler < 10_000, "its queue is bounded");
            service.say(format!("X={filler}"));
            filler += 1;
        }
        service.stopping();
        let mut all = heard(&manager);
        service.on_decision(at(1), || "later".to_owned());
        all.extend(heard(&manager));
        let mut expected: Vec<_> = (0..filler).map(|n| format!("X={n}")).collect();
        expected.extend(["STOPPING=1".to_owned(), "STATUS=later".to_owned()]);
        assert_eq!(all, expected);
        drop(manager);
        service.stopping();
        assert!(service.waiting.is_empty(), "nobody is there");
    }
}
