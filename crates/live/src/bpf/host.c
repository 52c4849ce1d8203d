/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fast path's headers compiled for the host, so that a test can hold them equal to Rust. */
#include "light.h"

/* A frame as the test hands it over: so many bytes of it can be copied. */
struct host_frame {
	__u8 *bytes;
	__u32 copyable;
	__u32 length;
	__u32 segments;
	__u32 segment_bytes;
	/* What it passes. */
	__u32 port;
	__u32 hop;
};

void lasthop_host_open(struct flow_state *state, const struct control *control, __u64 now);
int lasthop_host_packet(const struct host_frame *frame, enum link_layer link, enum direction d, struct control *control,
			struct flow_state *state, struct counters *counters, __u64 now, struct flow_key *key,
			struct udp_state *udp);

void lasthop_host_open(struct flow_state *state, const struct control *control, __u64 now)
{
	flow_open(state, control, now);
}

/* As parse_skb of lasthop.bpf.c. */
static int parse(const struct host_frame *frame, enum link_layer link, enum direction d, struct packet *out)
{
	struct frame f;
	__u32 at = FRAME_AT(link), length = min_u32(frame->copyable, HEADERS);
	int result = UNUSUAL;

	f.copied = at + length;
	f.end = at + frame->length;
	f.segments = frame->segments;
	f.segment_bytes = frame->segment_bytes;
	if (link == LINK_ETHERNET)
		result = parse_usual(&f, frame->bytes, frame->bytes + frame->copyable, d, out);
	if (result == UNUSUAL) {
		__builtin_memcpy(f.bytes + at, frame->bytes, length);
		result = parse_headers(&f, link, d, out);
	}
	if (result != OPTIONS_LEFT)
		return result;
	if (out->l4_at + out->header > frame->copyable)
		return TOO_SHORT;
	__builtin_memcpy(f.bytes, frame->bytes + out->l4_at, out->header);
	return read_options(&f, out);
}

__u64 lasthop_host_due(const struct flow_state *state, const struct control *control, enum direction d, __u64 now);
void lasthop_host_update(struct flow_state *state, const struct control *control, enum direction d, __u64 now,
			 struct window_update *out);

__u64 lasthop_host_due(const struct flow_state *state, const struct control *control, enum direction d, __u64 now)
{
	return window_due(state, control, d, now);
}

void lasthop_host_update(struct flow_state *state, const struct control *control, enum direction d, __u64 now,
			 struct window_update *out)
{
	*out = window_update(state, control, d, now);
}

static void put16(__u8 *p, __u32 value)
{
	p[0] = value >> 8;
	p[1] = value;
}

/* As is_valid of lasthop.bpf.c, where a helper sums; all of the frame can be read, however much of it lies in one piece. */
static int is_valid(const struct host_frame *frame, const struct packet *p)
{
	const __u8 *tcp = frame->bytes + p->l4_at;
	__u32 length = p->header + p->payload_bytes;
	__u64 sum = 0;

	if (!is_verified(p))
		return 1;
	if (p->has & HAS_SUM)
		return is_intact(p, p->sum);
	for (__u32 i = 0; i < length; i++)
		sum += (__u64)tcp[i] << (i & 1) * 8;
	return is_intact(p, sum);
}

/* RFC 1624, equation 3; in BPF a helper does it. */
static void patch_window(__u8 *tcp, __u16 window)
{
	__u32 sum = (__u16)~load16(tcp + 16) + (__u16)~load16(tcp + 14) + window;

	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	put16(tcp + 14, window);
	put16(tcp + 16, ~sum);
}

static void open_udp(struct udp_state *udp, const struct host_frame *frame, __u32 payload_at, __u64 now)
{
	__u32 head[2];

	udp_open(udp, now);
	if (payload_at + QUIC_HEAD > frame->copyable)
		return;
	__builtin_memcpy(quic_head(head), frame->bytes + payload_at, QUIC_HEAD);
	udp->quic = begins_quic(head);
}

/* RFC 3168; core::wire::ecn::set_ce. */
static void set_ce(__u8 *ip, __u8 version)
{
	__u32 before = load16(ip), now = before | (version == 4 ? 0x0003 : 0x0030), sum;

	put16(ip, now);
	if (version != 4)
		return;
	sum = (__u16)~load16(ip + 10) + (__u16)~before + now;
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	put16(ip + 10, ~sum);
}

/*
 * The whole way of one packet: the reason, or TOO_SHORT. `key` is written only for TCP, and for UDP that has a flow: one whose
 * first_seen_ns is 0 has none yet.
 */
int lasthop_host_packet(const struct host_frame *frame, enum link_layer link, enum direction d, struct control *control,
			struct flow_state *state, struct counters *counters, __u64 now, struct flow_key *key,
			struct udp_state *udp)
{
	struct packet p = {};
	int reason = parse(frame, link, d, &p);

	p.port = frame->port;
	p.hop = frame->hop;
	if (reason == PARSED_TCP) {
		struct verdict verdict = { .reason = INVALID };

		if (!gate_is_taken(&p))
			verdict.reason = NO_ACK;
		else if (is_valid(frame, &p))
			verdict = on_packet(state, control, d, &p, now);
		*key = p.key;
		reason = verdict.reason;
		if (reason == REWRITTEN)
			patch_window(frame->bytes + p.l4_at, verdict.window);
	}
	if (reason == UDP && p.header && (udp->first_seen_ns || udp_is_full(&p))) {
		if (!udp->first_seen_ns)
			open_udp(udp, frame, p.l4_at + 8, now);
		udp->port = frame->port;
		udp->hop = frame->hop;
		*key = p.key;
		reason = on_datagram(udp, control, d, &p, now);
		if (reason == UDP_MARKED)
			set_ce(frame->bytes + p.ip_at, p.version);
	}
	if (reason >= 0)
		count(counters, d, &p, reason);
	return reason;
}

__u32 lasthop_host_light(struct light_flow *flow, __u32 ip_bytes, __u32 segments, __u32 dscp, __u32 port, __u64 now);

__u32 lasthop_host_light(struct light_flow *flow, __u32 ip_bytes, __u32 segments, __u32 dscp, __u32 port, __u64 now)
{
	struct packet p = { .ip_bytes = ip_bytes, .segments = segments };

	return light_on_datagram(flow, &p, dscp, port, now);
}
