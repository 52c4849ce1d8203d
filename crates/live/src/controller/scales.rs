//! Window scales of connections that are older than the controller: asked from conntrack, a few per interval.

use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};

use super::table::Table;
use crate::conntrack::Conntrack;
use crate::program::Program;
use crate::status::ConntrackStatus;

/// Questions in one interval; each is answered in some tens of microseconds.
const AT_ONCE: usize = 16;
/// Questions about one connection. It may be tracked only after its first packet passed the hook.
const ATTEMPTS: u8 = 2;
/// Between two questions about one connection.
const PAUSE: Span = Span::from_secs(5);

pub(super) struct Scales {
    conntrack: Option<Conntrack>,
    status: ConntrackStatus,
}

impl Scales {
    pub(super) fn new() -> Self {
        match Conntrack::open() {
            Ok(conntrack) => Self { conntrack: Some(conntrack), status: ConntrackStatus::default() },
            Err(error) => {
                let unavailable = Some(error.to_string());
                Self { conntrack: None, status: ConntrackStatus { unavailable, ..ConntrackStatus::default() } }
            }
        }
    }

    /// Asks about connections whose scales are unknown, and tells the fast path.
    pub(super) fn ask(&mut self, now: Time, table: &mut Table, program: &Program) {
        let Some(conntrack) = &mut self.conntrack else { return };
        let unknown = table.carrying().filter(|(_, e)| e.asked < ATTEMPTS && e.ask_at <= now && e.lacks_scale());
        for (key, entry) in unknown.take(AT_ONCE) {
            entry.asked += 1;
            entry.ask_at = now + PAUSE;
            self.status.asked += 1;
            match conntrack.scales(&key) {
                Ok(Some(scales)) => {
                    let told = program
                        .set_scale(&key, Direction::ToStation, scales.station)
                        .and_then(|()| program.set_scale(&key, Direction::ToRemote, scales.remote));
                    self.status.learned += u64::from(told.is_ok());
                    entry.asked = ATTEMPTS;
                }
                Ok(None) => self.status.unknown += u64::from(entry.asked == ATTEMPTS),
                Err(error) => {
                    // It will not get better: such connections are left alone until their scale is found (`core::ap::obedience`).
                    self.status.unavailable = Some(error.to_string());
                    self.conntrack = None;
                    return;
                }
            }
        }
    }

    pub(super) fn status(&self) -> ConntrackStatus {
        self.status.clone()
    }
}
