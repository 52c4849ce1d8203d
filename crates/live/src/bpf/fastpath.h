/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * What is measured and decided per segment: crates/core/src/fastpath restated, function for function.
 *
 * handshake_*: fastpath/handshake.rs. hop_*: fastpath/hop.rs. measure_*: fastpath/measure.rs. window_*: fastpath/window.rs.
 * The laws stand there. Pure functions over struct flow_state and struct control: no helper is called, so the same text runs
 * on the host under test.
 */
#ifndef LASTHOP_FASTPATH_H
#define LASTHOP_FASTPATH_H

#include "gate.h"

#define INITIAL_WINDOW 14600
#define LARGEST_WINDOW (1u << 30)
#define PACE_SHIFT 30
#define LONGEST_PAUSE_NS (1ull << PACE_SHIFT)
#define GIVEN_UP_NS 4000000000ull
#define LONE_NS 30000000u
#define AT_ONCE_NS 50000u
#define BUNCH_BYTES (3 * 1448u)
#define BURST_SHIFT 20
#define MOST_AT_ONCE (1 << 16)
#define MILLISECOND_SHIFT 10 /* from per 2^30 ns to per 2^20 ns */
#define KNOWN_FOR (1u << 10) /* about 1 ms in units of 1024 ns */

struct verdict {
	enum reason reason;
	__u16 window; /* what to write when reason is REWRITTEN */
};

/*
 * struct hop lies in a map that packets on all CPUs write without a lock: each field is read once and written once; no
 * step of the law sees two values of it, and nothing is divided by it. What may go wrong, and how much, stands in fastpath/hop.rs.
 */
static __always_inline void hop_earn(struct hop *hop, __u64 now)
{
	__u32 depth = READ_ONCE(hop->depth_bytes);
	__u64 before = READ_ONCE(hop->earned_ns), pause = since(now, before);
	__u64 earned =
		(__u64)READ_ONCE(hop->rate_bytes) * (pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS) >> PACE_SHIFT;
	__u64 left = READ_ONCE(hop->left_bytes) + (before ? earned : depth);

	WRITE_ONCE(hop->left_bytes, left < depth ? (__u32)left : depth);
	WRITE_ONCE(hop->earned_ns, now ? now : 1);
}

#define AS_IT_LIKES (~0u)

/* What a connection whose data goes over this hop in `d` may advertise with its SYN, bytes, of the `offered`; AS_IT_LIKES: that. */
static __always_inline __u32 hop_start(struct control *control, __u32 hop_number, enum direction d, __u32 offered,
				       __u64 now)
{
	struct hop *hop = &control->hops[hop_number][d];
	__u32 left, window;

	if (!READ_ONCE(hop->depth_bytes))
		return AS_IT_LIKES;
	hop_earn(hop, now);
	left = READ_ONCE(hop->left_bytes);
	window = max_u32(min_u32(left - left / 4, INITIAL_WINDOW), control->default_plan[d].floor_bytes);
	window = min_u32(max_u32(window, 1), offered);
	WRITE_ONCE(hop->left_bytes, left - min_u32(left, window));
	return window;
}

/* Longest pause of a connection within a train. */
static __always_inline __u64 hop_train_gap(__u64 rtt_ns)
{
	return rtt_ns / 2 < LONE_NS ? rtt_ns / 2 : LONE_NS;
}

/* Payload came: `bytes`, of a connection whose own payload before came `gap` ago and whose round trip to both sides is `rtt_ns`. */
static __always_inline void hop_came(struct hop *hop, __u32 bytes, __u64 gap, __u64 rtt_ns, __u64 now)
{
	if (gap <= hop_train_gap(rtt_ns)) {
		WRITE_ONCE(hop->came_ns, READ_ONCE(hop->came_ns) + since(now, READ_ONCE(hop->data_ns)));
		WRITE_ONCE(hop->came_bytes, READ_ONCE(hop->came_bytes) + bytes);
	}
	WRITE_ONCE(hop->data_ns, now);
}

/* An ACK brought `newly` bytes of a connection of which `waiting` had been in flight before, since something arrived `gap` ago. */
static __always_inline void hop_served(struct hop *hop, __u32 newly, __u32 waiting, __u64 gap, __u64 rtt_ns, __u64 now)
{
	if (!newly)
		return;
	if (waiting > newly && gap <= hop_train_gap(rtt_ns)) {
		WRITE_ONCE(hop->served_ns, READ_ONCE(hop->served_ns) + since(now, READ_ONCE(hop->acked_ns)));
		WRITE_ONCE(hop->served_bytes, READ_ONCE(hop->served_bytes) + newly);
	}
	WRITE_ONCE(hop->acked_ns, now);
}

