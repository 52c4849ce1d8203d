/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/* Datagrams to stations behind a radio: crates/core/src/fastpath/light.rs restated, function for function. */
#ifndef LASTHOP_LIGHT_H
#define LASTHOP_LIGHT_H

#include "udp.h"

struct light_flow {
	__u64 packets;
	__u64 bytes;
	__u64 full_bytes;
	__u64 last_seen_ns;
	__u32 port;
	__u32 user_priority; /* written by the controller */
};

_Static_assert(sizeof(struct light_flow) == 4 * 8 + 2 * 4, "light_flow");

/* 0: none. */
static __always_inline __u32 light_given(const struct light_flow *flow, __u32 dscp)
{
	return dscp ? 0 : READ_ONCE(flow->user_priority) & 7;
}

static __always_inline __u32 light_on_datagram(struct light_flow *flow, const struct packet *p, __u32 dscp, __u32 port,
					       __u64 now)
{
	flow->packets += p->segments;
	flow->bytes += p->ip_bytes;
	if (udp_is_full(p))
		flow->full_bytes += p->ip_bytes;
	flow->last_seen_ns = now;
	flow->port = port;
	return light_given(flow, dscp);
}

#endif
