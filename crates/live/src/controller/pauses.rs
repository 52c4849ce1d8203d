//! What somebody has paused: for all or for a device, until a time or until it is resumed.

use lasthop_core::ap::{LeftAlone, StationId, Whose};
use lasthop_core::units::{Span, Time};
use lasthop_status::PauseStatus;
use lasthop_status::command::{Answer, LONGEST_PAUSE, MOST_PAUSES, Request, What};

use super::Core;
use super::devices::Device;
use crate::updates::Updates;

#[derive(Clone, Debug, PartialEq)]
struct Pause {
    what: What,
    device: Option<Device>,
    until: Option<Time>,
}

impl Pause {
    fn is_of(&self, what: What, device: Option<&Device>) -> bool {
        self.what == what && self.device.as_ref() == device
    }

    fn line(&self, verb: &str) -> String {
        let whose = self.device.as_ref().map_or_else(String::new, |device| format!(" for {device}"));
        format!("{}{whose} {verb}", self.what.name())
    }
}

#[derive(Debug, Default)]
pub(super) struct Pauses(Vec<Pause>);

impl Pauses {
    /// Takes out what is over.
    fn expire(&mut self, now: Time) -> Vec<Pause> {
        self.0.extract_if(.., |pause| pause.until.is_some_and(|until| now >= until)).collect()
    }

    /// True when it was not paused before.
    fn pause(&mut self, pause: Pause) -> Result<bool, String> {
        if let Some(before) = self.0.iter_mut().find(|before| before.is_of(pause.what, pause.device.as_ref())) {
            *before = pause;
            return Ok(false);
        }
        if self.0.len() >= MOST_PAUSES {
            return Err(format!("{MOST_PAUSES} things are paused already; resume some of them"));
        }
        self.0.push(pause);
        Ok(true)
    }

    /// True when it was paused.
    fn resume(&mut self, what: What, device: Option<&Device>) -> bool {
        let before = self.0.len();
        self.0.retain(|pause| !pause.is_of(what, device));
        self.0.len() < before
    }

    pub(super) fn has(&self, what: What) -> bool {
        self.0.iter().any(|pause| pause.what == what && pause.device.is_none())
    }

    fn whose(&self, what: What, station: impl Fn(&Device) -> StationId) -> Whose {
        let of = self.0.iter().filter(|pause| pause.what == what).filter_map(|pause| pause.device.as_ref());
        Whose { all: self.has(what), stations: of.map(station).collect() }
    }

    pub(super) fn status(&self, now: Time) -> Vec<PauseStatus> {
        let status = |pause: &Pause| PauseStatus {
            what: pause.what,
            device: pause.device.as_ref().map(ToString::to_string),
            left_s: pause.until.map(|until| until.since(now).as_secs_f64()),
        };
        self.0.iter().map(status).collect()
    }
}

fn span(for_s: Option<f64>) -> Result<Option<Span>, String> {
    match for_s {
        Some(s) if s > 0.0 && s <= LONGEST_PAUSE => Ok(Some(Span::from_secs_f64(s))),
        Some(s) => Err(format!("{s} s is no time to pause for; write more than 0 and at most {LONGEST_PAUSE}")),
        None => Ok(None),
    }
}

impl Core {
    /// Does what a line of the command socket asks for; what to answer.
    pub(super) fn obey(&mut self, now: Time, line: &[u8]) -> Vec<u8> {
        let answer = match serde_json::from_slice(line) {
            Ok(request) => self.carry_out(now, request),
            Err(error) => Err(format!("this is no request: {error}")),
        };
        let answer = match answer {
            Ok(()) => Answer::Done(self.pauses.status(now)),
            Err(why) => Answer::Refused(why),
        };
        serde_json::to_vec(&answer).unwrap_or_default()
    }

