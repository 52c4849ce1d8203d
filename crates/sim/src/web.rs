//! A page as a browser loads it: up to `connections` TCP connections to one server, each of which carries one object at a
//! time (HTTP/1.1, kept alive), objects asked for in the order in which they become known.
//!
//! ```text
//! client                            server
//!   SYN ------------------------------>           a packet of 52 bytes; said again after 1 s, 2 s, ..
//!   <------------------------- SYN, ACK           (the connection's own segment, as of every sender here)
//!   ACK ------------------------------>
//!   request -------------------------->           440 bytes: a browser's headers and 40 of TCP; said again likewise
//!   <-------------------------- object            250 bytes of headers before its own
//! ```
//!
//! A request says up to which byte of the stream the server is to send: said twice, it means the same. The page is
//! loaded when its last object has arrived; then its connections are closed (nothing more is asked for).
//! `response time = last byte of the last object - first SYN   [s]`
//!
//! Not done: DNS, TLS, what a browser computes, HTTP/2, requests as part of the client's own TCP stream (they neither wait for
//! a window nor share acknowledgments with the data).

use std::borrow::Cow;
use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::{Flow, Ftp, Kind, Scenario, Web};
use lasthop_home::traffic::page::{Object, objects};

/// A connection of a page, which is a flow of its own behind those of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The page's flow.
    pub page: usize,
    /// Which of its connections.
    pub connection: usize,
}

/// The connections of a home's pages.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// The flow of the first of them; the others follow.
    first: usize,
    slots: Vec<Slot>,
}

impl Slots {
    /// Puts a flow for each connection of its pages behind the flows of `home`.
    pub fn expand(home: &mut Cow<'_, Scenario>) -> Self {
        let first = home.flows.len();
        let mut slots = Vec::new();
        for page in 0..first {
            let Kind::Web(web) = home.flows[page].kind else { continue };
            for connection in 0..web.connections as usize {
                let flow = home.flows[page].clone();
                let name = format!("{}/{}", flow.name, connection + 1);
                let kind = Kind::Ftp(Ftp { bytes: None, tcp: web.tcp });
                home.to_mut().flows.push(Flow { name, kind, ..flow });
                slots.push(Slot { page, connection });
            }
        }
        Self { first, slots }
    }

    /// What a flow is a connection of.
    pub fn slot(&self, flow: usize) -> Option<Slot> {
        self.slots.get(flow.checked_sub(self.first)?).copied()
    }

    /// The flow of a connection.
    pub fn flow(&self, slot: Slot) -> Option<usize> {
        self.slots.iter().position(|known| *known == slot).map(|at| self.first + at)
    }

    /// The first page, if there is one.
    pub fn first_page(&self) -> Option<usize> {
        self.slots.first().map(|slot| slot.page)
    }
}

/// IP bytes of the packet that opens a connection.
pub const SYN_BYTES: u16 = 52;
/// IP bytes of a request.
pub const REQUEST_BYTES: u16 = 440;
/// Bytes of the headers of a response.
const HEADERS: u64 = 250;
/// First wait for an answer (RFC 6298 section 2); doubled each time.
const PATIENCE: Span = Span::from_secs(1);
const MOST_DOUBLINGS: u32 = 6;

/// What the client says on one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which connection.
    pub connection: usize,
    /// Bytes of the stream that the server is to have sent; 0: it is to open the connection.
    pub up_to: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Opening,
    Idle,
    /// Carries this object.
    Busy(usize),
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    state: State,
    /// Bytes asked for, all objects of this connection together.
    asked: u64,
    /// When the last question is said again, and how often it was.
    again: Option<Time>,
    said: u32,
}

/// The client of one page.
#[derive(Debug)]
pub struct Loader {
    objects: Vec<Object>,
    connections: Vec<Connection>,
    /// Objects that are known and not asked for, in order.
    known: VecDeque<usize>,
    left: usize,
    to_say: VecDeque<Ask>,
    started: Option<Time>,
    loaded: Option<Time>,
}

impl Loader {
    /// Before it starts.
    pub fn new(web: &Web) -> Self {
        let objects = objects(web.page);
        let closed = Connection { state: State::Closed, asked: 0, again: None, said: 0 };
        Self {
            left: objects.len(),
            connections: vec![closed; web.connections as usize],
            known: VecDeque::from([0]),
            objects,
            to_say: VecDeque::new(),
            started: None,
            loaded: None,
        }
    }

    /// The user asks for the page.
    pub fn start(&mut self, now: Time) {
        self.started = Some(now);
        self.assign();
    }

    /// The server's SYN arrived.
    pub fn on_open(&mut self, connection: usize) {
        let own = &mut self.connections[connection];
        if own.state == State::Opening {
            (own.state, own.again) = (State::Idle, None);
            self.assign();
        }
    }

    /// So many bytes of a connection's stream have arrived in order.
    pub fn on_received(&mut self, now: Time, connection: usize, bytes: u64) {
        let own = &mut self.connections[connection];
        let State::Busy(object) = own.state else { return };
        // Something of the answer is here: the request was heard.
        if bytes + u64::from(self.objects[object].bytes) + HEADERS > own.asked {
            own.again = None;
        }
        if bytes < own.asked {
            return;
        }
        own.state = State::Idle;
        self.left -= 1;
        if self.left == 0 {
            self.loaded = Some(now);
            return;
        }
        let named = (1..self.objects.len()).filter(|i| self.objects[*i].named_by == object);
        self.known.extend(named);
        self.assign();
    }

