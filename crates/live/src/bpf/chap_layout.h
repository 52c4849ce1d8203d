/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * What the controller and the queue discipline tell each other: the layouts of crates/live/src/qdisc/layout.rs.
 */
#ifndef LASTHOP_CHAP_LAYOUT_H
#define LASTHOP_CHAP_LAYOUT_H

#include "uapi.h"

#define CHAP_STATIONS 64
/* A heartbeat older than this is none. */
#define CHAP_STALE_NS 2000000000ull

/* What a packet costs: channel time of each byte of the frame, and of each packet whatever its size. */
struct chap_rate {
	__u64 byte_ns_q16; /* 2^-16 ns; 0: no rate of its own */
	__u64 packet_ns;
};

enum chap_flow_kind { CHAP_CONNECTIONS = 0, CHAP_HOSTS = 1 };

/* From the controller. */
struct chap_control {
	__u64 heartbeat_ns; /* bpf_ktime_get_ns when it was last alive */
	__u64 increment_ns; /* I */
	__u64 active_ns; /* how long a flow without packets is remembered */
	__u64 interval_ns; /* in which the credit of one new flow comes in, per station */
	__u64 burst_ns; /* in which an empty bucket of that credit becomes full */
	__u64 slack_ns; /* how far the pace may catch up after a late timer, while somebody waits */
	__u64 secret; /* of the hash of addresses */
	__u32 limit; /* packets, 1..CHAP_PACKETS - 1 */
	__u32 flow_kind; /* enum chap_flow_kind */
	__u32 header_bytes; /* of the link, before the IP header: 14, or 0 for tun, ppp and the like */
	__u32 pad;
	struct chap_rate rate; /* of stations that have none */
	struct chap_rate station[CHAP_STATIONS];
};

/* To the controller. */
struct chap_stats {
	__u64 sent_packets;
	__u64 sent_bytes;
	__u64 sent_ns; /* channel time */
	__u64 dropped; /* because the queue was full */
	__u64 lost; /* for any other reason; must stay 0 */
	__u64 boosts;
	__u64 flows; /* known now */
	__u64 admitted;
	__u64 shared;
	__u64 over_cap;
	__u64 no_room;
	__u64 evicted;
	__u64 merged; /* packets that an offload engine had merged from several */
	__u64 waits; /* how often the pace made somebody wait */
	__u64 unpaced; /* sent without pace because the controller was silent */
	__u64 queued; /* packets now */
	__u64 backlogged; /* flows now */
	__u64 most_queued;
};

_Static_assert(sizeof(struct chap_control) == 7 * 8 + 4 * 4 + (1 + CHAP_STATIONS) * 16, "chap_control");
_Static_assert(sizeof(struct chap_stats) == 18 * 8, "chap_figures");

#endif