/* The stations brought `bytes` of this direction's data, or acknowledged as many. Three segments at once came in one frame of the medium. */
static __always_inline void hop_brought(struct hop *hop, __u32 bytes, __u64 now)
{
	__u64 before = since(now, READ_ONCE(hop->brought_ns)) < AT_ONCE_NS ? READ_ONCE(hop->bunch_bytes) : 0;
	__u64 together = before + bytes;

	if (!bytes)
		return;
	if (together >= BUNCH_BYTES && before < BUNCH_BYTES) {
		WRITE_ONCE(hop->bunches, READ_ONCE(hop->bunches) + 1);
		WRITE_ONCE(hop->bunched_bytes, READ_ONCE(hop->bunched_bytes) + together);
	} else if (together >= BUNCH_BYTES) {
		WRITE_ONCE(hop->bunched_bytes, READ_ONCE(hop->bunched_bytes) + bytes);
	}
	WRITE_ONCE(hop->bunch_bytes, together);
	WRITE_ONCE(hop->brought_ns, now);
}

/* -1 when neither both SYNs nor conntrack told it. */
static __always_inline int known_scale(const struct half *h)
{
	if (h->flags & SCALE_KNOWN)
		return h->scale & 15;
	return h->conntrack_scale ? (int)min_u32(h->conntrack_scale - 1, LARGEST_SCALE) : -1;
}

static __always_inline __u32 hop_of(const struct flow_state *state)
{
	__u32 hop = state->hop;

	opaque(hop);
	return hop & (HOPS - 1);
}

/* As memset, which takes an instruction for each word. */
static __always_inline void clear(__u64 *word, __u32 bytes)
{
	for (__u32 i = 0; i < bytes / sizeof(*word); i++) {
		opaque(i);
		word[i] = 0;
	}
}

/* FlowState::new. */
static __always_inline void flow_open(struct flow_state *state, const struct control *control, __u64 now)
{
	clear((__u64 *)state, sizeof(*state));
	UNROLLED
	for (int d = 0; d < 2; d++) {
		state->half[d].plan = control->default_plan[d];
		state->half[d].epoch = control->epoch;
		state->half[d].rtt.min_ns = ~0u;
		state->half[d].rtt.epoch = control->epoch;
	}
	state->first_seen_ns = now;
	state->last_seen_ns = now;
}

/* What the receiver of `h` has advertised beyond `from` while the handshake lasts, bytes; 0: nothing. */
static __always_inline __u32 handshake_advertised(const struct half *h, __u32 from)
{
	return h->flags & EDGE_KNOWN ? later(h->edge, from) - from : h->window;
}

static __always_inline void handshake_forget(struct half *h, int repeated)
{
	__u32 window = repeated ? handshake_advertised(h, h->delivered) : 0;

	h->rtt.seq_sent = 0;
	h->rtt.ts_sent = 0;
	h->rtt.ts_newest = 0;
	h->rtt.echo_newest = 0;
	h->snd_nxt = 0;
	h->mss = 0;
	h->edge = 0;
	h->delivered = 0;
	h->window = window;
	h->advertised_edge = 0;
	h->advertised_tsval = 0;
	h->last_window = 0;
	h->scale = repeated ? h->scale : 0;
	h->flags = repeated ? h->flags & SCALE_OFFERED : 0;
	h->credit = 0;
	h->stretch = 0;
	h->paced_ns = 0;
	h->acked_ns = 0;
	h->served_ns = 0;
	h->waiting = 0;
	h->acked = 0;
	h->answered = 0;
	h->conntrack_scale = 0;
	h->data_flags = 0;
}

static __always_inline int handshake_begin(struct half *data, struct half *acked, const struct packet *p)
{
	int seen = data->data_flags & DATA_SEEN;
	int repeated = seen && data->snd_nxt == end_of(p);

	/* A SYN begins anew in any case; a SYN-ACK only if it is not the answer to the SYN that was seen. */
	if (!(p->flags & TCP_ACK) || (seen && !repeated)) {
		/* The other end may answer a SYN sent again by a SYN-ACK sent again: both keep what they advertised. */
		handshake_forget(data, repeated);
		handshake_forget(acked, repeated);
	}
	return repeated;
}

static __always_inline int handshake_data_reaches(const struct half *h, __u32 ack)
{
	return h->data_flags & DATA_SEEN && !after(ack, h->snd_nxt);
}

static __always_inline void handshake_advertise(struct half *h, __u32 ack, __u32 window)
{
	if (h->flags & EDGE_KNOWN)
		return;
	h->flags |= EDGE_KNOWN;
	h->delivered = ack;
	h->acked = ack;
	h->edge = ack + window;
	h->window = 0;
}

