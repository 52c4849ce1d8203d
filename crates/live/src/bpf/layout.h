/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * What the fast path keeps: the layouts of crates/core/src/fastpath/layout.rs, field for field.
 *
 * Meaning, unit and range of each field stand there. Sequence numbers are in host order, modulo 2^32; times are
 * bpf_ktime_get_ns. The assertions at the end are the same as in Rust: neither side has hidden padding.
 */
#ifndef LASTHOP_LAYOUT_H
#define LASTHOP_LAYOUT_H

#include "uapi.h"

enum direction { TO_STATION = 0, TO_REMOTE = 1 };

struct flow_key {
	__u8 station[16];
	__u8 remote[16];
	__u16 station_port;
	__u16 remote_port;
};

struct plan {
	__u32 clamp_bytes;
	__u32 floor_bytes;
	__u32 growth_bytes;
	__u32 pace_bytes;
};

/* A number and when it passed in one word, so that another CPU reads both of the same packet: the number above, the time below,
 * in ticks of 2^STAMP_SHIFT ns. 0: none. */
typedef __u64 stamp_t;
#define STAMP_SHIFT 10

/* Sum of all samples in such ticks, below, and their number, above. */
typedef __u64 rtt_total_t;
#define RTT_SUM_BITS 40

/*
 * Data and their acknowledgments often pass on two processors: what one of them writes lies together, so that few lines of their caches go
 * to and fro.
 */
struct rtt_match {
	/* by packets of this direction */
	stamp_t seq_sent;
	stamp_t ts_sent;
	stamp_t ts_newest;
	stamp_t ts_soonest;
	__u32 echo_newest;
	/* by those of the other one */
	__u32 epoch;
	stamp_t answered;
	rtt_total_t total;
	__u32 min_ns;
	__u32 last_ns;
	__u32 seq_done;
	__u32 ts_done;
};

struct half {
	/* by packets of this direction, but for two */
	__u64 bytes;
	__u64 packets;
	__u64 payload_bytes;
	__u64 data_ns;
	__u32 epoch;
	__u32 gap_ns;
	__u32 snd_nxt;
	__u32 mss;
	__u8 data_flags;
	__u8 conntrack_scale;
	__u8 answered;
	__u8 pad[5];
	/* by both */
	struct rtt_match rtt;
	/* by those of the other one, but for the plan */
	__u64 rewritten;
	__u64 paced_ns;
	__u64 acked_ns;
	__u64 served_ns;
	struct plan plan;
	__u32 edge;
	__u32 delivered;
	__u32 window;
	__u32 credit;
	__u32 stretch;
	__u32 waiting;
	__u32 acked;
	__u32 advertised_edge;
	__u32 advertised_tsval;
	__u16 last_window;
	__u8 scale;
	__u8 flags;
};

enum half_flags {
	/* in flags */
	SCALE_KNOWN = 1,
	SCALE_OFFERED = 2,
	EDGE_KNOWN = 4,
	ADVERTISED = 8,
	SYN_SEEN = 16,
	ODD = 32,
	ASKED = 64,
	/* in data_flags */
	ELSEWHERE = 8,
	RESET = 16,
	DATA_SEEN = 32,
	LIMITED = 64,
	CLOSING = 128,
};

struct flow_state {
	struct half half[2];
	__u64 last_seen_ns;
	__u64 first_seen_ns;
	__u32 port;
	__u32 hop;
	__u32 assured;
	__u32 noted;
};

struct udp_plan {
	__u32 rate_bytes;
	__u32 depth_bytes;
	__u32 most_bytes;
	__u32 answer_ns;
};

struct udp_half {
	__u64 bytes;
	__u64 packets;
	__u64 full_bytes;
	__u64 dropped_bytes;
	__u64 pause_ns;
	__u64 last_ns;
	__u64 train_ns;
	__u64 drained_ns;
	__u64 told_ns;
	__u32 trains;
	__u32 regular;
	__u32 period_ns;
	__u32 marked;
	__u32 dropped;
	__u32 level_bytes;
	__u32 next_bytes;
	struct udp_plan plan;
	__u32 pad;
};

