/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * Who may change what is known of a connection: crates/core/src/fastpath/gate.rs restated, where the law stands; and what all of the
 * fast path reads segments, records and times by.
 */
#ifndef LASTHOP_GATE_H
#define LASTHOP_GATE_H

#include "wire.h"

/* A field that packets on other processors write, or the controller. */
#define READ_ONCE(field) (*(const volatile __typeof__(field) *)&(field))
#define WRITE_ONCE(field, value) (*(volatile __typeof__(field) *)&(field) = (value))

static __always_inline __u64 since(__u64 now, __u64 then)
{
	return now > then ? now - then : 0;
}

static __always_inline __u32 sequence_length(const struct packet *p)
{
	return p->payload_bytes + !!(p->flags & TCP_SYN) + !!(p->flags & TCP_FIN);
}

static __always_inline __u32 end_of(const struct packet *p)
{
	return p->seq + sequence_length(p);
}

/* The clock of stamps; without timestamps advertised_tsval holds it. */
static __always_inline __u32 stamp_clock(__u64 now)
{
	return now >> STAMP_SHIFT;
}

static __always_inline stamp_t stamp_new(__u32 value, __u64 now)
{
	return (__u64)value << 32 | stamp_clock(now);
}

static __always_inline stamp_t stamp_of(stamp_t stamp, __u32 value)
{
	return (__u64)value << 32 | (__u32)stamp;
}

static __always_inline __u32 stamp_value(stamp_t stamp)
{
	return stamp >> 32;
}

static __always_inline __u32 stamp_ticks(stamp_t stamp, __u64 now)
{
	return stamp_clock(now) - (__u32)stamp;
}

static __always_inline __u64 stamp_age(stamp_t stamp, __u64 now)
{
	return (__u64)stamp_ticks(stamp, now) << STAMP_SHIFT;
}

#define REACH 66000u
#define LARGEST_REACH (1u << 30)
#define LARGEST_FLIGHT (1u << 24)
#define OVERTAKEN (1u << 16)
#define HELD_UP (1u << 22)

static __always_inline __u32 gate_reach(const struct half *h)
{
	if (!(h->flags & SCALE_KNOWN))
		return LARGEST_REACH;
	return min_u32(max_u32((__u32)h->last_window << (h->scale & 15) << 1, REACH), LARGEST_REACH);
}

/* Nearly every number of a segment is one of those. */
static __always_inline int gate_is_in_flight(const struct half *h, __u32 number)
{
	__u32 all = h->snd_nxt - h->delivered;

	return all < LARGEST_REACH && number - h->delivered <= all;
}

static __always_inline int gate_data_fits(const struct half *h, const struct packet *p)
{
	__u32 reach;

	if (!(h->flags & EDGE_KNOWN) || (h->data_flags & (DATA_SEEN | ELSEWHERE)) != DATA_SEEN ||
	    gate_is_in_flight(h, p->seq))
		return 1;
	reach = gate_reach(h);
	return !after(h->delivered - reach, end_of(p)) && !after(p->seq, later(h->edge, h->snd_nxt) + reach);
}

static __always_inline int gate_acknowledgment_fits(const struct half *h, const struct packet *p)
{
	__u32 newest = stamp_value(READ_ONCE(h->rtt.ts_newest));
	int seen = h->data_flags & DATA_SEEN, known = h->flags & EDGE_KNOWN;

	if (h->data_flags & ELSEWHERE)
		return 1;
	if (!seen || !known || !gate_is_in_flight(h, p->ack)) {
		if (seen && after(p->ack, h->snd_nxt))
			return 0;
		if (known && after(h->delivered - gate_reach(h), p->ack))
			return 0;
	}
	return !(p->has & HAS_TIMESTAMPS) || !newest || !p->tsecr || !after(p->tsecr, newest);
}

static __always_inline int gate_timestamp_fits(const struct half *h, __u64 idle_ns, const struct packet *p, __u64 now)
{
	stamp_t stamp = READ_ONCE(h->rtt.ts_newest);
	__u32 newest = stamp_value(stamp), passed, most = LARGEST_REACH;
	__u64 idle = idle_ns >> STAMP_SHIFT;

	if (!(p->has & HAS_TIMESTAMPS) || !newest || p->tsval - newest <= HELD_UP)
		return 1;
	passed = min_u32(max_u32(stamp_ticks(stamp, now), idle < most ? (__u32)idle : most), most);
	return !after(newest - OVERTAKEN, p->tsval) && !after(p->tsval, newest + passed + passed / 32 + HELD_UP);
}

static __always_inline int gate_handshake_fits(const struct half *data, const struct half *acked,
					       const struct packet *p)
{
	if (!(p->flags & TCP_ACK) || !(data->flags & SYN_SEEN))
		return 1;
	return !after(acked->delivered, p->ack) && !after(p->ack, acked->snd_nxt);
}

/* Whether a receiver takes such a segment at all. */
static __always_inline int gate_is_taken(const struct packet *p)
{
	return p->flags & (TCP_SYN | TCP_RST | TCP_ACK);
}

/* Whether the segment fits what both ends have shown. */
static __always_inline int gate_fits(const struct flow_state *state, enum direction d, const struct packet *p,
				     __u64 now)
{
	const struct half *data = &state->half[d], *acked = &state->half[!d];

	if (p->flags & TCP_SYN)
		return !state->assured && gate_handshake_fits(data, acked, p);
	if (!gate_data_fits(data, p))
		return 0;
	if (p->flags & TCP_RST)
		return 1;
	return gate_timestamp_fits(data, since(now, state->last_seen_ns), p, now) && gate_acknowledgment_fits(acked, p);
}

/* Whether the other end hears what the segment acknowledges. */
static __always_inline int gate_is_heard(const struct half *h, const struct packet *p)
{
	return !(h->flags & EDGE_KNOWN) || h->data_flags & ELSEWHERE || p->flags & (TCP_RST | TCP_SYN) ||
	       !after(h->acked, end_of(p));
}

/* Whether the segment, which fits, shows that both ends are there. */
static __always_inline int gate_assures(const struct half *acked, const struct packet *p)
{
	return (p->flags & (TCP_ACK | TCP_SYN | TCP_RST)) == TCP_ACK && acked->data_flags & DATA_SEEN &&
	       acked->snd_nxt - p->ack < LARGEST_FLIGHT;
}

#endif