static __always_inline void handshake_learn(struct half *data, struct half *acked, const struct packet *p,
					    struct verdict verdict)
{
	__u32 window = p->window;
	int both_seen;

	if (verdict.reason == REWRITTEN) {
		acked->rewritten++;
		window = verdict.window;
	}
	acked->flags |= SYN_SEEN;
	/* Of several SYNs of one connection nobody knows which one arrived. */
	if (!(acked->flags & SCALE_OFFERED))
		acked->scale = 0;
	if (p->has & HAS_SCALE) {
		acked->scale = max_u32(acked->scale, p->scale);
		acked->flags |= SCALE_OFFERED;
	}
	if (!(p->flags & TCP_ACK))
		data->delivered = p->seq + 1;
	if (!(acked->flags & EDGE_KNOWN))
		acked->window = max_u32(acked->window, window);
	else if (handshake_data_reaches(acked, p->ack))
		/* Sent again, and more of it let through than before. */
		acked->edge = later(acked->edge, p->ack + window);
	if (!(p->flags & TCP_ACK))
		return;
	both_seen = data->flags & SYN_SEEN;
	if (!(acked->flags & SCALE_OFFERED) || (both_seen && !(data->flags & SCALE_OFFERED))) {
		acked->scale = 0;
		data->scale = 0;
	} else if (!both_seen) {
		return;
	}
	acked->flags |= SCALE_KNOWN;
	data->flags |= SCALE_KNOWN;
	handshake_advertise(acked, p->ack, window);
	/* What the SYN advertised counts from the byte after this SYN-ACK, whose number is only known now. */
	if (both_seen)
		handshake_advertise(data, p->seq + 1, data->window);
}

enum age { AGE_FRESH, AGE_KNOWN, AGE_OLD };

static __always_inline enum age measure_age(const struct half *h, __u32 sender_rtt_ns, __u64 now)
{
	__u32 age = stamp_clock(now) - h->advertised_tsval;
	__u32 rtt = sender_rtt_ns >> STAMP_SHIFT;

	if (age < rtt)
		return AGE_FRESH;
	return age <= rtt + rtt / 16 + KNOWN_FOR ? AGE_KNOWN : AGE_OLD;
}

static __always_inline int is_at_once(const struct half *h, __u32 sender_rtt_ns, __s32 left)
{
	__u64 rtt_ns = (__u64)h->rtt.last_ns + sender_rtt_ns;

	return rtt_ns && left < MOST_AT_ONCE && (__u64)left * rtt_ns < (__u64)h->window << BURST_SHIFT;
}

static __always_inline void measure_limit(struct half *h, __u32 sender_rtt_ns, const struct packet *p, __u64 now)
{
	__u32 edge;
	__s32 left;

	if (p->has & HAS_TIMESTAMPS) {
		if (!(h->flags & ADVERTISED) || p->tsecr != h->advertised_tsval)
			return;
		edge = h->advertised_edge;
	} else if (stamp_value(h->rtt.ts_newest)) {
		return;
	} else if (h->flags & ADVERTISED) {
		if (measure_age(h, sender_rtt_ns, now) != AGE_KNOWN)
			return;
		edge = h->advertised_edge;
	} else {
		if (!(h->flags & EDGE_KNOWN))
			return;
		edge = h->edge;
	}
	left = edge - end_of(p);
	if (left < (__s32)h->mss || is_at_once(h, sender_rtt_ns, left))
		h->data_flags |= LIMITED;
}

static __always_inline int advances(const struct half *h, const struct packet *p)
{
	return !(h->data_flags & DATA_SEEN) || after(end_of(p), h->snd_nxt);
}

static __always_inline void measure_sequence(struct half *h, const struct packet *p, __u64 now, int measurable)
{
	stamp_t sent = READ_ONCE(h->rtt.seq_sent);
	int outstanding = sent && stamp_value(sent) != h->rtt.seq_done;

	if (!advances(h, p)) {
		/* Sent again: the ACK could answer either (Karn). */
		if (outstanding && sequence_length(p) && after(stamp_value(sent), p->seq))
			WRITE_ONCE(h->rtt.seq_sent, 0);
		return;
	}
	h->data_flags |= DATA_SEEN;
	h->snd_nxt = end_of(p);
	if (outstanding && stamp_age(sent, now) > GIVEN_UP_NS)
		outstanding = 0;
	if (measurable && !outstanding)
		WRITE_ONCE(h->rtt.seq_sent, stamp_new(end_of(p), now));
}

