// SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT)
/*
 * The data path of a real access point: parses, looks up, asks the fast path, writes.
 *
 * Seen from a LAN interface: ingress goes to the remote side, egress to the stations. Works for tcx and clsact alike:
 * the verdict is "go on", but for packets whose queue is kept by a process and for UDP beyond its plan.
 */
#include "udp.h"
#include <bpf/bpf_helpers.h>

#define GO_ON -1 /* TCX_NEXT, TC_ACT_UNSPEC */
#define TC_ACT_SHOT 2
#define NO_SUCH_FLOW -2 /* -ENOENT */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct flow_key);
	__type(value, struct flow_state);
} flows SEC(".maps");

/* UDP has a table of its own: a key names no protocol. Only flows that ever sent a full packet are in it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key);
	__type(value, struct udp_state);
} udp_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

/* A new flow is made up here: it is too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_state);
} fresh SEC(".maps");

/* Flows whose window updates the controller shall see to: struct window_ask. Some thousand at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} asks SEC(".maps");

static const __u32 only = 0;

#ifdef LASTHOP_TEST_CLOCK
/* The agreement test sets the time, so that what depends on it can be compared too. */
#define clock_ns(skb, control) ((control)->heartbeat_ns + (skb)->mark)
#define call_ns(args) ((args)->now_ns)
#else
#define clock_ns(skb, control) bpf_ktime_get_ns()
#define call_ns(args) bpf_ktime_get_ns()
#endif

static __always_inline struct frame frame_of(const struct __sk_buff *skb)
{
	return (struct frame){
		.data = (const __u8 *)(long)skb->data,
		.data_end = (const __u8 *)(long)skb->data_end,
		.end = skb->len,
		.segments = skb->gso_segs > 1 ? skb->gso_segs : 1,
		.segment_bytes = skb->gso_size,
	};
}

/* Global, so that the verifier walks it once. */
__noinline int unusual_options(struct __sk_buff *skb, struct packet *out)
{
	struct frame f = frame_of(skb);

	return out ? read_options(&f, out) : MALFORMED;
}

static __always_inline int parse_skb(struct __sk_buff *skb, enum link_layer link, enum direction d, struct packet *out)
{
	struct frame f = frame_of(skb);
	int result = parse_headers(&f, link, d, out);

	if (result != PARSED_TCP || read_usual_options(&f, out))
		return result;
	return unusual_options(skb, out);
}

/* Apart, so that the hot path stays short: headers seldom lie outside the linear part. Global as above. */
__noinline int parse_again(struct __sk_buff *skb, __u32 link, __u32 d, struct packet *out)
{
	__u32 length = skb->len;

	if (!out || bpf_skb_pull_data(skb, length < HEADERS ? length : HEADERS))
		return TOO_SHORT;
	return parse_skb(skb, link, d, out);
}

