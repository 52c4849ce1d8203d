//! What browsers do in a run.

use lasthop_core::packet::Packet as _;
use lasthop_core::units::Time;

use super::Engine;
use crate::flows::{Play, Running};
use crate::packet::{self, Position, Sacks, SimPacket, flag};
use crate::sources::Source;
use crate::web::{self, Slot};

impl Engine<'_, '_> {
    /// The browser's own time has come: to begin, or to say something again.
    #[cold]
    pub(super) fn on_browser(&mut self, now: Time, page: usize) {
        let Running { stop, play: Play::Page(loader), .. } = &mut self.flows[page] else { return };
        if now >= *stop {
            return self.sources.clear(Source::Browser(page));
        }
        if now == Time::ZERO + self.scenario.flows[page].start {
            loader.start(now);
        }
        self.browse(now, page);
    }

    /// A segment of one of a page's connections has arrived and is acknowledged.
    #[cold]
    pub(super) fn on_page_segment(&mut self, now: Time, packet: &SimPacket, fresh: u32) {
        let Some(Slot { page, connection }) = self.pages.slot(packet.flow as usize) else { return };
        let Play::Tcp(carrier) = &self.flows[packet.flow as usize].play else { return };
        let received = carrier.receiver.received();
        let Running { play: Play::Page(loader), meter, .. } = &mut self.flows[page] else { return };
        meter.on_delivered(packet.sent, now, packet.bytes(), fresh);
        if packet.has(flag::SYN) {
            loader.on_open(connection);
        }
        loader.on_received(now, connection, received);
        if loader.loaded() == Some(now) {
            meter.on_completed(now);
        }
        self.browse(now, page);
    }

    /// Everything the browser has to say now.
    pub(super) fn browse(&mut self, now: Time, page: usize) {
        while let Play::Page(loader) = &mut self.flows[page].play
            && let Some(ask) = loader.poll(now)
            && let Some(flow) = self.pages.flow(Slot { page, connection: ask.connection })
        {
            let packet = SimPacket {
                sent: now,
                position: Position::new(ask.up_to, 0),
                flow: flow as u32,
                sack: Sacks::NONE,
                bytes: if ask.up_to == 0 { web::SYN_BYTES } else { web::REQUEST_BYTES },
                window: 0,
                flags: flag::TCP | flag::BACK | flag::ASK | packet::class(self.scenario.flows[flow].class),
            };
            self.send(now, &packet);
        }
        let Play::Page(loader) = &self.flows[page].play else { return };
        self.sources.renew(Source::Browser(page), loader.next_deadline());
    }
}
