/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * CHAP's flows and their order, without the packets themselves: crates/core/src/credit restated for a queue discipline.
 *
 * Packets are numbers; whoever includes this keeps what belongs to them. All memory is here from the start: nothing is
 * allocated per packet, and nothing can be lost for want of it. Everything runs under the lock of the queue discipline,
 * so nothing here is atomic. Two heaps of four children per node hold the backlogged flows, the one to be served first
 * and the one to be dropped from first: the kernel's red-black tree would need an allocation for each flow that becomes
 * backlogged, and could not be run outside the kernel, where a test holds all of this equal to Rust.
 *
 * Different from Rust on purpose: flows live in sets of eight places, so what leaves for a new one is the least recently
 * seen of its set without packets; and stations share 64 accounts for what may not have one of its own.
 */
#ifndef LASTHOP_CHAP_H
#define LASTHOP_CHAP_H

#include "chap_layout.h"
#include "credit.h"

/* Flows, then one shared account per station; a power of two, as is the number of packets: a mask is a bound. */
#define CHAP_SLOTS 4096
#define CHAP_FLOWS (CHAP_SLOTS - CHAP_STATIONS)
#define CHAP_DIRECTIONS 8
#define CHAP_SETS (CHAP_FLOWS / CHAP_DIRECTIONS)
/* One more than the limit may be: the newcomer is in before another goes. */
#define CHAP_PACKETS 4096
#define CHAP_NONE 0xffffffffu
/* Steps from the last place of a heap of four children that holds CHAP_SLOTS to its top. */
#define CHAP_DEPTH 6

/* In BPF a global function, which the verifier walks once and not at every call. */
#ifdef __bpf__
#define APART __noinline
#else
#define APART static __attribute__((unused))
#endif

struct chap_rank {
	struct credit_key key;
	__u64 since; /* which of equal ones has been backlogged for longer */
};

struct chap_entry {
	struct chap_rank rank;
	__u64 slot;
};

enum chap_heap { RICHEST = 0, POOREST = 1 };

struct chap_flow {
	__u64 key;
	struct account account;
	__u64 since;
	__u64 seen_ns;
	__u32 head;
	__u32 tail;
	__u32 packets;
	__u32 is_known;
	__u32 at[2]; /* place in each heap, while there are packets */
};

struct chap_packet {
	__u32 next;
	__u32 bytes;
	__u32 segments;
	__u32 station;
};

struct chap {
	__u64 boosts;
	__u64 ticket;
	__u64 next_ns; /* paced: when the next packet may leave */
	__u32 backlogged;
	__u32 queued;
	__u32 free;
	__u32 in_use;
	struct bucket bucket[CHAP_STATIONS];
	struct chap_flow flow[CHAP_SLOTS];
	struct chap_packet packet[CHAP_PACKETS];
	struct chap_entry heap[2][CHAP_SLOTS];
};

static struct chap chap;
struct chap_stats chap_stats SEC(".bss.figures");
struct chap_control chap_control SEC(".bss.control");

/* Keeps the compiler from proving a bound by a copy of the value that the verifier does not follow. */
#ifdef __bpf__
#define opaque(v) asm volatile("" : "+r"(v))
#else
#define opaque(v) ((void)(v))
#endif

/* Places by number. What is no number of a place is caught before; the mask is for the verifier. */
static __always_inline struct chap_flow *flow_at(__u64 slot)
{
	opaque(slot);
	return &chap.flow[slot & (CHAP_SLOTS - 1)];
}

static __always_inline struct chap_packet *packet_at(__u64 number)
{
	opaque(number);
	return &chap.packet[number & (CHAP_PACKETS - 1)];
}

static __always_inline struct chap_entry *entry_at(__u64 which, __u64 at)
{
	opaque(which);
	opaque(at);
	return &chap.heap[which & 1][at & (CHAP_SLOTS - 1)];
}

