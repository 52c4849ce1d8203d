// SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT)
/*
 * The data path of a real access point: copies the headers, parses, looks up, asks the fast path, writes.
 *
 * Seen from a LAN interface: ingress goes to the remote side, egress to the stations. Works for tcx and clsact alike:
 * the verdict is "go on", but for packets whose queue is kept by a process and for UDP beyond its plan.
 *
 * Each hook is a few lines that say what it is and jump (tail call) to one program, `lasthop_pass`, that does all the work: so the
 * kernel checks the work once, not once for each hook. The jump goes nowhere, and packets go on, once the table of programs is
 * emptied, which the kernel does when the controller is gone. What takes many paths is in global functions, which the verifier
 * walks once each and apart from each other. They take no skb, and nothing here asks the kernel for a description of its types:
 * it loads without BTF of the kernel. From Linux 6.1 on, strictly aligned; by clang 14 and later.
 */
#include "light.h"
#include <bpf/bpf_helpers.h>

#define GO_ON -1 /* TCX_NEXT, TC_ACT_UNSPEC */
#define TC_ACT_SHOT 2
#define NO_SUCH_FLOW -2 /* -ENOENT */

/*
 * A connection keeps its place until the controller takes it away (remove_flows): nobody who comes later pushes it out. Where all
 * places are taken a newcomer passes as it is, which is counted (TABLE_FULL, `refused`). All places are made when it is loaded:
 * what does not fit then is refused at the start and not in the middle of a flood, and a packet never waits for memory.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct flow_key);
	__type(value, struct flow_state);
} flows SEC(".maps");

/*
 * Connections of which nothing has shown yet that both ends are there, and what claims to be another one between the ports of one
 * that is alive. Whoever sends SYNs without end drives out others like them.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key);
	__type(value, struct flow_state);
} opening SEC(".maps");

/*
 * UDP has a table of its own: a key names no protocol. Only flows that ever sent a full packet are in it, and they keep their places
 * likewise.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key);
	__type(value, struct udp_state);
} udp_flows SEC(".maps");

/* What the controller tells the data path, and what all connections have in common. */
struct control in_force SEC(".bss.control");

/*
 * Which hop is behind an interface towards stations, by the lower bits of its number: 0 where it has none of its own. Two of those
 * that are hooked may share a place; the controller gives it to one hop then.
 */
#define PLACES_OF_PORTS 1024
__u8 hop_behind[PLACES_OF_PORTS] SEC(".data.hops");

/*
 * When a large packet last passed: while none does the controller rests. All bulk data come in such packets: 576 bytes is what every
 * host takes (RFC 791 section 3.1), and what TCP sends where nobody told it more (RFC 9293 section 3.7.1). Every processor reads it;
 * so it is written no more often than the controller could tell.
 */
#define LARGE_BYTES 576
#define LARGE_EVERY_NS 10000000ll
__u64 large_ns SEC(".data.large");

/*
 * The first large packet after a pause wakes the controller, which rests after a second without: somewhat sooner, for one may pass while
 * it looks. As large as the largest pages are, which is the least that a ring may have; nobody reads what is in it.
 */
#define CALM_NS 900000000ll
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} wakes SEC(".maps");

static __always_inline void note_large(const struct packet *p)
{
	__s64 pause = p->now_ns - READ_ONCE(large_ns);

	if (p->ip_bytes < LARGE_BYTES || pause < LARGE_EVERY_NS)
		return;
	WRITE_ONCE(large_ns, p->now_ns);
	if (pause >= CALM_NS)
		bpf_ringbuf_output(&wakes, (void *)p, 1, BPF_RB_FORCE_WAKEUP);
}

/* Of each processor: its counters, and room for the packet that is passing. Nothing else passes there meanwhile: hooks run with
 * bottom halves disabled. */
struct per_cpu {
	struct counters counters;
	struct packet packet;
	struct frame frame;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct per_cpu);
} per_cpu SEC(".maps");

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
	__uint(max_entries, 128 * 1024);
} asks SEC(".maps");