struct udp_state {
	struct udp_half half[2];
	__u64 last_seen_ns;
	__u64 first_seen_ns;
	__u32 port;
	__u32 hop;
	__u32 quic;
	__u32 pad;
};

/* Every packet of every connection writes there: data and acknowledgments in lines of their own, and what both only read in another. */
struct hop {
	/* written by the controller */
	__u32 rate_bytes;
	__u32 depth_bytes;
	/* by SYNs, but for updates: the controller */
	__u32 left_bytes;
	__u32 updates;
	__u64 earned_ns;
	__u64 pad_start[5];
	/* by data */
	__u64 data_ns;
	__u64 came_ns;
	__u64 came_bytes;
	__u64 pad_came[5];
	/* by acknowledgments */
	__u64 acked_ns;
	__u64 served_ns;
	__u64 served_bytes;
	__u64 brought_ns;
	__u64 bunched_bytes;
	__u64 bunches;
	__u64 bunch_bytes;
	__u64 pad_served;
};

#define HOPS 16

struct control {
	__u64 heartbeat_ns;
	__u32 epoch;
	__u32 dry_run;
	__u64 silent_ns;
	__u64 looks_ns;
	__u64 tick_ns;
	struct plan default_plan[2];
	__u32 readings;
	__u32 pad[13];
	struct hop hops[HOPS][2];
};

#define STALE_NS 2000000000ull

enum reason {
	REWRITTEN = 0,
	WITHIN_PLAN = 1,
	WOULD_REWRITE = 2,
	SYN = 3,
	RST = 4,
	ZERO_WINDOW = 5,
	SCALE_UNKNOWN = 6,
	NO_PLAN = 7,
	STALE = 8,
	FRAGMENT = 9,
	MALFORMED = 10,
	NOT_IP = 11,
	AUTHENTICATED = 12,
	UDP = 13,
	OTHER_TRANSPORT = 14,
	NO_ACK = 15,
	TABLE_FULL = 16,
	UDP_WITHIN_PLAN = 17,
	UDP_MARKED = 18,
	UDP_DROPPED = 19,
	UDP_WOULD_STEER = 20,
	INVALID = 21,
	UNWRITABLE = 22,
	REASONS = 23,
};

struct hop_counters {
	__u64 ip_bytes[2];
	__u64 udp_bytes[2];
	__u64 udp_packets[2];
};

struct counters {
	__u64 reason[REASONS];
	__u64 ip_bytes[2];
	__u64 udp_bytes[2];
	__u64 tcp_bytes[2];
	__u64 packets[2];
	__u64 udp_packets[2];
	struct hop_counters hops[HOPS];
};

/* Connections that the syscall program read_flows copies at once: so many that the call costs little beside them. */
#define READS 64

/* Which, and what they are like, where they are in the table. */
struct reads {
	__u64 count;
	__u32 found[READS];
	struct flow_key keys[READS];
	struct flow_state states[READS];
};

/* What the controller wants of one direction of a connection. */
struct plan_of {
	struct flow_key key;
	__u32 direction;
	struct plan plan;
};

/* As many of them at once as of connections, and of how many there is a connection. */
struct plans {
	__u64 count;
	__u64 found;
	struct plan_of each[READS];
};

/* Arguments of the syscall programs set_udp_plan, set_class and set_scale; the result is 0, or a negative errno: the flow is gone. */

struct set_udp_plan_args {
	struct flow_key key;
	__u32 direction;
	struct udp_plan plan;
	__s32 result;
};

struct set_class_args {
	struct flow_key key;
	__u32 user_priority;
	__s32 result;
};

struct set_scale_args {
	struct flow_key key;
	__u32 direction;
	__u32 scale;
	__s32 result;
};

/* What the data path puts into the ring `asks`: see to the window updates of this flow; live::program states the same. */
struct window_ask {
	struct flow_key key;
	__u32 direction; /* of its data */
	__u64 due_ns; /* when the next one is due */
	__u32 ifindex; /* of the interface towards the station */
	__u8 link[18]; /* what is before the IP header of an ACK to it: Ethernet, with at most one tag */
	__u8 link_bytes; /* how much of that there is */
	__u8 pad;
};