static __noinline struct flow_state *open_flow(const struct flow_key *key, const struct control *now_in_force, __u64 now)
{
	struct flow_state *state = bpf_map_lookup_elem(&fresh, &only);

	if (!state)
		return 0;
	flow_open(state, now_in_force, now);
	bpf_map_update_elem(&flows, key, state, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

/*
 * Asks the controller to see to the window updates of a flow, unless it does already: each ask turns ASKED over, which only
 * ACKs write, and letting go copies it into `answered`, which only window_update writes. So neither undoes the other. Where the
 * ring is full nothing is turned over, and the next ACK asks again.
 */
static __noinline void ask(struct flow_state *state, const struct control *in_force, const struct flow_key *key, __u64 now)
{
	struct half *h = &state->half[TO_STATION];
	struct window_ask *ask;
	__u64 due;

	if ((h->flags & ASKED) != h->answered)
		return;
	due = window_due(state, in_force, TO_STATION, now);
	if (due == NOT_DUE)
		return;
	ask = bpf_ringbuf_reserve(&asks, sizeof(*ask), 0);
	if (!ask)
		return;
	ask->key = *key;
	ask->direction = TO_STATION;
	ask->due_ns = due;
	h->flags ^= ASKED;
	bpf_ringbuf_submit(ask, 0);
}

static __always_inline enum reason on_tcp(struct __sk_buff *skb, enum direction d, const struct packet *p)
{
	struct control *in_force = bpf_map_lookup_elem(&control, &only);
	struct flow_state *state;
	struct verdict verdict;
	__be16 from, to;
	__u64 now;

	if (!in_force)
		return TABLE_FULL;
	now = clock_ns(skb, in_force);
	state = bpf_map_lookup_elem(&flows, &p->key);
	if (!state) {
		state = open_flow(&p->key, in_force, now);
		if (!state)
			return TABLE_FULL;
	}
	verdict = on_packet(state, in_force, d, p, now);
	if (d == TO_REMOTE && in_force->hop[TO_STATION].updates && p->flags & TCP_ACK)
		ask(state, in_force, &p->key, now);
	if (verdict.reason != REWRITTEN)
		return verdict.reason;
	from = __builtin_bswap16(p->window);
	to = __builtin_bswap16(verdict.window);
	/* Without BPF_F_PSEUDO_HDR: right for merged packets and for CHECKSUM_PARTIAL, where it changes nothing. */
	bpf_l4_csum_replace(skb, p->tcp_at + 16, from, to, sizeof(to));
	bpf_skb_store_bytes(skb, p->tcp_at + 14, &to, sizeof(to), 0);
	return REWRITTEN;
}

static __noinline struct udp_state *open_udp(const struct flow_key *key, __u64 now)
{
	/* The same room: on the stack it would be too much below two callers. */
	struct udp_state *state = (struct udp_state *)bpf_map_lookup_elem(&fresh, &only);

	_Static_assert(sizeof(struct udp_state) <= sizeof(struct flow_state), "room for a new flow");
	if (!state)
		return 0;
	udp_open(state, now);
	bpf_map_update_elem(&udp_flows, key, state, BPF_NOEXIST);
	return bpf_map_lookup_elem(&udp_flows, key);
}

/* RFC 3168: the low bits of the second byte, in IPv6 those of its high half. */
static __always_inline void set_ce(struct __sk_buff *skb, const struct packet *p)
{
	__be16 before, now;

	if (bpf_skb_load_bytes(skb, p->ip_at, &before, sizeof(before)))
		return;
	if (p->version == 4) {
		now = before | __builtin_bswap16(0x0003);
		bpf_l3_csum_replace(skb, p->ip_at + 10, before, now, sizeof(now));
		bpf_skb_store_bytes(skb, p->ip_at, &now, sizeof(now), 0);
	} else {
		now = before | __builtin_bswap16(0x0030);
		bpf_skb_store_bytes(skb, p->ip_at, &now, sizeof(now), BPF_F_RECOMPUTE_CSUM);
	}
}

/* Global, so that the verifier walks it once; then a key that lies elsewhere must be copied before it is looked up. */
__noinline int on_udp(struct __sk_buff *skb, __u32 d, struct packet *p)
{
	const struct control *in_force = bpf_map_lookup_elem(&control, &only);
	struct udp_state *state;
	struct flow_key key;
	int reason;
	__u64 now;

	if (!p || !in_force || !p->header)
		return UDP;
	key = p->key;
	now = clock_ns(skb, in_force);
	state = bpf_map_lookup_elem(&udp_flows, &key);
	if (!state) {
		if (!udp_is_full(p))
			return UDP;
		state = open_udp(&key, now);
		if (!state)
			return TABLE_FULL;
	}
	reason = on_datagram(state, in_force, d & 1, p, now);
	if (reason == UDP_MARKED)
		set_ce(skb, p);
	return reason;
}

#define NOWHERE 0

/* A bare acknowledgment goes `into` that device, unless that is NOWHERE. */
static __always_inline int run_or_catch(struct __sk_buff *skb, enum link_layer link, enum direction d, int into)
{
	struct packet p;
	struct counters *c;
	int result = parse_skb(skb, link, d, &p);

	if (result == TOO_SHORT)
		result = parse_again(skb, link, d, &p);
	if (result == TOO_SHORT)
		result = MALFORMED;
	if (into != NOWHERE && result == PARSED_TCP && !p.payload_bytes &&
	    (p.flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK)
		return bpf_redirect(into, 0);
	if (result == PARSED_TCP)
		result = on_tcp(skb, d, &p);
	else if (result == UDP)
		result = on_udp(skb, d, &p);
	c = bpf_map_lookup_elem(&counters, &only);
	if (c && result >= 0 && result < REASONS)
		count(c, d, &p, result);
	return result == UDP_DROPPED ? TC_ACT_SHOT : GO_ON;
}

static __always_inline int run(struct __sk_buff *skb, enum link_layer link, enum direction d)
{
	return run_or_catch(skb, link, d, NOWHERE);
}

SEC("tc")
int lasthop_ingress(struct __sk_buff *skb)
{
	return run(skb, LINK_ETHERNET, TO_REMOTE);
}

SEC("tc")
int lasthop_egress(struct __sk_buff *skb)
{
	return run(skb, LINK_ETHERNET, TO_STATION);
}

SEC("tc")
int lasthop_ingress_ip(struct __sk_buff *skb)
{
	return run(skb, LINK_IP, TO_REMOTE);
}

SEC("tc")
int lasthop_egress_ip(struct __sk_buff *skb)
{
	return run(skb, LINK_IP, TO_STATION);
}

/*
 * Egress of an interface whose queue is kept by a process (live::datapath): what goes to the stations is measured as ever,
 * then handed to the process's TAP, and comes by here once more when the process sends it; the socket tells which of the
 * two it is. Whatever is wrong with the process, packets go on as if there were none: no entry, no device, no sign of life.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DIVERTS);
	__type(key, __u32); /* ifindex */
	__type(value, struct divert);
} diverts SEC(".maps");

static __always_inline int is_diverted(__u32 protocol)
{
	/* ARP, EAPOL and the like are the kernel's own business and never wait. */
	switch (__builtin_bswap16(protocol)) {
	case 0x0800: /* IPv4 */
	case 0x86dd: /* IPv6 */
	case 0x8100: /* 802.1Q */
	case 0x88a8: /* 802.1ad */
	case 0x8864: /* PPPoE session */
		return 1;
	}
	return 0;
}

#define COMES_BACK -1

/* The device that a packet is to be handed to. Global, so that what it may answer does not multiply what follows. */
__noinline int divert_to(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, length = 0;
	const struct divert *to = bpf_map_lookup_elem(&diverts, &ifindex);
	__u64 now;

	if (!to)
		return NOWHERE;
	if (bpf_get_socket_cookie(skb) == to->cookie)
		return COMES_BACK;
	if (!is_diverted(skb->protocol))
		return NOWHERE;
	now = bpf_ktime_get_ns();
	if (now > to->heartbeat_ns && now - to->heartbeat_ns > DIVERT_STALE_NS)
		return NOWHERE;
	/* Asked only whether the device is still there: redirecting to none would lose the packet. */
	if (bpf_check_mtu(skb, to->into, &length, 0, 0) < 0)
		return NOWHERE;
	return to->into & 0x7fffffff;
}

/* Global too: walked as if they stood alone. */
__noinline int measure_ethernet(struct __sk_buff *skb)
{
	return run(skb, LINK_ETHERNET, TO_STATION);
}

__noinline int measure_ip(struct __sk_buff *skb)
{
	return run(skb, LINK_IP, TO_STATION);
}

SEC("tc")
int lasthop_divert(struct __sk_buff *skb)
{
	int into = divert_to(skb);

	if (into == COMES_BACK)
		return GO_ON;
	if (measure_ethernet(skb) == TC_ACT_SHOT)
		return TC_ACT_SHOT;
	return into == NOWHERE ? GO_ON : bpf_redirect(into, 0);
}

SEC("tc")
int lasthop_divert_ip(struct __sk_buff *skb)
{
	int into = divert_to(skb);

	if (into == COMES_BACK)
		return GO_ON;
	if (measure_ip(skb) == TC_ACT_SHOT)
		return TC_ACT_SHOT;
	return into == NOWHERE ? GO_ON : bpf_redirect(into, 0);
}

/*
 * Ingress of an interface whose losses are repaired by a process (Snoop): bare acknowledgments of stations are handed to
 * its second TAP before anything else sees them. What it writes back there comes by here once more as if it had just been
 * received, known by its mark, which nobody but us can have set on a packet that comes in: then it is taken off. As above,
 * whatever is wrong with the process, packets go on.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * DIVERTS);
	__type(key, __u32); /* ifindex: of the interface, and of the TAP */
	__type(value, struct divert); /* of the TAP `into` is the interface; the mark is the cookie's lower half */
} catches SEC(".maps");

/* The device that a bare acknowledgment is to be handed to. Global as above. */
__noinline int catch_to(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, length = 0;
	const struct divert *to = bpf_map_lookup_elem(&catches, &ifindex);
	__u64 now;

	if (!to)
		return NOWHERE;
	if (skb->mark == (__u32)to->cookie) {
		skb->mark = 0;
		return NOWHERE;
	}
	now = bpf_ktime_get_ns();
	if (now > to->heartbeat_ns && now - to->heartbeat_ns > DIVERT_STALE_NS)
		return NOWHERE;
	if (bpf_check_mtu(skb, to->into, &length, 0, 0) < 0)
		return NOWHERE;
	return to->into & 0x7fffffff;
}

SEC("tc")
int lasthop_catch(struct __sk_buff *skb)
{
	return run_or_catch(skb, LINK_ETHERNET, TO_REMOTE, catch_to(skb));
}

SEC("tc")
int lasthop_catch_ip(struct __sk_buff *skb)
{
	return run_or_catch(skb, LINK_IP, TO_REMOTE, catch_to(skb));
}

/* Ingress of that TAP. */
SEC("tc")
int lasthop_return(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	const struct divert *to = bpf_map_lookup_elem(&catches, &ifindex);

	if (!to)
		return TC_ACT_SHOT;
	skb->mark = (__u32)to->cookie;
	return bpf_redirect(to->into, BPF_F_INGRESS);
}

/* What everything else is compared with. */
SEC("tc")
int nothing(struct __sk_buff *skb)
{
	(void)skb;
	return GO_ON;
}

/*
 * The calls of the controller. All but the last write only what the data path reads, so no packet's work is undone; a plan
 * seen half old and half new lasts for one packet.
 */
SEC("syscall")
int set_plan(struct set_plan_args *args)
{
	struct flow_key key = args->key;
	struct flow_state *state = bpf_map_lookup_elem(&flows, &key);
	__u32 d = args->direction & 1;

	args->result = NO_SUCH_FLOW;
	if (!state)
		return 0;
	state->half[d].plan = args->plan;
	args->result = 0;
	return 0;
}

SEC("syscall")
int set_udp_plan(struct set_udp_plan_args *args)
{
	struct flow_key key = args->key;
	struct udp_state *state = bpf_map_lookup_elem(&udp_flows, &key);
	__u32 d = args->direction & 1;

	args->result = NO_SUCH_FLOW;
	if (!state)
		return 0;
	state->half[d].plan = args->plan;
	args->result = 0;
	return 0;
}

SEC("syscall")
int set_scale(struct set_scale_args *args)
{
	struct flow_key key = args->key;
	struct flow_state *state = bpf_map_lookup_elem(&flows, &key);
	__u32 d = args->direction & 1;

	args->result = NO_SUCH_FLOW;
	if (!state)
		return 0;
	state->half[d].told_scale = min_u32(args->scale, LARGEST_SCALE) + 1;
	args->result = 0;
	return 0;
}

/*
 * The window update that is due now, and when the next one is.
 *
 * It moves the edge as an ACK does, and an ACK may pass on another CPU in the same nanoseconds: then one of the two steps is
 * forgotten, or paid for once and made twice. That is one and a half updates' worth at most, either way; if an ACK takes back
 * what an update has just told, its sender has to expect that of any receiver (RFC 9293 section 3.8.6). An ACK that makes an
 * update due while the caller lets go does not ask: the next one does.
 */
SEC("syscall")
int window_update_due(struct window_update_args *args)
{
	struct flow_key key = args->key;
	struct flow_state *state = bpf_map_lookup_elem(&flows, &key);
	const struct control *in_force = bpf_map_lookup_elem(&control, &only);
	struct window_update update = {};
	__u32 d = args->direction & 1;
	__u64 now = call_ns(args), due;

	args->now_ns = now;
	args->due_ns = 0;
	args->has = 0;
	args->result = NO_SUCH_FLOW;
	if (!state || !in_force)
		return 0;
	args->result = 0;
	due = NOT_DUE;
	if (!args->let_go) {
		update = window_update(state, in_force, d, now);
		due = window_due(state, in_force, d, now);
	}
	if (update.is_due) {
		args->has = update.has_timestamps ? HAS_UPDATE | HAS_UPDATE_TIMESTAMPS : HAS_UPDATE;
		args->seq = update.seq;
		args->ack = update.ack;
		args->window = update.window;
		args->tsval = update.tsval;
		args->tsecr = update.tsecr;
	}
	if (due != NOT_DUE && !is_stale(in_force, now))
		args->due_ns = due ? due : 1;
	else
		state->half[d].answered = state->half[d].flags & ASKED;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