    /// What the client says now.
    pub fn poll(&mut self, now: Time) -> Option<Ask> {
        if self.loaded.is_some() {
            return None;
        }
        let ask = self.to_say.pop_front().or_else(|| {
            let due = |own: &Connection| own.again.is_some_and(|at| at <= now);
            let connection = self.connections.iter().position(due)?;
            Some(self.question(connection))
        })?;
        let own = &mut self.connections[ask.connection];
        own.again = Some(now + PATIENCE * (1 << own.said.min(MOST_DOUBLINGS)));
        own.said += 1;
        Some(ask)
    }

    /// When something is to be said again.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.loaded.is_some() {
            return None;
        }
        self.connections.iter().filter_map(|own| own.again).min()
    }

    /// Response time, ms; none before the page is loaded.
    pub fn load_ms(&self) -> Option<f64> {
        Some(self.loaded?.since(self.started?).as_millis_f64())
    }

    /// When the page was loaded.
    pub const fn loaded(&self) -> Option<Time> {
        self.loaded
    }

    fn question(&self, connection: usize) -> Ask {
        let own = &self.connections[connection];
        Ask { connection, up_to: if own.state == State::Opening { 0 } else { own.asked } }
    }

    /// Known objects go to idle connections; what is left over opens more, one for each object.
    fn assign(&mut self) {
        for connection in 0..self.connections.len() {
            let own = &mut self.connections[connection];
            if own.state == State::Idle
                && let Some(object) = self.known.pop_front()
            {
                own.state = State::Busy(object);
                own.asked += u64::from(self.objects[object].bytes) + HEADERS;
                own.said = 0;
                self.to_say.push_back(Ask { connection, up_to: own.asked });
            }
        }
        let opening = self.connections.iter().filter(|own| own.state == State::Opening).count();
        let wanted = self.known.len().saturating_sub(opening);
        let closed = self.connections.iter_mut().enumerate().filter(|(_, own)| own.state == State::Closed);
        for (connection, own) in closed.take(wanted) {
            (own.state, own.said) = (State::Opening, 0);
            self.to_say.push_back(Ask { connection, up_to: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(connections: u32) -> Web {
        let text = format!(
            "format = 1\nname = \"t\"\nduration = \"9s\"\n[bridge]\n[[server]]\nname = \"W\"\n[[station]]\nname = \"N\"\n\
             [[flow]]\nname = \"p\"\nfrom = \"W\"\nto = \"N\"\nkind = \"web\"\npage = \"google-news\"\nconnections = {connections}\n"
        );
        let home = Scenario::parse(&text, "t.toml", &[]).unwrap();
        let Kind::Web(web) = home.flows[0].kind else { panic!("no web") };
        web
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    fn asks(loader: &mut Loader, now: Time) -> Vec<(usize, u64)> {
        std::iter::from_fn(|| loader.poll(now)).map(|ask| (ask.connection, ask.up_to)).collect()
    }

    #[test]
    fn the_document_comes_first_and_alone_then_as_many_connections_as_may_be() {
        let mut loader = Loader::new(&web(3));
        loader.start(ms(0));
        assert_eq!(asks(&mut loader, ms(0)), [(0, 0)]);
        loader.on_open(0);
        let document = 15_872 + HEADERS;
        assert_eq!(asks(&mut loader, ms(40)), [(0, document)]);
        loader.on_received(ms(50), 0, 1000);
        assert_eq!(asks(&mut loader, ms(50)), []);
        // Five more objects, of which one image is named by the style sheet: four are known.
        loader.on_received(ms(90), 0, document);
        let said = asks(&mut loader, ms(90));
        assert_eq!((said.len(), said[0].0, &said[1..]), (3, 0, [(1, 0), (2, 0)].as_slice()));
    }

    #[test]
    fn every_object_is_asked_for_once_and_the_page_is_loaded_with_the_last() {
        let mut loader = Loader::new(&web(2));
        loader.start(ms(5));
        let (mut now, mut asked, mut requests) = (5, [0; 2], 0);
        while loader.load_ms().is_none() {
            for (connection, up_to) in asks(&mut loader, ms(now)) {
                if up_to == 0 {
                    loader.on_open(connection);
                } else {
                    requests += 1;
                    asked[connection] = up_to;
                }
            }
            now += 1;
            (0..2).for_each(|connection| loader.on_received(ms(now), connection, asked[connection]));
        }
        assert_eq!((requests, asked[0] + asked[1]), (6, 155 * 1024 + 6 * HEADERS));
        assert_eq!((loader.load_ms(), loader.next_deadline()), (Some((now - 5) as f64), None));
    }

    #[test]
    fn what_nobody_answers_is_said_again_later_each_time() {
        let mut loader = Loader::new(&web(6));
        loader.start(ms(0));
        assert_eq!(asks(&mut loader, ms(0)).len(), 1);
        assert_eq!((asks(&mut loader, ms(999)), loader.next_deadline()), (vec![], Some(ms(1000))));
        assert_eq!((asks(&mut loader, ms(1000)), loader.next_deadline()), (vec![(0, 0)], Some(ms(3000))));
        loader.on_open(0);
        loader.on_open(0);
        assert_eq!(asks(&mut loader, ms(3000)).len(), 1, "one request");
    }
}