/* Arguments of the syscall program window_update_due; live::program states the same. */
struct window_update_args {
	struct flow_key key;
	__u32 direction;
	__u64 now_ns; /* out: when it was; under test: in */
	__u64 due_ns; /* out: when the next one is due; 0: none is, and the caller is no longer asked */
	__u32 seq;
	__u32 ack;
	__u32 tsval;
	__u32 tsecr;
	__u32 window; /* raw */
	__u32 has; /* out: bits of update_has */
	__u32 released; /* in: 1: the caller will not see to it, whatever is due */
	__s32 result; /* 0, or a negative errno: the flow is gone */
};

enum update_has { HAS_UPDATE = 1, HAS_UPDATE_TIMESTAMPS = 2 };

/* An interface whose queue is kept by a process; live::datapath::divert states the same. */
struct divert {
	__u64 heartbeat_ns; /* when the process was last alive */
	__u64 cookie; /* of the socket that it sends by */
	__u32 into; /* ifindex of its TAP */
	__u32 pad;
};

/* Most interfaces at a time. */
#define DIVERTS 64
/* The process says it is alive ten times a second. */
#define DIVERT_STALE_NS 500000000ull

_Static_assert(sizeof(struct divert) == 2 * 8 + 2 * 4, "divert");
_Static_assert(sizeof(struct flow_key) == 16 + 16 + 2 + 2, "flow_key");
_Static_assert(sizeof(struct plan) == 4 * 4, "plan");
_Static_assert(sizeof(struct rtt_match) == 6 * 8 + 6 * 4, "rtt_match");
_Static_assert(sizeof(struct half) == sizeof(struct rtt_match) + 8 * 8 + sizeof(struct plan) + 13 * 4 + 12, "half");
_Static_assert(sizeof(struct flow_state) == 2 * sizeof(struct half) + 2 * 8 + 4 * 4, "flow_state");
_Static_assert(sizeof(struct udp_plan) == 4 * 4, "udp_plan");
_Static_assert(sizeof(struct udp_half) == 9 * 8 + 7 * 4 + sizeof(struct udp_plan) + 4, "udp_half");
_Static_assert(sizeof(struct udp_state) == 2 * sizeof(struct udp_half) + 2 * 8 + 4 * 4, "udp_state");
_Static_assert(sizeof(struct set_udp_plan_args) == sizeof(struct flow_key) + 4 + sizeof(struct udp_plan) + 4,
	       "set_udp_plan_args");
_Static_assert(sizeof(struct hop) == 3 * 64, "hop");
_Static_assert(__builtin_offsetof(struct hop, data_ns) == 64 && __builtin_offsetof(struct hop, acked_ns) == 2 * 64,
	       "lines of hop");
_Static_assert(__builtin_offsetof(struct control, hops) % 64 == 0, "lines of control");
_Static_assert(sizeof(struct control) ==
		       8 + 2 * 4 + 3 * 8 + 2 * sizeof(struct plan) + 14 * 4 + HOPS * 2 * sizeof(struct hop),
	       "control");
_Static_assert(sizeof(struct hop_counters) == 3 * 2 * 8, "hop_counters");
_Static_assert(sizeof(struct counters) == (REASONS + 5 * 2) * 8 + HOPS * sizeof(struct hop_counters), "counters");
_Static_assert(sizeof(struct plans) == 2 * 8 + READS * (sizeof(struct flow_key) + 4 + sizeof(struct plan)), "plans");
_Static_assert(sizeof(struct reads) == 8 + READS * (4 + sizeof(struct flow_key) + sizeof(struct flow_state)), "reads");
_Static_assert(sizeof(struct window_ask) == sizeof(struct flow_key) + 4 + 8 + 4 + 20, "window_ask");
_Static_assert(sizeof(struct window_update_args) == sizeof(struct flow_key) + 4 + 2 * 8 + 8 * 4, "window_update_args");
_Static_assert(sizeof(struct set_class_args) == sizeof(struct flow_key) + 2 * 4, "set_class_args");
_Static_assert(sizeof(struct set_scale_args) == sizeof(struct flow_key) + 3 * 4, "set_scale_args");

#endif
