//! Window scales of connections that are older than the controller: asked from conntrack, a few per interval, and again.
//!
//! A connection that conntrack does not know is asked about again after [`PAUSE`], and after twice as long each time, up to
//! [`LONGEST_PAUSE`], as long as it carries payload: it may be tracked only after its first packet passed the hook, and tables of
//! connections are restored and loaded while it lives. Whoever waits for longest is asked about first, at most [`AT_ONCE`] in an
//! interval, however many there are. Meanwhile the deciding half tries to find the scale from what is observed
//! (`core::ap::obedience`).

use std::collections::BTreeSet;

use lasthop_core::packet::{Direction, FlowId};
use lasthop_core::units::{Span, Time};

use super::table::Table;
use crate::conntrack::{Conntrack, Scales as Answer};
use crate::program::Program;
use lasthop_status::ConntrackStatus;

/// Questions in one interval; each is answered in some tens of microseconds.
const AT_ONCE: usize = 16;
/// Between the first two questions about one connection.
const PAUSE: Span = Span::from_secs(5);
/// Between two at most.
const LONGEST_PAUSE: Span = Span::from_secs(320);
/// Conntrack that could not be asked at all is tried again after this: its module may be loaded by then.
const AGAIN: Span = Span::from_secs(60);

/// Who is to be asked about, and when.
#[derive(Default)]
struct Turns {
    /// When it is its turn, who, and how long it waited for that.
    all: BTreeSet<(Time, FlowId, Span)>,
}

impl Turns {
    /// The next whose turn has come, and how long to wait if there is no answer.
    fn next(&mut self, now: Time) -> Option<(FlowId, Span)> {
        let &(at, id, waited) = self.all.first().filter(|(at, ..)| *at <= now)?;
        self.all.remove(&(at, id, waited));
        Some((id, (waited * 2).clamp(PAUSE, LONGEST_PAUSE)))
    }

    fn put(&mut self, now: Time, id: FlowId, wait: Span) {
        self.all.insert((now + wait, id, wait));
    }
}

pub(super) struct Scales {
    conntrack: Option<Conntrack>,
    /// When it is opened again, where it could not be asked.
    opens: Time,
    turns: Turns,
    status: ConntrackStatus,
}

impl Scales {
    pub(super) fn new(now: Time) -> Self {
        let status = ConntrackStatus::default();
        let mut scales = Self { conntrack: None, opens: now, turns: Turns::default(), status };
        scales.open(now);
        scales
    }

    /// Asks about connections whose scales are unknown, and tells the fast path.
    pub(super) fn ask(&mut self, now: Time, table: &mut Table, program: &Program) {
        let new = table.take_unscaled();
        new.into_iter().for_each(|id| self.turns.put(now, id, Span::ZERO));
        let mut asked = 0;
        while asked < AT_ONCE
            && let Some((id, pause)) = self.turns.next(now)
        {
            // It is gone, or it sleeps, or its scale was found.
            let Some((key, _)) = table.carried(id).filter(|(_, carrying)| carrying.lacks_scale()) else { continue };
            asked += 1;
            let answer = self.open(now).map(|conntrack| conntrack.scales(key));
            let Some(answer) = answer else { return self.turns.put(now, id, pause) };
            self.status.asked += 1;
            match answer {
                Ok(Some(Answer { station, remote })) => {
                    self.status.unavailable = None;
                    let told = program
                        .set_scale(key, Direction::ToStation, station)
                        .and_then(|()| program.set_scale(key, Direction::ToRemote, remote));
                    self.status.learned += u64::from(told.is_ok());
                }
                Ok(None) => {
                    // The second time it is no matter of a packet.
                    self.status.unknown += u64::from(pause == PAUSE * 2);
                    self.turns.put(now, id, pause);
                }
                Err(error) => {
                    self.fail(now, &error);
                    return self.turns.put(now, id, pause);
                }
            }
        }
    }

    /// Where it cannot be had now, none.
    fn open(&mut self, now: Time) -> Option<&mut Conntrack> {
        if self.conntrack.is_none() && now >= self.opens {
            match Conntrack::open() {
                Ok(conntrack) => self.conntrack = Some(conntrack),
                Err(error) => self.fail(now, &error),
            }
        }
        self.conntrack.as_mut()
    }

    fn fail(&mut self, now: Time, error: &std::io::Error) {
        self.status.unavailable = Some(error.to_string());
        (self.conntrack, self.opens) = (None, now + AGAIN);
    }

    pub(super) fn status(&self) -> ConntrackStatus {
        self.status.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_without_an_answer_is_asked_about_again_and_ever_more_seldom() {
        let (mut turns, mut now) = (Turns::default(), Time::ZERO + Span::from_secs(1000));
        turns.put(now, FlowId(1), Span::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let (id, pause) = turns.next(now).expect("it is its turn");
            assert_eq!(turns.next(now), None, "once");
            turns.put(now, id, pause);
            now += pause - Span::from_millis(1);
            assert_eq!(turns.next(now), None, "not before");
            now += Span::from_millis(1);
            pauses.push(pause.as_secs_f64());
        }
        assert_eq!(pauses, [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 320.0, 320.0]);
    }

    #[test]
    fn whoever_waits_for_longest_is_asked_about_first() {
        let (mut turns, begun) = (Turns::default(), Time::ZERO + Span::from_secs(1000));
        turns.put(begun, FlowId(1), PAUSE);
        let later = begun + PAUSE + Span::from_secs(1);
        turns.put(later, FlowId(0), Span::ZERO);
        assert_eq!([turns.next(later), turns.next(later)].map(|next| next.map(|(id, _)| id.0)), [Some(1), Some(0)]);
    }
}