/* The newest timestamp passes. */
static __always_inline void measure_stamp(struct rtt_match *rtt, __u64 tick_ns, __u32 value, __u64 now)
{
	stamp_t before = READ_ONCE(rtt->ts_soonest);
	__s64 passed = (__s64)stamp_ticks(before, now) << STAMP_SHIFT;
	__s64 stamped = (__s64)(__s32)(value - stamp_value(before)) * (__s64)tick_ns;

	WRITE_ONCE(rtt->ts_newest, stamp_new(value, now));
	if (!before || !tick_ns || passed < stamped)
		WRITE_ONCE(rtt->ts_soonest, stamp_new(value, now));
}

static __always_inline void measure_begin_timestamp(struct rtt_match *rtt, __u64 tick_ns, const struct packet *p,
						    __u64 now)
{
	stamp_t sent = READ_ONCE(rtt->ts_sent);
	__u32 newest = stamp_value(READ_ONCE(rtt->ts_newest));
	int is_newer = !newest || after(p->tsval, newest);

	if (!(p->has & HAS_TIMESTAMPS))
		return;
	if (p->flags & TCP_ACK && (!rtt->echo_newest || after(p->tsecr, rtt->echo_newest)))
		rtt->echo_newest = p->tsecr;
	/* Of a train with one timestamp the last has waited for all of it. */
	if (is_newer || (p->tsval == newest && p->payload_bytes))
		measure_stamp(rtt, tick_ns, p->tsval, now);
	/* The echo of data is the first segment's that waited, its acknowledgment that of the second. */
	if (!is_newer || p->payload_bytes)
		return;
	if (sent && stamp_value(sent) != rtt->ts_done && stamp_age(sent, now) <= GIVEN_UP_NS)
		return;
	WRITE_ONCE(rtt->ts_sent, stamp_new(p->tsval, now));
}

/* `train`: whether it counts as part of a train of the hop. */
static __always_inline void measure_data(struct half *h, __u32 sender_rtt_ns, __u32 epoch, __u64 tick_ns,
					 struct hop *hop, int train, const struct packet *p, __u64 now,
					 int repeated_syn)
{
	__u32 gap_ns = ~0u;
	int odd, acked_at_once;

	if (h->epoch != epoch) {
		h->epoch = epoch;
		h->data_flags &= ~LIMITED;
		WRITE_ONCE(h->rtt.ts_soonest, 0);
		h->gap_ns = 0;
	}
	h->bytes += p->ip_bytes;
	h->packets += p->segments;
	h->payload_bytes += p->payload_bytes;
	if (p->flags & TCP_RST) {
		/* The other end takes only what has the number that it expects (RFC 5961 section 3.2). */
		if (!(h->data_flags & DATA_SEEN) || p->seq == h->snd_nxt ||
		    (h->flags & EDGE_KNOWN && p->seq == h->delivered))
			h->data_flags |= RESET;
		return;
	}
	/* Nobody sends beyond the end: whatever claimed one was not his. */
	if (p->payload_bytes && advances(h, p))
		h->data_flags &= ~(CLOSING | RESET);
	if (p->flags & TCP_FIN)
		h->data_flags |= CLOSING;
	if (p->payload_bytes) {
		__u64 gap = since(now, h->data_ns);

		h->mss = max_u32(h->mss, p->segment_bytes);
		gap_ns = gap < ~0u ? (__u32)gap : ~0u;
		h->gap_ns = max_u32(h->gap_ns, gap_ns);
		h->data_ns = now;
		if (train)
			hop_came(hop, p->payload_bytes, gap, (__u64)h->rtt.last_ns + sender_rtt_ns, now);
		measure_limit(h, sender_rtt_ns, p, now);
	}
	odd = h->packets & 1;
	acked_at_once = odd == !!(h->flags & ODD) && gap_ns < LONE_NS;
	measure_sequence(h, p, now, ((p->payload_bytes && acked_at_once) || p->flags & TCP_SYN) && !repeated_syn);
	measure_begin_timestamp(&h->rtt, tick_ns, p, now);
}

static __always_inline void measure_sample(struct rtt_match *rtt, stamp_t sent, const struct packet *p, __u64 now)
{
	const rtt_total_t below = (1ULL << RTT_SUM_BITS) - 1;
	rtt_total_t total = READ_ONCE(rtt->total);
	__u64 took = stamp_age(sent, now);
	__u32 capped = took < ~0u - 1 ? (__u32)took : ~0u - 1;

	WRITE_ONCE(rtt->answered, p->has & HAS_TIMESTAMPS ? stamp_of(sent, p->tsval) : 0);
	total = ((total & ~below) + below + 1) | ((total + stamp_ticks(sent, now)) & below);
	WRITE_ONCE(rtt->total, total);
	rtt->last_ns = capped;
	rtt->min_ns = min_u32(rtt->min_ns, capped);
}