    fn carry_out(&mut self, now: Time, request: Request) -> Result<(), String> {
        let (what, device) = match &request {
            Request::Pause { what, device, .. } | Request::Resume { what, device } => (*what, device.as_deref()),
        };
        if !what.is_of_devices() && device.is_some() {
            let what = what.name();
            return Err(format!("{what} is paused for all or for nobody; windows can be paused for one device"));
        }
        let device = device.map(|device| self.devices.find(device, &self.stations)).transpose()?;
        match request {
            Request::Pause { for_s, .. } => {
                let span = span(for_s)?;
                let pause = Pause { what, device, until: span.map(|span| now + span) };
                let until =
                    span.map_or_else(|| ", until it is resumed".to_owned(), |span| format!(" for {}", span.rounded()));
                let line = pause.line(&format!("is paused{until}: somebody has asked for it"));
                self.pauses.pause(pause)?;
                self.journal.say(now, line);
            }
            Request::Resume { .. } => {
                let pause = Pause { what, device, until: None };
                if self.pauses.resume(what, pause.device.as_ref()) {
                    self.journal.say(now, pause.line("goes on: somebody has asked for it"));
                }
            }
        }
        self.apply_pauses(now);
        Ok(())
    }

    /// What is paused no longer goes on; devices may have become known by their Ethernet addresses.
    pub(super) fn follow_pauses(&mut self, now: Time) {
        if self.pauses.0.is_empty() {
            return;
        }
        for pause in self.pauses.expire(now) {
            self.journal.say(now, pause.line("goes on: its pause is over"));
        }
        self.apply_pauses(now);
    }

    pub(super) fn apply_pauses(&mut self, now: Time) {
        let station = |device: &Device| device.station(&self.stations);
        self.ap.set_left_alone(LeftAlone {
            windows: self.pauses.whose(What::Windows, station),
            datagrams: self.pauses.whose(What::Udp, station),
        });
        self.levers.set_paused(now, self.pauses.has(What::Levers));
        self.levers.set_held(now, self.pauses.has(What::Trials));
        let on = !self.pauses.has(What::Updates);
        if self.updates.is_paused() == on {
            match on {
                true => self.updates = Updates::start(&self.config, &self.program),
                false => self.updates.pause(&self.program),
            }
            self.ap.set_window_updates(self.updates.status().on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(what: What, device: Option<&str>, until: Option<u64>) -> Pause {
        let device = device.map(|device| device.parse().unwrap());
        Pause { what, device, until: until.map(|s| Time::ZERO + Span::from_secs(s)) }
    }

    #[test]
    fn a_pause_ends_by_itself_or_is_resumed_and_is_of_one_device_or_of_all() {
        let mut pauses = Pauses::default();
        let laptop = "02:00:00:00:01:00";
        assert_eq!(pauses.pause(pause(What::Windows, Some(laptop), Some(60))), Ok(true));
        assert_eq!(pauses.pause(pause(What::Windows, Some(laptop), Some(10))), Ok(false), "the new time counts");
        assert_eq!(pauses.pause(pause(What::Udp, None, None)), Ok(true));
        let station = |device: &Device| device.station(&super::super::Stations::unknown());
        let windows = pauses.whose(What::Windows, station);
        assert!(!windows.all && windows.stations.len() == 1);
        assert!(pauses.whose(What::Udp, station).all && !pauses.has(What::Windows));
        assert_eq!(pauses.expire(Time::ZERO + Span::from_secs(9)), vec![]);
        assert_eq!(pauses.expire(Time::ZERO + Span::from_secs(10)).len(), 1);
        assert!(!pauses.resume(What::Udp, Some(&laptop.parse().unwrap())) && pauses.resume(What::Udp, None));
        assert!(pauses.0.is_empty());
    }

    #[test]
    fn pauses_are_bounded_in_number_and_time() {
        let mut pauses = Pauses::default();
        for n in 0..MOST_PAUSES {
            let device = format!("02:00:00:00:{:02x}:{:02x}", n / 256, n % 256);
            pauses.pause(pause(What::Windows, Some(&device), None)).unwrap();
        }
        assert!(pauses.pause(pause(What::Windows, None, None)).is_err());
        for s in [0.0, -1.0, f64::NAN, LONGEST_PAUSE + 1.0] {
            assert!(span(Some(s)).is_err(), "{s}");
        }
        assert_eq!(span(Some(0.5)), Ok(Some(Span::from_millis(500))));
    }
}
