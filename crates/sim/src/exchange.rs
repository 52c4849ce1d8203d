//! Requests and responses on one TCP connection: polling, an interactive session, a database, an API.
//!
//! ```text
//! client                              server
//!   <------------------------------ SYN           (the connection's own segment, as of every sender here)
//!   request n ------------------------>           one segment, which acknowledges what came; said again after 1 s, 2 s, ..
//!   <------------------------------ ACK           40 ms later, where the server thinks for longer (RFC 9293: delayed ACK)
//!   <----------------------- response n           `think` after the request
//! ```
//!
//! The next request leaves `every` after this one, or when the response is here, whichever is later. Copy i of n begins i/n of
//! `every` later, so that no two stay in phase.
//!
//! The access point sees one connection with payload both directions: a request's sequence numbers follow from how many were made,
//! which every packet says ([`crate::packet::Position`]). Not done: requests of more than a segment; the client's congestion
//! window, which one segment at a time never fills.

use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::{Flow, RequestResponse};

/// First wait for an answer (RFC 6298 section 2); doubled each time.
const PATIENCE: Span = Span::from_secs(1);
const MOST_DOUBLINGS: u32 = 6;
/// How long an acknowledgment waits for data to go with.
const ACK_DELAY: Span = Span::from_millis(40);

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The client makes its request of this number, from 1, perhaps again.
    Ask(u32),
    /// The server acknowledges the newest request.
    Acknowledge,
    /// The server has given its sender so many bytes in all.
    Respond(u64),
}

/// Both ends of one connection.
#[derive(Clone, Debug)]
pub struct Exchange {
    kind: RequestResponse,
    /// Since the connection is open, until the first request.
    phase: Span,
    /// The client: requests made, when the newest was made first, and when the next is to be.
    asked: u32,
    asked_at: Time,
    next: Option<Time>,
    /// When the newest is said again, and how often it was said.
    again: Option<Time>,
    said: u32,
    /// The server: requests heard, responses begun, when it has thought and when it acknowledges.
    heard: u32,
    respond: Option<Time>,
    acknowledge: Option<Time>,
}

impl Exchange {
    /// Before the connection is open.
    pub fn new(kind: RequestResponse, flow: &Flow) -> Self {
        let (copy, of) = flow.copy;
        Self {
            kind,
            phase: kind.every.mul_f64(f64::from(copy) / f64::from(of)),
            asked: 0,
            asked_at: Time::ZERO,
            next: None,
            again: None,
            said: 0,
            heard: 0,
            respond: None,
            acknowledge: None,
        }
    }

    /// The client has the server's SYN.
    pub fn on_open(&mut self, now: Time) {
        if self.asked == 0 && self.next.is_none() {
            self.next = Some(now + self.phase);
        }
    }

    /// So many bytes of responses have come to the client in order.
    pub fn on_received(&mut self, now: Time, bytes: u64) {
        let before = u64::from(self.asked.saturating_sub(1)) * self.kind.response.0;
        if bytes > before {
            self.again = None;
        }
        if self.asked > 0 && self.next.is_none() && bytes >= before + self.kind.response.0 {
            self.next = Some(now.max(self.asked_at + self.kind.every));
        }
    }

    /// The client has the acknowledgment of its request.
    pub fn on_acknowledged(&mut self) {
        self.again = None;
    }

    /// A request has come to the server, by its number; the requests it has heard.
    pub fn on_request(&mut self, now: Time, number: u32) -> u32 {
        if number != self.heard + 1 {
            self.acknowledge = Some(now);
            return self.heard;
        }
        self.heard += 1;
        self.respond = Some(now + self.kind.think);
        self.acknowledge = (self.kind.think > ACK_DELAY).then_some(now + ACK_DELAY);
        self.heard
    }

    /// What is to be done now.
    pub fn poll(&mut self, now: Time) -> Option<Step> {
        let due = |at: &mut Option<Time>| at.take_if(|at| *at <= now).is_some();
        if due(&mut self.respond) {
            self.acknowledge = None;
            return Some(Step::Respond(u64::from(self.heard) * self.kind.response.0));
        }
        if due(&mut self.acknowledge) {
            return Some(Step::Acknowledge);
        }
        if due(&mut self.next) {
            self.asked += 1;
            (self.asked_at, self.said) = (now, 0);
        } else if !due(&mut self.again) {
            return None;
        }
        self.again = Some(now + PATIENCE * (1 << self.said.min(MOST_DOUBLINGS)));
        self.said += 1;
        Some(Step::Ask(self.asked))
    }

    /// When there is something to do without being told anything.
    pub fn next_deadline(&self) -> Option<Time> {
        [self.next, self.again, self.respond, self.acknowledge].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_home::scenario::{Kind, Scenario};

    fn exchange(keys: &str) -> Exchange {
        let text = format!(
            "format = 1\nname = \"t\"\nduration = \"9s\"\n[bridge]\n[[server]]\nname = \"W\"\n[[station]]\nname = \"N\"\n\
             [[flow]]\nname = \"p\"\nfrom = \"W\"\nto = \"N\"\nkind = \"request-response\"\n{keys}\n"
        );
        let home = Scenario::parse(&text, "t.toml", &[]).unwrap();
        let flow = home.flows.last().unwrap();
        let Kind::RequestResponse(kind) = flow.kind else { panic!("no exchange") };
        Exchange::new(kind, flow)
    }

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn a_response_comes_after_the_thinking_and_the_next_request_no_sooner_than_its_time() {
        let mut both = exchange("response = \"5kB\"\nthink = \"20ms\"\nevery = \"300ms\"");
        both.on_open(ms(10));
        assert_eq!((both.poll(ms(10)), both.poll(ms(10))), (Some(Step::Ask(1)), None));
        assert_eq!(both.on_request(ms(20), 1), 1);
        assert_eq!((both.poll(ms(39)), both.poll(ms(40))), (None, Some(Step::Respond(5000))));
        both.on_received(ms(50), 4999);
        assert_eq!(both.next_deadline(), None, "the answer has begun: nothing is said again");
        both.on_received(ms(51), 5000);
        assert_eq!((both.next_deadline(), both.poll(ms(310))), (Some(ms(310)), Some(Step::Ask(2))));
        both.on_request(ms(320), 2);
        assert_eq!(both.poll(ms(340)), Some(Step::Respond(10_000)));
        both.on_received(ms(900), 10_000);
        assert_eq!(both.poll(ms(900)), Some(Step::Ask(3)), "a response that took longer than `every`");
    }

    #[test]
    fn what_takes_long_is_acknowledged_first_and_what_was_lost_is_said_again() {
        let mut both = exchange("think = \"100ms\"\nevery = \"3s\"");
        both.on_open(ms(0));
        assert_eq!(both.poll(ms(0)), Some(Step::Ask(1)));
        assert_eq!(both.poll(ms(1000)), Some(Step::Ask(1)), "nobody answered");
        both.on_request(ms(1010), 1);
        assert_eq!((both.poll(ms(1050)), both.poll(ms(1050))), (Some(Step::Acknowledge), None));
        assert_eq!(both.on_request(ms(1060), 1), 1, "it came twice");
        assert_eq!(both.poll(ms(1060)), Some(Step::Acknowledge));
        both.on_acknowledged();
        assert_eq!((both.next_deadline(), both.poll(ms(1110))), (Some(ms(1110)), Some(Step::Respond(10_000))));
    }

    #[test]
    fn copies_do_not_ask_in_phase() {
        let mut last = exchange("count = 4\nevery = \"400ms\"");
        last.on_open(ms(5));
        assert_eq!(last.next_deadline(), Some(ms(305)));
    }
}