/* Less is nearer to the top. */
static __always_inline int is_less(const struct chap_rank *a, const struct chap_rank *b)
{
	if (a->key.exponent != b->key.exponent)
		return a->key.exponent < b->key.exponent;
	if (a->key.mantissa != b->key.mantissa)
		return a->key.mantissa < b->key.mantissa;
	return a->since < b->since;
}

/* A flow's entry; the poorest is on top of the other heap, so ranks are upside down there. */
static __always_inline struct chap_entry entry_of(__u32 which, __u32 slot)
{
	const struct chap_flow *flow = flow_at(slot);
	struct credit_key key = key_of(&flow->account);
	__u64 turn = which == POOREST ? ~0ull : 0;

	return (struct chap_entry){
		.rank = { .key = { key.exponent ^ turn, key.mantissa ^ turn }, .since = flow->since ^ turn },
		.slot = slot,
	};
}

static __always_inline void heap_put(__u32 which, __u32 at, const struct chap_entry *entry)
{
	*entry_at(which, at) = *entry;
	flow_at(entry->slot)->at[which & 1] = at;
}

/* Puts a slot at or above a place, where its rank belongs. */
APART int heap_rise(__u32 which, __u32 at, __u32 slot)
{
	struct chap_entry entry = entry_of(which, slot);

	for (int level = 0; level < CHAP_DEPTH && at > 0; level++) {
		__u32 above = (at - 1) / 4;
		const struct chap_entry *parent = entry_at(which, above);

		if (!is_less(&entry.rank, &parent->rank))
			break;
		heap_put(which, at, parent);
		at = above;
	}
	heap_put(which, at, &entry);
	return 0;
}

/* The least of up to four children from `first` on, of which there is at least one. */
APART __u32 heap_least(__u32 which, __u32 first, __u32 count)
{
	__u32 least = first;

	for (__u32 child = first + 1; child < first + 4; child++)
		if (child < count && is_less(&entry_at(which, child)->rank, &entry_at(which, least)->rank))
			least = child;
	return least;
}

/* Puts a slot at or below a place of a heap of `count`. */
APART int heap_sink(__u32 which, __u32 at, __u32 slot, __u32 count)
{
	struct chap_entry entry = entry_of(which, slot);

	for (int level = 0; level < CHAP_DEPTH && at * 4 + 1 < count; level++) {
		__u32 below = heap_least(which, at * 4 + 1, count);
		const struct chap_entry *least = entry_at(which, below);

		if (!is_less(&least->rank, &entry.rank))
			break;
		heap_put(which, at, least);
		at = below;
	}
	heap_put(which, at, &entry);
	return 0;
}

/* The last entry fills the place of one that left; `left` are there without it. */
APART int heap_remove(__u32 which, __u32 at, __u32 left)
{
	const struct chap_entry *last = entry_at(which, left);

	if (at >= left)
		return 0; /* it was the last */
	if (at > 0 && is_less(&last->rank, &entry_at(which, (at - 1) / 4)->rank))
		return heap_rise(which, at, last->slot);
	return heap_sink(which, at, last->slot, left);
}

/* The slot on top, of a heap that is not empty. */
static __always_inline __u32 heap_first(enum chap_heap which)
{
	return chap.heap[which][0].slot;
}

/* The number of the station that a frame goes to, by its MAC address. */
static __always_inline __u32 chap_station(const __u8 *mac)
{
	__u64 address = (__u64)mac[0] << 40 | (__u64)mac[1] << 32 | (__u64)mac[2] << 24 | (__u64)mac[3] << 16 |
			(__u64)mac[4] << 8 | mac[5];

	return mix(chap_control.secret ^ address) & (CHAP_STATIONS - 1);
}

/* Everything forgotten, every packet free: first each packet and each slot, then the rest. */
static __always_inline void chap_clear_packet(__u32 number)
{
	packet_at(number)->next = number + 1 < CHAP_PACKETS ? number + 1 : CHAP_NONE;
}