static __always_inline void measure_acknowledgment(struct half *h, __u32 epoch, const struct packet *p, __u64 now)
{
	struct rtt_match *rtt = &h->rtt;
	int possible = h->data_flags & DATA_SEEN && !after(p->ack, h->snd_nxt);
	stamp_t sent = READ_ONCE(rtt->seq_sent);
	__u32 end = stamp_value(sent), value;

	if (rtt->epoch != epoch) {
		rtt->epoch = epoch;
		rtt->min_ns = ~0u;
	}
	if (sent && end != rtt->seq_done && possible && !after(end, p->ack)) {
		__u32 more = p->ack - end;

		rtt->seq_done = end;
		if (!more || more > h->mss)
			measure_sample(rtt, sent, p, now);
		else
			h->flags ^= ODD;
	}
	if (!(p->has & HAS_TIMESTAMPS))
		return;
	sent = READ_ONCE(rtt->ts_sent);
	value = stamp_value(sent);
	if (sent && value != rtt->ts_done && !after(p->tsecr, stamp_value(READ_ONCE(rtt->ts_newest))) &&
	    !after(value, p->tsecr)) {
		rtt->ts_done = value;
		measure_sample(rtt, sent, p, now);
	}
}

static __always_inline void measure_advertised(struct half *h, __u32 sender_rtt_ns, const struct packet *p,
					       struct verdict verdict, __u64 now)
{
	int advertised = h->flags & ADVERTISED;
	int advertises = p->flags & TCP_ACK && !(p->flags & (TCP_SYN | TCP_RST)) && h->flags & EDGE_KNOWN;
	int scale = known_scale(h);
	int again = 0, awaited;
	__u32 edge, mark;

	if (p->has & HAS_TIMESTAMPS) {
		mark = p->tsval;
		again = advertised && h->advertised_tsval == mark;
		awaited = advertised && !again && !after(h->rtt.echo_newest, h->advertised_tsval);
	} else {
		if (stamp_value(h->rtt.ts_newest) || !sender_rtt_ns)
			return;
		mark = stamp_clock(now);
		awaited = advertised && measure_age(h, sender_rtt_ns, now) != AGE_OLD;
	}
	if (awaited || !advertises || scale < 0)
		return;
	edge = p->ack + ((__u32)(verdict.reason == REWRITTEN ? verdict.window : p->window) << scale);
	h->advertised_edge = again ? later(edge, h->advertised_edge) : edge;
	h->advertised_tsval = mark;
	h->flags |= ADVERTISED;
}

/* What this ACK brought, bytes. */
static __always_inline __u32 window_progress(struct half *h, const struct packet *p)
{
	int seen = h->data_flags & DATA_SEEN;
	__u32 delivered = later(p->ack, h->delivered);
	__u32 newly;

	if (p->has & HAS_SACK && seen && !after(p->sack_high, h->snd_nxt))
		delivered = later(p->sack_high, delivered);
	newly = delivered - h->delivered;
	h->delivered = delivered;
	return newly;
}

static __always_inline __u32 window_in_flight(const struct half *h)
{
	return h->data_flags & DATA_SEEN && after(h->snd_nxt, h->delivered) ? h->snd_nxt - h->delivered : 0;
}

/* Counts the time in which something arrived while more had been in flight since the ACK before. */
static __always_inline void window_serve(struct half *h, __u32 newly, __u64 now)
{
	if (!newly)
		return;
	if (h->waiting > newly)
		h->served_ns += since(now, h->acked_ns);
	h->acked_ns = now;
	h->waiting = window_in_flight(h);
}

static __always_inline __u32 twice(__u32 bytes)
{
	return bytes > ~0u / 2 ? ~0u : 2 * bytes;
}

/* What a window update tells at least, bytes. */
static __always_inline __u32 window_worth_advertising(const struct half *h, struct plan plan, int scale, __u32 updates)
{
	return max_u32(max_u32(twice(h->mss), plan.pace_bytes >> MILLISECOND_SHIFT), max_u32(2u << scale, updates));
}

/* How far the edge may advance at once: by an update, which may be sent a millisecond late; and a segment more. */
static __always_inline __u32 window_bound(const struct half *h, struct plan plan, int scale, __u32 updates)
{
	if (updates && plan.pace_bytes) {
		__u32 least = window_worth_advertising(h, plan, scale, updates);
		__u32 bound = least + max_u32(h->mss, plan.pace_bytes >> MILLISECOND_SHIFT);

		return bound < least ? ~0u : bound;
	}
	return max_u32(max_u32(plan.growth_bytes, twice(h->stretch)), 2u << scale);
}

static __always_inline void window_earn(struct half *h, struct plan plan, __u32 bound, __u64 now)
{
	if (!h->window) {
		h->credit = bound;
	} else {
		__u64 pause = since(now, h->paced_ns);
		__u64 earned = plan.pace_bytes * (pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS) >> PACE_SHIFT;
		__u64 credit = h->credit + earned;

		h->credit = credit < bound ? (__u32)credit : bound;
	}
	h->paced_ns = now;
}

