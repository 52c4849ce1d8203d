//! A stream that a transport carries: what its schedule would hand to UDP goes into the transport's queue instead.
//!
//! The payload is that of the packets over UDP (their 28 bytes of headers are not carried), so that goodput compares; all
//! of a frame is given at once, at the moment it arises. The queue has no bound: what the path cannot carry now waits, as
//! in a socket that its program never finds full, and what waits when the stream stops is not sent.

use lasthop_core::units::{Span, Time};

use super::{Emission, Source};
use crate::scenario::SMALLEST_UDP;

/// See the module.
pub struct Feed {
    source: Source,
    next: Option<Emission>,
    given: u64,
    /// Each frame is rounded up to whole segments of so many bytes, as ns-2's agents send what an application gives them.
    whole: Option<u64>,
}

impl Feed {
    /// Before its first frame.
    pub fn new(mut source: Source, whole: Option<u64>) -> Self {
        let next = source.next();
        Self { source, next, given: 0, whole }
    }

    /// When its next frame arises; none: there are no more.
    pub fn next_deadline(&self) -> Option<Time> {
        self.next.map(|emission| Time::ZERO + emission.at)
    }

    /// Bytes of payload in all, those included that arise by `now`.
    pub fn given(&mut self, now: Time) -> u64 {
        while let Some(frame) = self.next.filter(|frame| Time::ZERO + frame.at <= now) {
            let bytes = self.frame(frame.at);
            self.given += self.whole.map_or(bytes, |segment| bytes.next_multiple_of(segment));
        }
        self.given
    }

    /// Payload of all that arises at `at`.
    fn frame(&mut self, at: Span) -> u64 {
        let mut bytes = 0;
        while let Some(part) = self.next.filter(|part| part.at == at) {
            bytes += u64::from(part.bytes).saturating_sub(SMALLEST_UDP);
            self.next = self.source.next();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const HOME: &str = "format = 1\nname = \"t\"\nduration = \"10s\"\n[[server]]\nname = \"W\"\n[wifi]\n[[station]]\n\
                        name = \"N\"\n[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"N\"\nstart = \"1s\"\nkind = ";

    fn source(kind: &str) -> Source {
        let home = Scenario::parse(&format!("{HOME}{kind}"), "t.toml", &[]).unwrap();
        Source::new(&home.flows[0], 1)
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_stream_arises_frame_by_frame_and_carries_no_headers_of_udp() {
        // 1000 B every 8 ms.
        let cbr = "\"cbr\"\nrate = \"1Mbit/s\"\nsize = \"1000B\"";
        let mut feed = Feed::new(source(cbr), None);
        assert_eq!((feed.given(ms(999)), feed.next_deadline()), (0, Some(ms(1000))));
        assert_eq!((feed.given(ms(1000)), feed.next_deadline()), (972, Some(ms(1008))));
        assert_eq!(feed.given(ms(1016)), 3 * 972);
        let mut rounded = Feed::new(source(cbr), Some(960));
        assert_eq!(rounded.given(ms(1000)), 1920, "ns-2 sends two whole packets for 972 bytes of 960");
    }

    #[test]
    fn all_packets_of_a_frame_are_given_at_once() {
        let video = "\"video\"\nrate = \"2Mbit/s\"";
        let mut feed = Feed::new(source(video), None);
        let first: Vec<Emission> = source(video).take_while(|packet| packet.at == Span::from_secs(1)).collect();
        let payload: u64 = first.iter().map(|packet| u64::from(packet.bytes) - SMALLEST_UDP).sum();
        assert!(first.len() > 3);
        assert_eq!(feed.given(ms(1000)), payload);
    }
}