static __always_inline void chap_clear_slot(__u32 slot)
{
	*flow_at(slot) = (struct chap_flow){ .head = CHAP_NONE, .tail = CHAP_NONE };
}

static __always_inline void chap_clear(void)
{
	chap.boosts = chap.ticket = chap.next_ns = 0;
	chap.backlogged = chap.queued = chap.free = 0;
	__builtin_memset(chap.bucket, 0, sizeof(chap.bucket));
	chap_stats.flows = chap_stats.queued = chap_stats.backlogged = 0;
}

/* The account that a station's flows share when they may not have their own. */
static __always_inline __u32 share(__u64 now, __u32 station)
{
	__u32 slot = CHAP_FLOWS + (station & (CHAP_STATIONS - 1));
	struct chap_flow *flow = flow_at(slot);

	chap_stats.shared++;
	if (!flow->is_known || (!flow->packets && now - flow->seen_ns > chap_control.active_ns)) {
		flow->account = account_new(chap_control.increment_ns, chap.boosts);
		flow->is_known = 1;
	}
	return slot;
}

/* A flow without an account gets one at `slot`, if it may. */
APART __u32 chap_admit(__u64 now, __u64 key, __u32 station, __u32 slot)
{
	struct chap_flow *flow = flow_at(slot);
	__u64 number = station & (CHAP_STATIONS - 1);

	opaque(number);
	if (flow_at(CHAP_FLOWS + number)->packets) {
		chap_stats.shared++;
		return CHAP_FLOWS + number;
	}
	if (slot >= CHAP_FLOWS) {
		chap_stats.no_room++;
		return share(now, station);
	}
	if (!bucket_take(&chap.bucket[number & (CHAP_STATIONS - 1)], now, chap_control.interval_ns,
			 chap_control.burst_ns)) {
		chap_stats.over_cap++;
		return share(now, station);
	}
	if (!flow->is_known)
		chap_stats.flows++;
	else if (now - flow->seen_ns <= chap_control.active_ns)
		chap_stats.evicted++;
	chap_stats.admitted++;
	flow->key = key;
	flow->is_known = 1;
	flow->account = account_new(chap_control.increment_ns, chap.boosts);
	return slot;
}

/* The slot that a packet of this key goes to. */
APART __u32 chap_slot(__u64 now, __u64 key, __u32 station)
{
	__u32 first = ((mix(key) >> 32) * CHAP_SETS >> 32) * CHAP_DIRECTIONS, chosen = CHAP_NONE;
	__u64 oldest = ~0ull;

	for (__u32 slot = first; slot < first + CHAP_DIRECTIONS; slot++) {
		struct chap_flow *flow = flow_at(slot);
		__u64 seen;

		if (flow->is_known && flow->key == key) {
			if (flow->packets || now - flow->seen_ns <= chap_control.active_ns)
				return slot;
			/* Silent for too long: it starts anew, in the same place. */
			flow->is_known = 0;
			chap_stats.flows--;
		}
		if (flow->packets)
			continue;
		seen = flow->is_known ? flow->seen_ns : 0;
		if (seen < oldest) {
			chosen = slot;
			oldest = seen;
		}
	}
	return chap_admit(now, key, station, chosen);
}

/* A free packet's number, still free; CHAP_NONE when all are taken. */
static __always_inline __u32 chap_free_packet(void)
{
	return chap.free;
}

/* Says what a free packet is, before it is pushed. */
static __always_inline void chap_describe(__u32 number, __u32 bytes, __u32 segments, __u32 station)
{
	struct chap_packet *packet = packet_at(number);

	packet->bytes = bytes;
	packet->segments = segments;
	packet->station = station;
}