/*
 * Keys of connections that moved since the controller began to read: it reads those next, and not all there are. Nobody is woken. Some ten thousand
 * fit; one that finds no room is not there, so a ring that was nearly full says nothing, and the controller reads them all.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} moved SEC(".maps");

/*
 * Who found no place in the table of connections: each of its packets marks the slot that its key hashes to. The controller counts
 * the slots that are marked and clears them; from how many are empty it tells how many connections there were (linear counting,
 * Whang, Vander-Zanden and Taylor 1990). A byte for each, so that two processors need not agree.
 */
#define REFUSED_BITS 15
struct refused {
	__u8 slots[1 << REFUSED_BITS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct refused);
} refused SEC(".maps");

/* The upper bits of a product depend on all of the lower ones (Knuth, volume 3, section 6.4). */
static __noinline void note_refused(const struct flow_key *key)
{
	const __u16 *words = (const __u16 *)key;
	__u32 zero = 0, hash = 0, i;
	struct refused *all = bpf_map_lookup_elem(&refused, &zero);

	if (!all)
		return;
	for (i = 0; i < sizeof(*key) / sizeof(*words); i++)
		hash = (hash ^ words[i]) * 2654435761u;
	all->slots[hash >> (32 - REFUSED_BITS)] = 1;
}

#ifdef LASTHOP_TEST_CLOCK
/* The agreement test sets the time, so that what depends on it can be compared too. */
#define clock_ns(skb) (in_force.heartbeat_ns + (skb)->mark)
#define call_ns(args) ((args)->now_ns)
#else
#define clock_ns(skb) bpf_ktime_get_ns()
#define call_ns(args) bpf_ktime_get_ns()
#endif

/* Copies so many bytes at `from` of the packet to `at`, a place in the copy. */
static __always_inline int copy(struct __sk_buff *skb, __u32 from, struct frame *f, __u32 at, __u32 length)
{
	/* As it is, in a way that the verifier sees from 1 to PLACES. */
	opaque(length);
	length = ((length - 1) & (PLACES - 1)) + 1;
	return bpf_skb_load_bytes(skb, from, f->bytes + (at & 2), length);
}

__noinline int parse(struct frame *f, __u32 link, __u32 d, struct packet *out)
{
	return f && out ? parse_headers(f, link, d & 1, out) : MALFORMED;
}

/* The frame's first bytes, at most so many, and what they say but for TCP's options. */
static __always_inline int copy_and_parse(struct __sk_buff *skb, struct frame *f, __u32 link, __u32 d,
					  struct packet *out, __u32 most)
{
	__u32 at = FRAME_AT(link), length = min_u32(skb->len, most);

	f->copied = at + length;
	f->end = at + skb->len;
	return copy(skb, 0, f, at, length) ? MALFORMED : parse(f, link, d, out);
}

__noinline int parse_options(struct frame *f, struct packet *out)
{
	return f && out ? read_options(f, out) : MALFORMED;
}

static __always_inline int parse_skb(struct __sk_buff *skb, struct frame *f, __u32 link, __u32 d, struct packet *out)
{
	int result = UNUSUAL;

	f->segments = skb->gso_segs > 1 ? skb->gso_segs : 1;
	f->segment_bytes = skb->gso_size;
	if (link == LINK_ETHERNET) {
		f->end = FRAME_AT(LINK_ETHERNET) + skb->len;
		result = parse_usual(f, (const __u8 *)(long)skb->data, (const __u8 *)(long)skb->data_end, d, out);
	}
	if (result == UNUSUAL)
		result = copy_and_parse(skb, f, link, d, out, USUALLY);
	/* Many extension headers. */
	if (result == TOO_SHORT)
		result = copy_and_parse(skb, f, link, d, out, HEADERS);
	if (result == TOO_SHORT)
		return MALFORMED;
	if (result != OPTIONS_LEFT)
		return result;
	return copy(skb, out->l4_at, f, 0, out->header) ? MALFORMED : parse_options(f, out);
}