static __always_inline void window_adapt(struct half *h, struct plan plan, __u32 newly, int known, __u32 advertised)
{
	__u32 floor = min_u32(plan.floor_bytes, LARGEST_WINDOW);
	__u32 growth = min_u32(plan.growth_bytes, LARGEST_WINDOW);
	__u32 target = min_u32(max_u32(plan.clamp_bytes, floor), LARGEST_WINDOW);
	__u32 window = h->window;

	if (!window) {
		window = max_u32(max_u32(window_in_flight(h), growth), max_u32(floor, INITIAL_WINDOW));
		/* Of a connection that begins: what its SYN advertised is what it has. */
		if (known && h->flags & SYN_SEEN)
			window = max_u32(min_u32(window, advertised), floor);
	} else if (newly) {
		__u64 share = (__u64)newly * growth / window;
		__u32 step = share < newly ? (__u32)share : newly;
		__u32 grown = window + max_u32(step, 1);

		window = grown < window ? ~0u : grown;
	}
	h->window = min_u32(window, target);
}

#define AS_PLANNED REASONS

struct mode {
	enum reason left_alone; /* why windows are left as they are, whatever the plan; or AS_PLANNED */
	int silent; /* who waits for window updates waits in vain */
	int dry_run;
	__u32 updates;
};

static __always_inline struct verdict window_clamp(struct half *h, const struct packet *p, int scale, struct mode mode,
						   __u64 now)
{
	int known = h->flags & EDGE_KNOWN;
	struct verdict verdict = { .reason = WITHIN_PLAN };
	struct plan plan = h->plan;
	__u32 offered = (__u32)p->window << scale;
	__u32 newly, first_advertised, advertised, edge, allowed, least, window;
	int moves, lower;

	/* Of data that passes elsewhere. */
	if (h->data_flags & DATA_SEEN && after(p->ack, h->snd_nxt))
		return verdict;
	if (!known) {
		h->delivered = p->ack;
		h->edge = p->ack;
		h->window = 0;
		h->flags |= EDGE_KNOWN;
	}
	first_advertised = h->edge - h->delivered;
	newly = window_progress(h, p);
	window_serve(h, newly, now);
	moves = newly || p->window != h->last_window;
	h->last_window = p->window;
	h->acked = p->ack;
	if (!p->window && mode.left_alone != AUTHENTICATED) {
		verdict.reason = ZERO_WINDOW;
		return verdict;
	}
	/* What the pace keeps back nobody tells then: ACKs do, at the pace of data. */
	if (mode.silent)
		plan.pace_bytes = 0;
	if (mode.left_alone != AS_PLANNED || !plan.clamp_bytes) {
		h->window = 0;
		h->edge = later(h->edge, p->ack + offered);
		verdict.reason = mode.left_alone != AS_PLANNED ? mode.left_alone : NO_PLAN;
		return verdict;
	}
	window_earn(h, plan, window_bound(h, plan, scale, mode.updates), now);
	h->stretch = h->stretch - h->stretch / 8 + newly / 8;
	window_adapt(h, plan, newly, known, first_advertised);
	if (!known) {
		/* What was advertised before is not known; most likely it was this much. */
		h->edge = p->ack + offered;
		return verdict;
	}
	advertised = h->edge;
	edge = later(advertised, p->ack);
	if (moves) {
		__u32 step = later(h->delivered + h->window, edge) - edge;

		edge += plan.pace_bytes ? min_u32(step, h->credit) : step;
	}
	allowed = min_u32(edge - p->ack, offered) >> scale;
	least = (min_u32(plan.floor_bytes, LARGEST_WINDOW) + (1u << scale) - 1) >> scale;
	window = min_u32(max_u32(allowed, max_u32(least, 1)), p->window);
	lower = window < p->window;
	h->edge = later(advertised, p->ack + (mode.dry_run ? offered : window << scale));
	h->credit -= min_u32(h->credit, h->edge - advertised);
	if (!lower)
		return verdict;
	if (mode.dry_run) {
		verdict.reason = WOULD_REWRITE;
		return verdict;
	}
	h->rewritten++;
	verdict.reason = REWRITTEN;
	verdict.window = window;
	return verdict;
}

static __always_inline int is_stale(const struct control *control, __u64 now)
{
	return since(now, control->heartbeat_ns) > STALE_NS;
}

