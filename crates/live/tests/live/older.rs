//! Connections that are older than the controller.

use lasthop_live::netlink::{put, put_nested};
use lasthop_live::status::FlowState;

use crate::traffic::Download;
use crate::world::{World, skipped, world};

#[test]
fn an_older_connection_is_left_alone_and_counted_where_nobody_knows_its_scale() {
    let test = "an_older_connection_is_left_alone_and_counted_where_nobody_knows_its_scale";
    let Some(world) = world(test) else { return };
    let download = Download::start(&world, World::SERVER);
    let before = download.received();
    crate::world::wait_for("the download runs", || (download.received() > before + 1_000_000).then_some(()));
    let running = world.control(world.config()).expect("a controller");
    let status = running.wait_for("it gives up asking", |s| s.conntrack.asked > 0 && s.packets["scale-unknown"] > 100);
    assert_eq!(status.flows[0].state, FlowState::ScaleUnknown);
    assert_eq!((status.control.rewritten, status.conntrack.learned), (0, 0));
    assert!(status.flows[0].clamp_bytes.is_none());
    download.finish().expect("the connection lives");
}

#[test]
fn an_older_connection_is_controlled_where_conntrack_knows_its_scale() {
    let test = "an_older_connection_is_controlled_where_conntrack_knows_its_scale";
    let Some(world) = world(test) else { return };
    if let Err(error) = world.router.inside(track_connections) {
        return skipped(test, &format!("no nf_tables with ct: {error}"));
    }
    let download = Download::start(&world, World::SERVER);
    let before = download.received();
    crate::world::wait_for("the download runs", || (download.received() > before + 1_000_000).then_some(()));
    let running = world.control(world.config()).expect("a controller");
    let status = running.wait_for("conntrack tells", |s| s.conntrack.learned > 0);
    assert_eq!(status.conntrack.unavailable, None);
    let status = running.wait_for("it is lowered", |s| s.control.rewritten > 100);
    let clamp = status.flows[0].clamp_bytes.expect("a plan");
    running.wait_for("the sender obeys", |_| download.offered_window() <= clamp + 65_536);
    download.finish().expect("the connection lives");
}

/// One nf_tables rule that looks at a connection's state is what makes a namespace track connections.
fn track_connections() -> std::io::Result<()> {
    const BATCH_BEGIN: u16 = 16;
    const BATCH_END: u16 = 17;
    const NFTABLES: u16 = 10;
    let mut batch = Vec::new();
    let mut message = |kind: u16, flags: u16, family: u8, resource: u16, fill: &dyn Fn(&mut Vec<u8>)| {
        let mut body = vec![family, 0];
        body.extend(resource.to_be_bytes());
        fill(&mut body);
        batch.extend((16 + body.len() as u32).to_ne_bytes());
        batch.extend(kind.to_ne_bytes());
        batch.extend((1 | flags).to_ne_bytes());
        batch.extend(1u32.to_ne_bytes());
        batch.extend(0u32.to_ne_bytes());
        batch.extend(body);
    };
    const CREATE: u16 = 0x400;
    const APPEND: u16 = 0x800;
    const ACK: u16 = 4;
    let inet = 1u8;
    message(BATCH_BEGIN, 0, 0, NFTABLES, &|_| {});
    message(NFTABLES << 8, CREATE, inet, 0, &|b| put(b, 1, b"t\0"));
    message(NFTABLES << 8 | 3, CREATE, inet, 0, &|b| {
        put(b, 1, b"t\0");
        put(b, 3, b"c\0");
        put_nested(b, 4, |hook| {
            put(hook, 1, &2u32.to_be_bytes()); // forward
            put(hook, 2, &0u32.to_be_bytes());
        });
        put(b, 7, b"filter\0");
    });
    message(NFTABLES << 8 | 6, CREATE | APPEND | ACK, inet, 0, &|b| {
        put(b, 1, b"t\0");
        put(b, 2, b"c\0");
        put_nested(b, 4, |list| {
            put_nested(list, 1, |expression| {
                put(expression, 1, b"ct\0");
                put_nested(expression, 2, |ct| {
                    put(ct, 1, &1u32.to_be_bytes()); // into register 1
                    put(ct, 2, &0u32.to_be_bytes()); // the state
                });
            });
        });
    });
    message(BATCH_END, 0, 0, NFTABLES, &|_| {});
    lasthop_live::netlink::Socket::open(libc::NETLINK_NETFILTER)?.send_batch(&batch, 1)
}