static __noinline struct flow_state *open_flow(const struct flow_key *key, __u64 now)
{
	__u32 zero = 0;
	struct flow_state *state = bpf_map_lookup_elem(&fresh, &zero);

	if (!state)
		return 0;
	flow_open(state, &in_force, now);
	bpf_map_update_elem(&opening, key, state, BPF_ANY);
	return bpf_map_lookup_elem(&opening, key);
}

/*
 * What a hook tells `lasthop_pass` in skb->cb: in which direction packets go there (an enum direction), what they begin with, and whether
 * some of them are redirected; then where to.
 */
#define CB_HOOK 0
#define CB_INTO 1
#define HOOK(link, direction) ((direction) | (link) << 1)
#define LINK_OF(hook) ((hook) >> 1 & 1)
#define REDIRECTED 4
/* It was counted before, on its way to a queue in a process, and comes back from there. */
#define RETURNS 8
#define NOWHERE 0

/*
 * Asks the controller to see to the window updates of a flow, unless it does already: each ask turns ASKED over, which only
 * ACKs write, and letting go copies it into `answered`, which only window_update writes. So neither undoes the other. Where the
 * ring is full nothing is turned over, and the next ACK asks again. Waking costs more than anything else here: it is done only
 * where whoever is asked would look more than GRACE_NS too late.
 */
#define GRACE_NS 1000000ull

/*
 * What is before the IP header of a frame, with a VLAN tag that lies beside it; how much that is, 0: there is more than one tag, or it
 * cannot be read.
 */
static __always_inline __u32 copy_link(struct __sk_buff *skb, const struct packet *p, __u8 *link)
{
	__be16 tag[2] = { skb->vlan_proto, __builtin_bswap16(skb->vlan_tci) };

	if (skb->vlan_present && p->ip_at == ETHERNET) {
		__builtin_memcpy(link + MACS, tag, sizeof(tag));
		if (bpf_skb_load_bytes(skb, 0, link, MACS) ||
		    bpf_skb_load_bytes(skb, MACS, link + MACS + TAG, ETHERNET - MACS))
			return 0;
		return ETHERNET + TAG;
	}
	if (p->ip_at == ETHERNET && !bpf_skb_load_bytes(skb, 0, link, ETHERNET))
		return ETHERNET;
	if (p->ip_at == ETHERNET + TAG && !skb->vlan_present && !bpf_skb_load_bytes(skb, 0, link, ETHERNET + TAG))
		return ETHERNET + TAG;
	return 0;
}

/*
 * `data`: where the data go that this ACK is for. Stations are told by frames like this one, on the interface that it leaves by: to
 * connection tracking, a segment in a server's name to a station behind address translation would be another connection's.
 */
static __always_inline void ask(struct __sk_buff *skb, struct flow_state *state, const struct packet *p, __u32 link,
				enum direction data)
{
	struct half *h = &state->half[data];
	__u64 due, looks, now = p->now_ns;
	struct window_ask *ask;