/* Of a SYN: `d` is the direction of the data it lets through, `before` what it advertised when it was sent before; 0: nothing. */
static __always_inline struct verdict begin(struct control *control, __u32 hop, enum direction d,
					    const struct packet *p, __u32 before, __u64 now)
{
	struct verdict verdict = { .reason = SYN };
	__u32 window = before;

	if (p->has & HAS_AUTHENTICATION || is_stale(control, now))
		return verdict;
	if (!window)
		window = hop_start(control, hop, d, p->window, now);
	if (window >= p->window)
		return verdict;
	verdict.reason = control->dry_run ? WOULD_REWRITE : REWRITTEN;
	verdict.window = window;
	return verdict;
}

/* The data that goes `d` has ended: its sender has no more, or one of the two ends the connection. */
static __always_inline int flow_closing(const struct flow_state *state, enum direction d)
{
	return state->half[d].data_flags & CLOSING || (state->half[0].data_flags | state->half[1].data_flags) & RESET;
}

/* What a window update, of data going `d`, may tell, bytes; 0: nothing. Not below `least`, which is set if there is any. */
static __always_inline __u32 window_unadvertised(const struct flow_state *state, const struct control *control,
						 enum direction d, __u32 *least)
{
	const struct half *h = &state->half[d];
	struct plan plan = h->plan;
	int scale = known_scale(h);
	__u32 offered, edge, unadvertised, updates = READ_ONCE(control->hops[hop_of(state)][d].updates);

	if (!updates || control->dry_run || scale < 0)
		return 0;
	if (flow_closing(state, d))
		return 0;
	if (!(h->flags & EDGE_KNOWN) || !(h->data_flags & state->half[!d].data_flags & DATA_SEEN))
		return 0;
	if (!h->window || !h->last_window || !plan.clamp_bytes || !plan.pace_bytes || h->delivered != h->acked)
		return 0;
	offered = (__u32)h->last_window << scale;
	edge = h->acked + min_u32(h->window, offered);
	unadvertised = later(edge, h->edge) - h->edge;
	*least = window_worth_advertising(h, plan, scale, updates);
	return unadvertised >= *least ? unadvertised : 0;
}

#define NOT_DUE (~0ull)

/* When a window update for data that goes in `d` is due; NOT_DUE: its ACKs advertise it. */
static __always_inline __u64 window_due(const struct flow_state *state, const struct control *control, enum direction d,
					__u64 now)
{
	const struct half *h = &state->half[d];
	__u32 least = 0, pace = h->plan.pace_bytes;
	__u64 lacks, at;

	/* The pace is read again: the controller may have set it to 0 in between. */
	if (!window_unadvertised(state, control, d, &least) || !pace)
		return NOT_DUE;
	lacks = least - min_u32(least, h->credit);
	at = h->paced_ns + (lacks << PACE_SHIFT) / pace + !!lacks;
	return at > now ? at : now;
}

struct window_update {
	int is_due; /* 0: no update, and nothing else is set */
	__u32 seq;
	__u32 ack;
	__u16 window;
	int has_timestamps;
	__u32 tsval;
	__u32 tsecr;
};

/* The window update that is due `now`, which the host has to send. */
static __always_inline struct window_update window_update(struct flow_state *state, const struct control *control,
							  enum direction d, __u64 now)
{
	struct half *h = &state->half[d];
	const struct half *back = &state->half[!d];
	struct window_update update = {};
	__u32 least = 0, unadvertised = window_unadvertised(state, control, d, &least);
	__u32 step, window, edge, stamp, updates;
	int scale = known_scale(h);

	if (!unadvertised || scale < 0 || is_stale(control, now))
		return update;
	updates = READ_ONCE(control->hops[hop_of(state)][d].updates);
	window_earn(h, h->plan, window_bound(h, h->plan, scale, updates), now);
	step = min_u32(unadvertised, h->credit);
	if (step < least)
		return update;
	window = min_u32((h->edge + step - h->acked) >> scale, h->last_window);
	edge = h->acked + (window << scale);
	if (!after(edge, h->edge))
		return update;
	h->credit -= min_u32(h->credit, edge - h->edge);
	h->edge = edge;
	stamp = stamp_value(READ_ONCE(back->rtt.ts_newest));
	if (h->flags & ADVERTISED && (!stamp || h->advertised_tsval == stamp))
		h->advertised_edge = later(edge, h->advertised_edge);
	update.is_due = 1;
	update.seq = back->snd_nxt;
	update.ack = h->acked;
	update.window = window;
	update.has_timestamps = !!stamp;
	update.tsval = stamp;
	update.tsecr = stamp ? back->rtt.echo_newest : 0;
	return update;
}

