/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * What is measured and decided per datagram: crates/core/src/fastpath/udp.rs restated, function for function.
 *
 * The law stands there. Pure functions over struct udp_state, as in fastpath.h.
 */
#ifndef LASTHOP_UDP_H
#define LASTHOP_UDP_H

#include "fastpath.h"

#define FULL_BYTES 1200
#define PAUSE_NS 5000000ull
#define LONGEST_PERIOD_NS (1ull << 27)
#define LONGEST_GAP_NS (1ull << PACE_SHIFT)
#define LARGEST_DEPTH (1u << 27)

/* Only such a packet opens a flow. */
static __always_inline int udp_is_full(const struct packet *p)
{
	return p->ip_bytes >= (__u64)FULL_BYTES * p->segments;
}

#define QUIC_LONG 0xc0
#define QUIC_1 __builtin_bswap32(1)
#define QUIC_2 __builtin_bswap32(0x6b3343cf)
/* wire::begins_quic, of a head whose version is aligned. */
#define QUIC_HEAD 5
#define quic_head(h) ((__u8 *)(h) + 3)
#define begins_quic(h) (*quic_head(h) >= QUIC_LONG && ((h)[1] == QUIC_1 || (h)[1] == QUIC_2))

static __always_inline void udp_open(struct udp_state *state, __u64 now)
{
	clear((__u64 *)state, sizeof(*state));
	state->first_seen_ns = now;
	state->last_seen_ns = now;
}

static __always_inline void udp_begin_train(struct udp_half *h, __u64 now)
{
	__u64 between = since(now, h->train_ns);
	__u32 distance = between, period = h->period_ns, off;

	h->train_ns = now;
	h->trains++;
	if (between > LONGEST_PERIOD_NS)
		return;
	if (!period) {
		h->period_ns = distance;
		return;
	}
	off = distance > period ? distance - period : period - distance;
	if (off <= period / 4)
		h->regular++;
	h->period_ns = distance > period ? period + off / 4 : period - off / 4;
}

static __always_inline void udp_measure(struct udp_half *h, const struct packet *p, __u64 now)
{
	__u64 gap = since(now, h->last_ns);

	h->bytes += p->ip_bytes;
	h->packets += p->segments;
	if (udp_is_full(p))
		h->full_bytes += p->ip_bytes;
	if (!h->last_ns) {
		h->train_ns = now;
	} else if (gap >= PAUSE_NS) {
		h->pause_ns += gap < LONGEST_GAP_NS ? gap : LONGEST_GAP_NS;
		udp_begin_train(h, now);
	}
}

static __always_inline void udp_drain(struct udp_half *h, __u32 rate_bytes, __u64 now)
{
	if (!h->drained_ns) {
		h->level_bytes = 0;
		h->next_bytes = 0;
		h->told_ns = 0;
	} else {
		__u64 gap = since(now, h->drained_ns);
		__u64 drained = rate_bytes * (gap < LONGEST_GAP_NS ? gap : LONGEST_GAP_NS) >> PACE_SHIFT;

		h->level_bytes = h->level_bytes > drained ? h->level_bytes - (__u32)drained : 0;
	}
	h->drained_ns = now ? now : 1;
}

static __always_inline enum reason udp_decide(struct udp_half *h, const struct packet *p, int stale, int dry_run,
					      __u64 now)
{
	struct udp_plan plan = h->plan;
	__u32 depth = min_u32(max_u32(plan.depth_bytes, 1), LARGEST_DEPTH);
	__u32 ahead;
	int answers, stop, signal, mark;

	if (stale || !plan.rate_bytes) {
		h->drained_ns = 0;
		return plan.rate_bytes ? STALE : UDP;
	}
	udp_drain(h, plan.rate_bytes, now);
	ahead = h->level_bytes + depth / 2;
	answers = h->told_ns && since(now, h->told_ns) < plan.answer_ns;
	h->next_bytes = max_u32(answers ? ahead : min_u32(h->next_bytes, ahead), depth);
	stop = h->level_bytes >= min_u32(max_u32(plan.most_bytes, 1), LARGEST_DEPTH);
	signal = stop || h->level_bytes >= h->next_bytes;
	if (signal && !stop) {
		h->told_ns = now;
		h->next_bytes = ahead;
	}
	mark = signal && !stop && p->ecn;
	if (!signal || mark)
		h->level_bytes += min_u32(p->ip_bytes, LARGEST_DEPTH);
	if (!signal)
		return UDP_WITHIN_PLAN;
	if (dry_run)
		return UDP_WOULD_STEER;
	if (mark) {
		h->marked += p->segments;
		return UDP_MARKED;
	}
	h->dropped += p->segments;
	h->dropped_bytes += p->ip_bytes;
	return UDP_DROPPED;
}

/* UDP_MARKED: set CE. UDP_DROPPED: throw it away. Else: leave it as it is. */
static __always_inline enum reason on_datagram(struct udp_state *state, const struct control *control, enum direction d,
					       const struct packet *p, __u64 now)
{
	struct udp_half *h = &state->half[d];
	int stale = since(now, control->heartbeat_ns) > STALE_NS;
	enum reason reason;

	state->last_seen_ns = now;
	udp_measure(h, p, now);
	reason = udp_decide(h, p, stale, control->dry_run != 0, now);
	h->last_ns = now;
	return reason;
}

#endif