	if ((h->flags & ASKED) != h->answered)
		return;
	due = window_due(state, &in_force, data, now);
	if (due == NOT_DUE)
		return;
	ask = bpf_ringbuf_reserve(&asks, sizeof(*ask), 0);
	if (!ask)
		return;
	ask->key = p->key;
	ask->direction = data;
	ask->due_ns = due;
	ask->ifindex = p->port;
	ask->link_bytes = 0;
	ask->pad = 0;
	if (data == TO_REMOTE && link == LINK_ETHERNET) {
		ask->link_bytes = copy_link(skb, p, ask->link);
		if (!ask->link_bytes) {
			bpf_ringbuf_discard(ask, BPF_RB_NO_WAKEUP);
			return;
		}
	}
	h->flags ^= ASKED;
	looks = READ_ONCE(in_force.looks_ns);
	bpf_ringbuf_submit(ask, looks > now && looks <= due + GRACE_NS ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

/* One for each direction, so that places in the record are known when it is compiled. */
static __noinline void ask_for_downloads(struct __sk_buff *skb, struct flow_state *state, const struct packet *p)
{
	ask(skb, state, p, LINK_IP, TO_STATION);
}

static __noinline void ask_for_uploads(struct __sk_buff *skb, struct flow_state *state, const struct packet *p)
{
	ask(skb, state, p, LINK_OF(skb->cb[CB_HOOK]), TO_REMOTE);
}

static __noinline void report_moved(const struct flow_key *key)
{
	bpf_ringbuf_output(&moved, (void *)key, sizeof(*key), BPF_RB_NO_WAKEUP);
}

/*
 * Once in a reading, after what the packet has written: so who reads has either seen that, or finds it noted the next time. Two at once may
 * both be told.
 */
static __always_inline void note_moved(struct flow_state *state, const struct flow_key *key)
{
	__u32 readings = READ_ONCE(in_force.readings);

	if (state->noted == readings)
		return;
	state->noted = readings;
	report_moved(key);
}

static __always_inline int decide_tcp(struct flow_state *state, struct packet *p, enum direction d)
{
	struct verdict verdict;

	if (!state || !p)
		return TABLE_FULL;
	verdict = on_packet(state, &in_force, d, p, p->now_ns);
	p->lowered = verdict.window;
	return verdict.reason;
}

/* One for each direction, so that places in the record are known when it is compiled. */
__noinline int decide_down(struct flow_state *state, struct packet *p)
{
	return decide_tcp(state, p, TO_STATION);
}

__noinline int decide_up(struct flow_state *state, struct packet *p)
{
	return decide_tcp(state, p, TO_REMOTE);
}

static __always_inline int decide_either(struct flow_state *state, struct packet *p, __u32 d)
{
	return d == TO_STATION ? decide_down(state, p) : decide_up(state, p);
}

/*
 * A connection that is in use and fits is heard of again by then: so long is a first retransmission timeout (RFC 6298 section 2.1).
 * Where packets passed elsewhere for a while none fits any more, and it is picked up anew.
 */
#define SILENCE_NS 1000000000ull

/* Whether another connection between the same ports, which is assured, takes the place of the one that is known. */
static __always_inline int takes_place(const struct flow_state *another, const struct flow_state *living, __u64 now)
{
	if (another->half[0].flags & another->half[1].flags & SYN_SEEN)
		return living->last_seen_ns < another->first_seen_ns;
	return since(now, living->last_seen_ns) > SILENCE_NS;
}

/*
 * A segment of no connection that is known, or that does not fit the one that is. What it belongs to is assured by itself, and takes
 * that one's place only if nothing of that one has passed since it began; if nobody saw it begin, for a while.
 */
static __noinline int on_stranger(struct packet *p, __u32 d)
{
	struct flow_state *state = bpf_map_lookup_elem(&opening, &p->key);
	struct flow_state *living = bpf_map_lookup_elem(&flows, &p->key);
	int reason = INVALID;

	if (state)
		reason = decide_either(state, p, d);
	/* The answer to another SYN than the one that waits for it. */
	if (state && reason == INVALID && p->flags & TCP_SYN)
		return INVALID;
	if (reason == INVALID) {
		state = open_flow(&p->key, p->now_ns);
		if (!state)
			return TABLE_FULL;
		reason = decide_either(state, p, d);
	}
	if (!state->assured)
		return living && reason != REWRITTEN ? INVALID : reason;
	state->noted = READ_ONCE(in_force.readings);
	if (living && !takes_place(state, living, p->now_ns))
		reason = INVALID;
	else if (bpf_map_update_elem(&flows, &p->key, state, BPF_ANY))
		reason = TABLE_FULL;
	else
		report_moved(&p->key);
	if (reason == TABLE_FULL)
		note_refused(&p->key);
	bpf_map_delete_elem(&opening, &p->key);
	return reason;
}

#define CHUNK 512 /* divides into words of four bytes */

/*
 * Whether the checksum of a segment is right, header and payload. A loop for more of it would be too much for the verifier, and one by
 * callbacks needs a kernel that compiles programs.
 */
static __noinline int sum_segment(struct __sk_buff *skb, struct frame *f, struct packet *p)
{
	__u32 at = p->l4_at, left = p->header + p->payload_bytes;
	__s64 sum = 0;

	for (int i = 0; i < LONGEST_SUMMED / CHUNK && left; i++) {
		__u32 length = min_u32(left, CHUNK);

		left -= length;
		if (copy(skb, at, f, 0, length))
			return 0;
		/* Its last word may be cut off. */
		opaque(length);
		length &= 2 * CHUNK - 1;
		f->bytes[length] = 0;
		f->bytes[length + 1] = 0;
		f->bytes[length + 2] = 0;
		sum = bpf_csum_diff(0, 0, (__be32 *)f->bytes, (length + 3) & (2 * CHUNK - 4), sum);
		at += CHUNK;
		opaque(left);
	}
	return is_intact(p, (__u32)sum);
}

static __always_inline int is_valid(struct __sk_buff *skb, struct frame *f, struct packet *p)
{
	if (!is_verified(p))
		return 1;
	return p->has & HAS_SUM ? is_intact(p, p->sum) : sum_segment(skb, f, p);
}

static __always_inline int on_tcp(struct __sk_buff *skb, __u32 d, struct frame *f, struct packet *p)
{
	struct flow_state *state;
	int reason = INVALID;
	__be16 from, to;

	if (!gate_is_taken(p))
		return NO_ACK;
	if (!is_valid(skb, f, p))
		return INVALID;
	state = bpf_map_lookup_elem(&flows, &p->key);
	if (state) {
		reason = decide_either(state, p, d);
		if (reason != INVALID)
			note_moved(state, &p->key);
		if (p->flags & TCP_ACK && reason != INVALID && in_force.hops[hop_of(state)][!d].updates) {
			if (d == TO_REMOTE)
				ask_for_downloads(skb, state, p);
			else
				ask_for_uploads(skb, state, p);
		}
	}
	if (reason == INVALID)
		reason = on_stranger(p, d);
	if (reason != REWRITTEN)
		return reason;
	from = __builtin_bswap16(p->window);
	to = __builtin_bswap16(p->lowered);
	/* Without BPF_F_PSEUDO_HDR: right for merged packets and for CHECKSUM_PARTIAL, where it changes nothing. */
	if (bpf_l4_csum_replace(skb, p->l4_at + 16, from, to, sizeof(to))) {
		state = bpf_map_lookup_elem(&flows, &p->key);
		if (state)
			not_rewritten(&state->half[!d], p);
		return UNWRITABLE;
	}
	bpf_skb_store_bytes(skb, p->l4_at + 14, &to, sizeof(to), 0);
	return REWRITTEN;
}

static __noinline struct udp_state *open_udp(struct __sk_buff *skb, const struct packet *p)
{
	/* The same room: on the stack it would be too much below two callers. */
	__u32 zero = 0;
	struct udp_state *state = (struct udp_state *)bpf_map_lookup_elem(&fresh, &zero);
	__u32 head[2];

	_Static_assert(sizeof(struct udp_state) <= sizeof(struct flow_state), "room for a new flow");
	if (!state)
		return 0;
	udp_open(state, p->now_ns);
	state->quic = !bpf_skb_load_bytes(skb, p->l4_at + 8, quic_head(head), QUIC_HEAD) && begins_quic(head);
	bpf_map_update_elem(&udp_flows, &p->key, state, BPF_NOEXIST);
	return bpf_map_lookup_elem(&udp_flows, &p->key);
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

__noinline int decide_udp(struct udp_state *state, struct packet *p, __u32 d)
{
	if (!state || !p)
		return TABLE_FULL;
	state->port = p->port;
	state->hop = p->hop;
	return on_datagram(state, &in_force, d & 1, p, p->now_ns);
}

static __always_inline int on_udp(struct __sk_buff *skb, __u32 d, struct packet *p)
{
	struct udp_state *state;
	int reason;

	if (!p->header)
		return UDP;
	state = bpf_map_lookup_elem(&udp_flows, &p->key);
	if (!state) {
		if (!udp_is_full(p))
			return UDP;
		state = open_udp(skb, p);
		if (!state)
			return TABLE_FULL;
	}
	reason = decide_udp(state, p, d);
	if (reason == UDP_MARKED)
		set_ce(skb, p);
	return reason;
}

/*
 * UDP flows to stations behind radios, which tell classes apart. Who sends to many ports drives out others like him, and so may drive out a
 * game, which then has the class of all until it was seen for a second: as if there were no classes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key);
	__type(value, struct light_flow);
} light_flows SEC(".maps");

/*
 * Whether a radio is behind an interface towards stations, by the lower bits of its number, and whether classes are in force there. The first
 * is whether any is: with none nothing is looked up. Last, how many packets were given a class.
 */
enum radio { NO_RADIO, COUNTS, CLASSES };
struct radios {
	__u8 any;
	__u8 pad[7];
	__u8 behind[PLACES_OF_PORTS];
};
struct radios radios SEC(".data.radios");
__u64 classed SEC(".data.classed");

/* The upper six bits of the second byte, in IPv6 of its high half. */
static __always_inline __u32 dscp_of(struct __sk_buff *skb, const struct packet *p)
{
	__be16 first;
	__u32 begin;

	if (bpf_skb_load_bytes(skb, p->ip_at, &first, sizeof(first)))
		return 1; /* another class than best effort, for all that is known */
	begin = __builtin_bswap16(first);
	return (p->version == 4 ? begin : begin >> 4) >> 2 & 63;
}

static __noinline struct light_flow *open_light(const struct flow_key *key)
{
	struct light_flow fresh = {};

	bpf_map_update_elem(&light_flows, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&light_flows, key);
}

/* 256 and a user priority: Linux takes it for that before it looks at the packet (cfg80211_classify8021d). */
#define USER_PRIORITY 256

static __noinline __u32 class_of(struct packet *p, __u32 hook, __u32 dscp)
{
	struct light_flow *flow = bpf_map_lookup_elem(&light_flows, &p->key);

	if (hook & RETURNS)
		return flow ? light_given(flow, dscp) : 0;
	flow = flow ? flow : open_light(&p->key);
	return flow ? light_on_datagram(flow, p, dscp, p->port, p->now_ns) : 0;
}

static __always_inline void put_class(struct __sk_buff *skb, struct packet *p, __u32 hook)
{
	__u8 radio = READ_ONCE(radios.behind[p->port & (PLACES_OF_PORTS - 1)]);
	__u32 priority;

	if (radio == NO_RADIO || !p->header)
		return;
	priority = class_of(p, hook, dscp_of(skb, p));
	/* A priority of this kind is somebody else's word on its class. One that is on its way to a process would lose it there. */
	if (!priority || radio != CLASSES || hook & REDIRECTED ||
	    (skb->priority >= USER_PRIORITY && skb->priority < USER_PRIORITY + 8) || is_stale(&in_force, p->now_ns))
		return;
	skb->priority = USER_PRIORITY + priority;
	__sync_fetch_and_add(&classed, 1);
}

/*
 * Stations behind hooked ports of bridges: Ethernet address and two zero bytes, and the number of the port. What one of them sends
 * to another passes two hooks: it is counted at the second, its egress. At the first only bare acknowledgments are looked at, for
 * it is there that a window is lowered.
 */
#define LOCAL_STATIONS 4096
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LOCAL_STATIONS);
	__type(key, __u64);
	__type(value, __u32);
} local_macs SEC(".maps");

/* How many there are: with none nothing is looked up. */
__u32 locals SEC(".data.locals");

static __always_inline int is_local(struct __sk_buff *skb)
{
	/* The address that the frame is for, and two zero bytes. */
	__u64 mac = 0;

	return !bpf_skb_load_bytes(skb, 0, &mac, 6) && bpf_map_lookup_elem(&local_macs, &mac);
}

static __always_inline int is_bare_ack(int result, const struct packet *p)
{
	return result == PARSED_TCP && !p->payload_bytes &&
	       (p->flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK;
}

static __noinline void leaves_for_another(struct packet *p)
{
	struct flow_state *state = bpf_map_lookup_elem(&flows, &p->key);

	if (state)
		passes_elsewhere(state, p, p->now_ns);
}

/*
 * Packets that went on as they were because something of this object was gone. They are counted by an atomic operation, since the compiler
 * for 32-bit Arm has neither those nor the calls between functions below: so a hook and what it jumps to are interpreted there, both,
 * where one that was compiled could not jump to one that was not.
 */
__u64 unserved SEC(".data.unserved");

static __always_inline int go_on_unserved(void)
{
	__sync_fetch_and_add(&unserved, 1);
	return GO_ON;
}

/* Everything that is done for a packet, whichever hook it passes. */
SEC("tc")
int lasthop_pass(struct __sk_buff *skb)
{
	__u32 hook = skb->cb[CB_HOOK], d = hook & 1, link = LINK_OF(hook), zero = 0;
	struct per_cpu *here = bpf_map_lookup_elem(&per_cpu, &zero);
	struct packet *p;
	int result, local;

	if (!here)
		return go_on_unserved();
	p = &here->packet;
	p->now_ns = clock_ns(skb);
	p->port = skb->ifindex;
	p->hop = hop_behind[p->port & (PLACES_OF_PORTS - 1)];
	result = parse_skb(skb, &here->frame, link, d, p);
	if (result == UDP && d == TO_STATION && radios.any)
		put_class(skb, p, hook);
	if (hook & RETURNS)
		return GO_ON;
	local = locals && d == TO_REMOTE && link == LINK_ETHERNET && is_local(skb);
	if (d == TO_REMOTE && hook & REDIRECTED && is_bare_ack(result, p))
		return bpf_redirect(skb->cb[CB_INTO], 0);
	if (local && !is_bare_ack(result, p)) {
		if (result == PARSED_TCP)
			leaves_for_another(p);
		return GO_ON;
	}
	if (result == PARSED_TCP)
		result = on_tcp(skb, d, &here->frame, p);
	else if (result == UDP)
		result = on_udp(skb, d, p);
	if (!local && result >= 0 && result < REASONS) {
		count(&here->counters, d, p, result);
		note_large(p);
	}
	if (result == UDP_DROPPED)
		return TC_ACT_SHOT;
	return d == TO_STATION && hook & REDIRECTED ? bpf_redirect(skb->cb[CB_INTO], 0) : GO_ON;
}

int lasthop_pass(struct __sk_buff *skb);
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, int(struct __sk_buff *skb));
} passes SEC(".maps") = { .values = { [0] = &lasthop_pass } };

