//! Connection tracking without any tool: one nf_tables rule that looks at a connection's state.

use lasthop_live::netlink::{Socket, put, put_nested};

use crate::world::{World, skipped};

impl World {
    /// Makes the router track connections from now on; says so where the kernel cannot.
    pub fn tracks_connections(&self, test: &str) -> bool {
        let outcome = self.router.inside(track_connections);
        if let Err(error) = &outcome {
            skipped(test, &format!("no nf_tables with ct: {error}"));
        }
        outcome.is_ok()
    }
}

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
    Socket::open(libc::NETLINK_NETFILTER)?.send_batch(&batch, 1)
}
