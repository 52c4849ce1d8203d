/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * Which datagrams to stations go ahead on the air: crates/core/src/fastpath/class.rs restated, function for function.
 *
 * The law stands there.
 */
#ifndef LASTHOP_CLASS_H
#define LASTHOP_CLASS_H

#include "udp.h"

#define EACH_BYTES 256
#define CLASS_PLACES 1024

/* core::fastpath::class::Level. */
struct level {
	__u64 drained_ns;
	__u32 bytes;
	__u32 pad;
};

/* core::fastpath::class::Ahead. */
struct ahead {
	__u32 user_priority;
	__u32 flow_rate_bytes;
	__u32 flow_depth_bytes;
	__u32 all_rate_bytes;
	__u32 all_depth_bytes;
	__u32 pad;
	struct level all;
};

_Static_assert(sizeof(struct level) == 16, "level");
_Static_assert(sizeof(struct ahead) == 6 * 4 + sizeof(struct level), "ahead");

/* The upper bits of a product depend on all of the lower ones (Knuth, volume 3, section 6.4), and are handed down each time. */
static __always_inline __u32 class_word(__u32 hash, __u32 word)
{
	hash = (hash ^ word) * 2654435761u;
	return hash ^ hash >> 16;
}

/* Addresses as they lie, then ports as numbers. */
static __always_inline __u32 class_place(const struct flow_key *key)
{
	const __u8 *bytes = (const __u8 *)key;
	__u32 hash = 0, i;

	for (i = 0; i < 32; i += 2)
		hash = class_word(hash, bytes[i] | bytes[i + 1] << 8);
	return class_word(class_word(hash, key->station_port), key->remote_port) & (CLASS_PLACES - 1);
}

static __always_inline void level_drain(struct level *l, __u32 rate_bytes, __u64 now)
{
	__u64 gap = since(now, l->drained_ns), drained;

	drained = rate_bytes * (gap < LONGEST_GAP_NS ? gap : LONGEST_GAP_NS) >> PACE_SHIFT;
	l->bytes = l->bytes > drained ? l->bytes - (__u32)drained : 0;
	l->drained_ns = now;
}

static __always_inline int goes_ahead(struct ahead *ahead, struct level *flow, const struct packet *p, __u32 dscp, __u64 now)
{
	__u64 depth = min_u32(ahead->flow_depth_bytes, 1u << 30);
	__u64 cost = (__u64)p->ip_bytes + (__u64)EACH_BYTES * p->segments, level, all;

	level_drain(flow, ahead->flow_rate_bytes, now);
	level_drain(&ahead->all, ahead->all_rate_bytes, now);
	level = flow->bytes + cost;
	flow->bytes = level < 2 * depth ? level : 2 * depth;
	all = ahead->all.bytes + cost;
	if (!ahead->user_priority || dscp || udp_is_full(p) || flow->bytes > depth || all > ahead->all_depth_bytes)
		return 0;
	ahead->all.bytes = all;
	return 1;
}

#endif