#define COMES_BACK 0xffffffff
#define STACK_OF_PASS 256 /* and more; crates/live/tests/verifier.rs holds it */

static __always_inline int pass(struct __sk_buff *skb, enum link_layer link, enum direction d, __u32 into)
{
	/* Where nothing is compiled to machine code, Linux 6.10 and later run the program that is jumped to on the stack of this one. */
	volatile __u64 room[STACK_OF_PASS / 8];

	asm volatile("" : : "r"(room)); /* all of it, not what is used */
	room[0] = 0;
	skb->cb[CB_HOOK] = HOOK(link, d) | (into == NOWHERE ? 0 : into == COMES_BACK ? RETURNS : REDIRECTED);
	if (into != NOWHERE)
		skb->cb[CB_INTO] = into;
	bpf_tail_call(skb, &passes, 0);
	return go_on_unserved();
}

SEC("tc")
int lasthop_ingress(struct __sk_buff *skb)
{
	return pass(skb, LINK_ETHERNET, TO_REMOTE, NOWHERE);
}

SEC("tc")
int lasthop_egress(struct __sk_buff *skb)
{
	return pass(skb, LINK_ETHERNET, TO_STATION, NOWHERE);
}

SEC("tc")
int lasthop_ingress_ip(struct __sk_buff *skb)
{
	return pass(skb, LINK_IP, TO_REMOTE, NOWHERE);
}

SEC("tc")
int lasthop_egress_ip(struct __sk_buff *skb)
{
	return pass(skb, LINK_IP, TO_STATION, NOWHERE);
}

#include "divert.h"

/* What everything else is compared with. */
SEC("tc")
int nothing(struct __sk_buff *skb)
{
	(void)skb;
	return GO_ON;
}

#include "calls.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