/* Appends the free packet to a flow. */
APART int chap_push(__u64 now, __u32 slot, __u32 number)
{
	struct chap_packet *packet = packet_at(number);
	struct chap_flow *flow = flow_at(slot);

	chap.free = packet->next;
	packet->next = CHAP_NONE;
	flow->seen_ns = now;
	/* Whoever finds nobody waiting gets no burst for the time before. */
	if (!chap.queued && chap.next_ns < now)
		chap.next_ns = now;
	chap_stats.queued = ++chap.queued;
	if (flow->packets++) {
		packet_at(flow->tail)->next = number;
		flow->tail = number;
		return 0;
	}
	flow->head = flow->tail = number;
	flow->since = ++chap.ticket;
	heap_rise(RICHEST, chap.backlogged, slot);
	heap_rise(POOREST, chap.backlogged, slot);
	chap_stats.backlogged = ++chap.backlogged;
	return 0;
}

/* Takes the first packet of a backlogged flow, and charges the flow: 0 for a dropped packet. Its number stays taken. */
APART __u32 chap_take_head(__u64 now, __u32 slot, __u64 cost_ns)
{
	struct chap_flow *flow = flow_at(slot);
	__u32 number = flow->head;

	flow->head = packet_at(number)->next;
	flow->seen_ns = now;
	flow->packets--;
	chap_stats.queued = --chap.queued;
	if (cost_ns)
		charge(&flow->account, chap.boosts, cost_ns);
	if (!flow->packets) {
		chap_stats.backlogged = --chap.backlogged;
		heap_remove(RICHEST, flow->at[RICHEST], chap.backlogged);
		heap_remove(POOREST, flow->at[POOREST], chap.backlogged);
	} else if (cost_ns) {
		/* A charge makes poorer: down in one heap, up in the other. */
		heap_sink(RICHEST, flow->at[RICHEST], slot, chap.backlogged);
		heap_rise(POOREST, flow->at[POOREST], slot);
	}
	return number;
}

static __always_inline void chap_release(__u32 number)
{
	packet_at(number)->next = chap.free;
	chap.free = number;
}

/* Channel time of a packet, ns. */
static __always_inline __u64 chap_cost(const struct chap_packet *packet)
{
	const struct chap_rate *own = &chap_control.station[packet->station & (CHAP_STATIONS - 1)];
	const struct chap_rate *rate = own->byte_ns_q16 ? own : &chap_control.rate;
	__u64 header = chap_control.header_bytes, bytes = packet->bytes > header ? packet->bytes - header : 0;
	__u64 cost = ((bytes * rate->byte_ns_q16) >> 16) + packet->segments * rate->packet_ns;

	return cost ? cost : 1;
}

static __always_inline int chap_is_empty(void)
{
	return !chap.queued;
}

/* Somebody has to go for the newcomer. */
static __always_inline int chap_is_over_limit(void)
{
	return chap.queued > chap_control.limit;
}

/* The packet to be sent now, and what it costs; there is one. Its number stays taken. */
static __always_inline __u32 chap_next(__u64 now, __u64 *cost_ns)
{
	__u32 slot = heap_first(RICHEST);
	const struct chap_flow *flow = flow_at(slot);

	if (is_exhausted(debt_at(&flow->account, chap.boosts), chap_control.increment_ns))
		chap_stats.boosts = ++chap.boosts;
	*cost_ns = chap_cost(packet_at(flow->head));
	return chap_take_head(now, slot, *cost_ns);
}

/* Whether the controller is alive; where it is not, nothing waits. */
static __always_inline int chap_is_paced(__u64 now)
{
	return now - chap_control.heartbeat_ns < CHAP_STALE_NS || now < chap_control.heartbeat_ns;
}

/* When a packet may leave, and what its leaving does to the next. */
static __always_inline void chap_pace(__u64 now, __u64 cost_ns)
{
	__u64 slack = chap_control.slack_ns;
	__u64 earliest = now > slack ? now - slack : 0;

	chap.next_ns = (chap.next_ns > earliest ? chap.next_ns : earliest) + cost_ns;
}

#endif
