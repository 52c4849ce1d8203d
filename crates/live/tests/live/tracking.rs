//! Connection tracking without any tool: one nf_tables rule that looks at a connection's state.

use lasthop_live::netlink::{Socket, put, put_nested};

use crate::world::{World, skipped};

impl World {
    /// Makes the router track connections from now on; says so where the kernel cannot.
    pub fn tracks_connections(&self, test: &str) -> bool {
        // Into register 1, the state of a connection.
        let looks = Rule { name: "ct", fields: &[(1, 1), (2, 0)] };
        self.filters(test, Chain { kind: "filter", hook: FORWARD, priority: 0, policy: ACCEPT }, Some(looks))
    }

    /// Makes the router hide stations behind its own address from now on, likewise.
    pub fn translates_addresses(&self, test: &str) -> bool {
        let hides = Rule { name: "masq", fields: &[] };
        self.filters(test, Chain { kind: "nat", hook: POSTROUTING, priority: 100, policy: ACCEPT }, Some(hides))
    }

    /// Makes the router refuse all that it would send itself, likewise.
    pub fn refuses_its_own_packets(&self, test: &str) -> bool {
        self.filters(test, Chain { kind: "filter", hook: OUTPUT, priority: 0, policy: DROP }, None)
    }

    fn filters(&self, test: &str, chain: Chain, rule: Option<Rule>) -> bool {
        let outcome = self.router.inside(move || install(chain, rule));
        if let Err(error) = &outcome {
            skipped(test, &format!("no nf_tables with ct and nat: {error}"));
        }
        outcome.is_ok()
    }
}

const FORWARD: u32 = 2;
const OUTPUT: u32 = 3;
const POSTROUTING: u32 = 4;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

/// Where rules stand.
#[derive(Clone, Copy)]
struct Chain {
    kind: &'static str,
    hook: u32,
    priority: u32,
    policy: u32,
}

/// One expression with attributes of 32 bits.
#[derive(Clone, Copy)]
struct Rule {
    name: &'static str,
    fields: &'static [(u16, u32)],
}

fn install(chain: Chain, rule: Option<Rule>) -> std::io::Result<()> {
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
    let text = |text: &str| [text.as_bytes(), b"\0"].concat();
    message(BATCH_BEGIN, 0, 0, NFTABLES, &|_| {});
    message(NFTABLES << 8, CREATE, inet, 0, &|b| put(b, 1, b"t\0"));
    message(NFTABLES << 8 | 3, CREATE | if rule.is_some() { 0 } else { ACK }, inet, 0, &|b| {
        put(b, 1, b"t\0");
        put(b, 3, b"c\0");
        put_nested(b, 4, |hook| {
            put(hook, 1, &chain.hook.to_be_bytes());
            put(hook, 2, &chain.priority.to_be_bytes());
        });
        put(b, 5, &chain.policy.to_be_bytes());
        put(b, 7, &text(chain.kind));
    });
    if let Some(rule) = rule {
        message(NFTABLES << 8 | 6, CREATE | APPEND | ACK, inet, 0, &|b| {
            put(b, 1, b"t\0");
            put(b, 2, b"c\0");
            put_nested(b, 4, |list| {
                put_nested(list, 1, |expression| {
                    put(expression, 1, &text(rule.name));
                    put_nested(expression, 2, |fields| {
                        rule.fields.iter().for_each(|(kind, value)| put(fields, *kind, &value.to_be_bytes()));
                    });
                });
            });
        });
    }
    message(BATCH_END, 0, 0, NFTABLES, &|_| {});
    Socket::open(libc::NETLINK_NETFILTER)?.send_batch(&batch, 1)
}