static __always_inline struct verdict decide(struct half *h, const struct control *control, __u32 hop, enum direction d,
					     const struct packet *p, __u64 now)
{
	__u64 silent = READ_ONCE(control->silent_ns);
	struct mode mode = {
		.left_alone = p->has & HAS_AUTHENTICATION ? AUTHENTICATED
			      : is_stale(control, now)    ? STALE
							  : AS_PLANNED,
		.silent = silent && now > silent,
		.dry_run = control->dry_run != 0,
		.updates = READ_ONCE(control->hops[hop][d].updates),
	};
	int scale = known_scale(h);
	struct verdict verdict = {};

	if (p->flags & TCP_RST)
		verdict.reason = RST;
	else if (scale >= 0)
		return window_clamp(h, p, scale, mode, now);
	else if (mode.left_alone == AUTHENTICATED)
		verdict.reason = AUTHENTICATED;
	else
		verdict.reason = !p->window ? ZERO_WINDOW : mode.left_alone == STALE ? STALE : SCALE_UNKNOWN;
	return verdict;
}

static __always_inline struct verdict on_packet(struct flow_state *state, struct control *control, enum direction d,
						const struct packet *p, __u64 now)
{
	struct half *data = &state->half[d];
	struct half *acked = &state->half[!d];
	struct verdict verdict;
	__u32 delivered, waiting, hop;
	__u64 acked_ns;
	int repeated_syn, known, heard;

	if (!gate_is_taken(p) || !gate_fits(state, d, p, now)) {
		verdict = (struct verdict){ .reason = gate_is_taken(p) ? INVALID : NO_ACK };
		return verdict;
	}
	state->last_seen_ns = now;
	state->port = p->port;
	state->hop = p->hop;
	hop = hop_of(state);
	if (!state->assured && gate_assures(acked, p))
		state->assured = 1;
	repeated_syn = p->flags & TCP_SYN && handshake_begin(data, acked, p);
	if ((p->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		state->first_seen_ns = now;
	heard = gate_is_heard(data, p);
	known = acked->flags & EDGE_KNOWN;
	delivered = acked->delivered;
	waiting = acked->waiting;
	acked_ns = acked->acked_ns;
	measure_data(data, acked->rtt.last_ns, control->epoch, control->tick_ns, &control->hops[hop][d], state->assured,
		     p, now, repeated_syn);
	if (p->flags & TCP_ACK && heard)
		measure_acknowledgment(acked, control->epoch, p, now);
	if (p->flags & TCP_SYN) {
		verdict = begin(control, hop, !d, p, handshake_advertised(acked, p->ack), now);
		handshake_learn(data, acked, p, verdict);
	} else if (!heard) {
		verdict = (struct verdict){ .reason = WITHIN_PLAN };
		return verdict;
	} else {
		verdict = decide(acked, control, hop, !d, p, now);
	}
	if (known) {
		hop_served(&control->hops[hop][!d], acked->delivered - delivered, waiting, since(now, acked_ns),
			   (__u64)acked->rtt.last_ns + data->rtt.last_ns, now);
		if (d == TO_REMOTE)
			hop_brought(&control->hops[hop][!d], acked->delivered - delivered, now);
	}
	if (d == TO_REMOTE && state->assured)
		hop_brought(&control->hops[hop][d], p->payload_bytes, now);
	measure_advertised(acked, data->rtt.last_ns, p, verdict, now);
	return verdict;
}

/* What was to be told could not be written: the receiver's own window went through. */
static __always_inline void not_rewritten(struct half *acked, const struct packet *p)
{
	int scale = known_scale(acked);

	if (!(p->flags & TCP_SYN) && scale >= 0)
		acked->edge = later(acked->edge, p->ack + ((__u32)p->window << scale));
}

/* A segment of the station's on its way to another one, where it is measured. */
static __always_inline void passes_elsewhere(struct flow_state *state, const struct packet *p, __u64 now)
{
	if (!(state->half[TO_REMOTE].data_flags & ELSEWHERE) && gate_fits(state, TO_REMOTE, p, now))
		state->half[TO_REMOTE].data_flags |= ELSEWHERE;
}

static __always_inline void count(struct counters *c, enum direction d, const struct packet *p, enum reason reason)
{
	struct hop_counters *hop;
	__u32 number = p->hop;

	c->reason[reason]++;
	if (reason == UDP_DROPPED)
		return;
	opaque(number);
	hop = &c->hops[number & (HOPS - 1)];
	c->packets[d] += p->segments;
	c->ip_bytes[d] += p->ip_bytes;
	hop->ip_bytes[d] += p->ip_bytes;
	if (p->protocol == PROTOCOL_TCP) {
		c->tcp_bytes[d] += p->ip_bytes;
	} else if (p->protocol == PROTOCOL_UDP) {
		c->udp_bytes[d] += p->ip_bytes;
		c->udp_packets[d] += p->segments;
		hop->udp_bytes[d] += p->ip_bytes;
		hop->udp_packets[d] += p->segments;
	}
}

#endif
