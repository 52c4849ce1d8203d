/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * Reads the headers of a frame: crates/core/src/wire restated, decision for decision.
 *
 * Laws and sources stand there. Here only: what is read is a copy of the frame's first bytes. `end` is where the frame ends, which
 * may be further than what was copied; then the answer is TOO_SHORT, the caller copies more of it and asks again. Every place is
 * masked to the size of the copy before it is read: that is the bound the verifier asks for, and since headers follow each other
 * in steps of four bytes the same mask keeps them aligned, which some processors need.
 */
#ifndef LASTHOP_WIRE_H
#define LASTHOP_WIRE_H

#include "layout.h"

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#ifdef __bpf__
#define load16(p) __builtin_bswap16(*(const __u16 *)(p))
#define load32(p) __builtin_bswap32(*(const __u32 *)(p))
/* Keeps the compiler from proving a bound by a copy of the value that the verifier does not follow. */
#define opaque(v) asm volatile("" : "+r"(v))
#define UNROLLED _Pragma("unroll")
#else
#define load16(p) ((__u16)((p)[0] << 8 | (p)[1]))
#define load32(p) ((__u32)(p)[0] << 24 | (__u32)(p)[1] << 16 | (__u32)(p)[2] << 8 | (p)[3])
#define opaque(v) ((void)(v))
#define UNROLLED
#endif
#define copy4(to, from) (*(__u32 *)(to) = *(const __u32 *)(from))

#define DEEPEST 512
/* Longest run of headers: a TCP header may begin right before DEEPEST. */
#define HEADERS (DEEPEST + 60)
/* Holds Ethernet, two tags, PPPoE, IPv6 and the longest TCP header. */
#define USUALLY 132
#define CHAIN 6
#define LARGEST_SCALE 14

enum ethertype {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_SERVICE_VLAN = 0x88a8,
	ETHERTYPE_PPPOE_SESSION = 0x8864,
	PPP_IPV4 = 0x0021,
	PPP_IPV6 = 0x0057,
};

enum protocol {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ROUTING = 43,
	PROTOCOL_FRAGMENT = 44,
	PROTOCOL_AH = 51,
	PROTOCOL_DESTINATION = 60,
	PROTOCOL_UNKNOWN = 255,
};

enum link_layer { LINK_ETHERNET, LINK_IP };
/* Bytes of its header, of the addresses in it, and of a tag (IEEE 802.1Q) behind those. */
#define ETHERNET 14
#define MACS 12
#define TAG 4

enum tcp_flags { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_ACK = 16 };

enum has { HAS_SCALE = 1, HAS_TIMESTAMPS = 2, HAS_SACK = 4, HAS_AUTHENTICATION = 8, HAS_SUM = 16 };

/* What parsing answers: a whole TCP segment, one whose options are still to be read, or why not. */
enum { PARSED_TCP = -1, TOO_SHORT = -2, UNUSUAL = -3, OPTIONS_LEFT = -4 };

/* Where the options that matter begin in a TCP header, 0 where there is none; of several of a kind the last. */
struct options {
	__u32 timestamps;
	__u32 sack;
	__u32 scale;
	__u32 authentication;
};

/* Where a copied frame begins, so that what follows an Ethernet header is aligned to four bytes. */
#define FRAME_AT(link) ((link) == LINK_ETHERNET ? 2 : 0)
#define PLACES 1024 /* more than HEADERS, and a power of two */

/* Places are counted from the begin of `bytes`. */
struct frame {
	/* Where what was copied ends, and where the frame does. */
	__u32 copied;
	__u32 end;
	/* What an offload engine merged: packets it stands for, payload of each. */
	__u32 segments;
	__u32 segment_bytes;
	struct options options;
	/* Beyond the last place: the longest TCP header, and an option that is said to begin at its end. */
	__u8 bytes[PLACES + 128] __attribute__((aligned(8)));
};

struct packet {
	/* When it passed, the interface towards stations, and which hop that is; set by whoever asks. */
	__u64 now_ns;
	__u32 port;
	__u32 hop;
	struct flow_key key;
	__u32 ip_bytes;
	__u32 segments;
	/* Where the IP header begins, its version, and its two bits of congestion marks. */
	__u32 ip_at;
	__u8 version;
	__u8 ecn;
	__u8 protocol;
	/* From here on only of TCP; of UDP `header`, 0 where its ports could not be read, where that stands, and the sizes. */
	__u8 flags;
	__u8 has;
	__u8 scale;
	__u16 window;
	__u16 l4_at;
	__u32 header;
	__u32 seq;
	__u32 ack;
	__u32 tsval;
	__u32 tsecr;
	__u32 sack_high;
	__u32 payload_bytes;
	__u32 segment_bytes;
	__u32 lowered; /* the window to write, where one is rewritten */
	/* One's complement sum of the TCP header, with HAS_SUM: without payload of the whole segment; and the checksum in it, as it lies. */
	__u32 sum;
	__u32 checksum;
};

/* Where an IP packet, then a transport header lies. */
struct place {
	__u32 begin; /* of the frame */
	__u32 at;
	__u32 end;
	__u32 ip_bytes;
	__u8 version;
};

static __always_inline int after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

static __always_inline __u32 later(__u32 a, __u32 b)
{
	return after(a, b) ? a : b;
}

static __always_inline __u32 min_u32(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 max_u32(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

/*
 * One's complement sums of 16-bit words (RFC 1071): of words as they lie, for the order of bytes makes no difference to what is
 * right.
 */
static __always_inline __u32 fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + (sum & 0xffff);
}

static __always_inline __u64 sum_words(const __u8 *p, int words)
{
	__u64 sum = 0;

	UNROLLED
	for (int i = 0; i < words; i++)
		sum += *(const __u32 *)(p + 4 * i);
	return sum;
}

/* Of IPv4 the prefix ::ffff adds nothing. */
static __always_inline __u64 sum_of_pseudo_header(const struct packet *p)
{
	__u32 length = p->header + p->payload_bytes;

	return sum_words(p->key.station, 4) + sum_words(p->key.remote, 4) + __builtin_bswap16(PROTOCOL_TCP) +
	       __builtin_bswap16(length) + __builtin_bswap16(length >> 16);
}

/*
 * Whether the checksum of a segment is right, of which `sum` is the sum; or the part that a sender leaves whose network card, or
 * nobody on a virtual link, adds the rest: the pseudo header's.
 */
static __always_inline int is_intact(const struct packet *p, __u64 sum)
{
	__u64 pseudo = sum_of_pseudo_header(p);

	return fold(sum + pseudo) == 0xffff || fold(pseudo) == p->checksum;
}

#define LONGEST_SUMMED 2048

/*
 * Segments by which a connection begins, ends or lets its sender go on, unless they are longer than a usual link carries. Those that
 * were merged were verified before.
 */
static __always_inline int is_verified(const struct packet *p)
{
	return p->segments <= 1 && p->header + p->payload_bytes <= LONGEST_SUMMED &&
	       (!p->payload_bytes || p->flags & (TCP_FIN | TCP_SYN | TCP_RST));
}

/* What stands at a place that is a multiple of four: an IP header, or what follows one. */
static __always_inline const __u8 *bytes_at(const struct frame *f, __u32 at)
{
	opaque(at);
	at &= PLACES - 4;
	return f->bytes + at;
}

/* Steps over Ethernet, up to two tags, and PPPoE. */
static __always_inline int strip_link(const struct frame *f, __u32 link, struct place *ip)
{
	__u32 kind, at = FRAME_AT(LINK_ETHERNET) + 14;

	ip->begin = FRAME_AT(link);
	ip->end = f->end;
	if (link == LINK_IP) {
		if (f->end < 1)
			return MALFORMED;
		if (f->copied < 1)
			return TOO_SHORT;
		ip->at = 0;
		ip->version = f->bytes[0] >> 4;
		return ip->version == 4 || ip->version == 6 ? PARSED_TCP : NOT_IP;
	}
	if (f->end < at)
		return MALFORMED;
	if (f->copied < at)
		return TOO_SHORT;
	kind = load16(f->bytes + FRAME_AT(LINK_ETHERNET) + 12);
	UNROLLED
	for (int tag = 0; tag < 2; tag++) {
		if (kind != ETHERTYPE_VLAN && kind != ETHERTYPE_SERVICE_VLAN)
			break;
		if (f->end < at + 4)
			return MALFORMED;
		if (f->copied < at + 4)
			return TOO_SHORT;
		kind = load16(bytes_at(f, at) + 2);
		at += 4;
	}
	if (kind == ETHERTYPE_PPPOE_SESSION) {
		const __u8 *p = bytes_at(f, at);
		__u32 length;

		/* RFC 2516: version 1, type 1, code 0, session, length of what follows; then the PPP protocol. */
		if (f->end < at + 8)
			return MALFORMED;
		if (f->copied < at + 8)
			return TOO_SHORT;
		if (load16(p) != 0x1100)
			return NOT_IP;
		length = load16(p + 4);
		kind = load16(p + 6);
		if (length < 2 || at + 6 + length > f->end)
			return MALFORMED;
		ip->end = at + 6 + length;
		at += 8;
		if (kind != PPP_IPV4 && kind != PPP_IPV6)
			return NOT_IP;
		kind = kind == PPP_IPV4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
	}
	ip->at = at;
	ip->version = kind == ETHERTYPE_IPV4 ? 4 : 6;
	return kind == ETHERTYPE_IPV4 || kind == ETHERTYPE_IPV6 ? PARSED_TCP : NOT_IP;
}

static __always_inline void set_mapped(__u8 *address, const __u8 *v4)
{
	((__u32 *)address)[0] = 0;
	((__u32 *)address)[1] = 0;
	address[8] = 0;
	address[9] = 0;
	address[10] = 0xff;
	address[11] = 0xff;
	copy4(address + 12, v4);
}

static __always_inline void set_v6(__u8 *address, const __u8 *v6)
{
	UNROLLED
	for (int i = 0; i < 16; i += 4)
		copy4(address + i, v6 + i);
}

/* `p`: the 20 bytes at `ip`. */
static __always_inline int read_v4(const struct frame *f, const __u8 *p, enum direction d, struct place *ip,
				   struct packet *out)
{
	__u32 header = (p[0] & 15) * 4, total = load16(p + 2);

	if (!total && f->segments > 1)
		total = ip->end - ip->at;
	if (p[0] >> 4 != 4 || header < 20 || total < header || ip->at + total > ip->end)
		return MALFORMED;
	out->ip_bytes = total;
	out->ip_at = ip->at - ip->begin;
	out->version = 4;
	out->ecn = p[1] & 3;
	out->protocol = p[9];
	set_mapped(d == TO_REMOTE ? out->key.station : out->key.remote, p + 12);
	set_mapped(d == TO_REMOTE ? out->key.remote : out->key.station, p + 16);
	ip->end = ip->at + total;
	ip->at += header;
	/* More fragments, or an offset. */
	return load16(p + 6) & 0x3fff ? FRAGMENT : PARSED_TCP;
}

static __always_inline int walk_v4(const struct frame *f, enum direction d, struct place *ip, struct packet *out)
{
	if (ip->at + 20 > ip->end)
		return MALFORMED;
	if (ip->at + 20 > f->copied)
		return TOO_SHORT;
	return read_v4(f, bytes_at(f, ip->at), d, ip, out);
}

/* `p`: the 40 bytes at `ip`. */
static __always_inline int read_v6(const struct frame *f, const __u8 *p, enum direction d, struct place *ip,
				   struct packet *out)
{
	__u32 total;

	total = load16(p + 4);
	total = !total && f->segments > 1 ? ip->end - ip->at : 40 + total;
	if (p[0] >> 4 != 6 || ip->at + total > ip->end)
		return MALFORMED;
	out->ip_bytes = total;
	out->ip_at = ip->at - ip->begin;
	out->version = 6;
	out->ecn = p[1] >> 4 & 3;
	out->protocol = p[6];
	set_v6(d == TO_REMOTE ? out->key.station : out->key.remote, p + 8);
	set_v6(d == TO_REMOTE ? out->key.remote : out->key.station, p + 24);
	ip->end = ip->at + total;
	ip->at += 40;
	return PARSED_TCP;
}

/* Steps over one extension header: 0 when there is none, 1 when there was, else why the walk ends. */
static __always_inline int extension(const struct frame *f, struct place *ip, struct packet *out)
{
	const __u8 *p;
	__u8 this = out->protocol;

	if (this != PROTOCOL_HOP_BY_HOP && this != PROTOCOL_ROUTING && this != PROTOCOL_DESTINATION &&
	    this != PROTOCOL_FRAGMENT)
		return 0;
	out->protocol = PROTOCOL_UNKNOWN;
	if (ip->at + 8 > ip->end)
		return MALFORMED;
	if (ip->at + 8 - ip->begin > DEEPEST)
		return OTHER_TRANSPORT;
	if (ip->at + 8 > f->copied)
		return TOO_SHORT;
	p = bytes_at(f, ip->at);
	out->protocol = p[0];
	if (this == PROTOCOL_FRAGMENT) {
		/* An atomic fragment (offset 0, no more to come) is a whole packet. */
		if (load16(p + 2) & 0xfff9)
			return FRAGMENT;
		ip->at += 8;
	} else {
		ip->at += (p[1] + 1) * 8;
	}
	return 1;
}

static __always_inline int walk_v6(const struct frame *f, enum direction d, struct place *ip, struct packet *out)
{
	int result;

	if (ip->at + 40 > ip->end)
		return MALFORMED;
	if (ip->at + 40 > f->copied)
		return TOO_SHORT;
	result = read_v6(f, bytes_at(f, ip->at), d, ip, out);
	if (result != PARSED_TCP)
		return result;
	for (int i = 0; i < CHAIN; i++) {
		int step = extension(f, ip, out);

		if (step != 1)
			return step ? step : PARSED_TCP;
	}
	return OTHER_TRANSPORT;
}

/*
 * 0 when an option does not fit. One of a known kind but the wrong length is stepped over, as Linux does.
 *
 * Only places are noted, in memory whose contents the verifier does not follow, and `at` has one range in every round: so the
 * paths through a round end alike, and it does not walk each of them through all the rounds to come.
 */
static __always_inline int find_options(const __u8 *tcp, __u32 header, struct options *found)
{
	__u32 at = 20;

	for (int i = 0; i < 40; i++) {
		__u32 kind, length;

		opaque(at);
		at &= 63;
		if (at >= header)
			return 1;
		kind = tcp[at];
		if (kind == 0)
			return 1;
		if (kind == 1) {
			at++;
			continue;
		}
		if (at + 2 > header)
			return 0;
		length = tcp[at + 1];
		if (length < 2 || at + length > header)
			return 0;
		if (kind == 8 && length == 10)
			found->timestamps = at;
		if (kind == 5 && (length == 10 || length == 18 || length == 26 || length == 34))
			found->sack = at;
		if (kind == 3 && length == 3)
			found->scale = at;
		if (kind == 19 || kind == 29)
			found->authentication = at;
		at += length;
	}
	return 1;
}

/* Options begin at any byte. */
static __always_inline __u32 load32_anywhere(const __u8 *p)
{
	return (__u32)p[0] << 24 | (__u32)p[1] << 16 | (__u32)p[2] << 8 | p[3];
}

/* Payload of one packet, and the headers that merging left out. */
static __always_inline void split_merged(const struct frame *f, struct packet *out)
{
	out->segments = f->segments;
	out->segment_bytes = out->payload_bytes;
	if (f->segments <= 1)
		return;
	if (f->segment_bytes)
		out->segment_bytes = f->segment_bytes;
	out->ip_bytes += (f->segments - 1) * (out->ip_bytes - out->payload_bytes);
}

static __always_inline void read_sack(const __u8 *p, struct packet *out)
{
	__u32 length = p[1], high = out->ack;

	for (__u32 at = 2; at < 34; at += 8) {
		__u32 right;

		if (at + 8 > length)
			break;
		right = load32_anywhere(p + at + 4);
		if (after(right, high))
			high = right;
	}
	out->sack_high = high;
	if (high != out->ack)
		out->has |= HAS_SACK;
}

#define NOP_NOP_TIMESTAMPS 0x0101080a

static __always_inline void set_timestamps(struct packet *out, __u32 tsval, __u32 tsecr)
{
	out->tsval = tsval;
	out->tsecr = tsecr;
	out->has |= HAS_TIMESTAMPS;
}

static __always_inline void set_sum(struct packet *out, __u64 sum)
{
	out->sum = fold(sum);
	out->has |= HAS_SUM;
}

static __always_inline __u64 sum_options(const __u8 *tcp, __u32 header)
{
	__u64 sum = 0;

	UNROLLED
	for (int i = 5; i < 15; i++) {
		if (header <= 4u * i)
			break;
		sum += *(const __u32 *)(tcp + 4 * i);
	}
	return sum;
}

/* PARSED_TCP or MALFORMED: of a packet whose TCP header, and nothing else, was copied. */
static __always_inline int read_options(struct frame *f, struct packet *out)
{
	struct options *found = &f->options;
	const __u8 *tcp = f->bytes;
	const __u8 *p;

	*found = (struct options){};
	if (!find_options(tcp, out->header, found))
		return MALFORMED;
	if (found->timestamps) {
		p = tcp + (found->timestamps & 63);
		set_timestamps(out, load32_anywhere(p + 2), load32_anywhere(p + 6));
	}
	if (found->scale && out->flags & TCP_SYN) {
		p = tcp + (found->scale & 63);
		out->scale = min_u32(p[2], LARGEST_SCALE);
		out->has |= HAS_SCALE;
	}
	if (found->authentication)
		out->has |= HAS_AUTHENTICATION;
	if (found->sack)
		read_sack(tcp + (found->sack & 63), out);
	if (!out->payload_bytes)
		set_sum(out, sum_words(tcp, 5) + sum_options(tcp, out->header));
	split_merged(f, out);
	return PARSED_TCP;
}

/* `p`: the 20 bytes at `t`. Without its options. */
static __always_inline int read_tcp(const __u8 *p, enum direction d, const struct place *t, struct packet *out)
{
	__u32 header = (p[12] >> 4) * 4;

	if (t->at + 20 > t->end || header < 20 || t->at + header > t->end)
		return MALFORMED;
	out->flags = p[13];
	if (out->flags & TCP_SYN && out->flags & (TCP_RST | TCP_FIN))
		return MALFORMED;
	out->seq = load32(p + 4);
	out->ack = load32(p + 8);
	out->window = load16(p + 14);
	out->checksum = *(const __u16 *)(p + 16);
	out->l4_at = t->at - t->begin;
	out->header = header;
	out->key.station_port = d == TO_REMOTE ? load16(p) : load16(p + 2);
	out->key.remote_port = d == TO_REMOTE ? load16(p + 2) : load16(p);
	out->payload_bytes = t->end - t->at - header;
	return OPTIONS_LEFT;
}

static __always_inline int walk_tcp(const struct frame *f, enum direction d, const struct place *t, struct packet *out)
{
	const __u8 *p = bytes_at(f, t->at);
	__u32 header;

	if (t->at + 20 > t->end)
		return MALFORMED;
	if (t->at + 20 - t->begin > DEEPEST)
		return OTHER_TRANSPORT;
	if (t->at + 20 > f->copied)
		return TOO_SHORT;
	header = (p[12] >> 4) * 4;
	if (header >= 20 && t->at + header <= t->end && t->at + header > f->copied)
		return TOO_SHORT;
	return read_tcp(p, d, t, out);
}

/* `p`: the 8 bytes at `t`. */
static __always_inline int read_udp(const struct frame *f, const __u8 *p, enum direction d, const struct place *t,
				    struct packet *out)
{
	if (t->at + 8 > t->end)
		return MALFORMED;
	out->payload_bytes = t->end - t->at - 8;
	split_merged(f, out);
	out->header = 8;
	out->l4_at = t->at - t->begin;
	out->key.station_port = d == TO_REMOTE ? load16(p) : load16(p + 2);
	out->key.remote_port = d == TO_REMOTE ? load16(p + 2) : load16(p);
	return UDP;
}

/* UDP, MALFORMED or TOO_SHORT. */
static __always_inline int walk_udp(const struct frame *f, enum direction d, const struct place *t, struct packet *out)
{
	if (t->at + 8 > t->end)
		return MALFORMED;
	/* Too deep to be looked at: counted, and no flow. */
	if (t->at + 8 - t->begin > DEEPEST) {
		out->header = 0;
		out->payload_bytes = t->end - t->at - 8;
		split_merged(f, out);
		return UDP;
	}
	if (t->at + 8 > f->copied)
		return TOO_SHORT;
	return read_udp(f, bytes_at(f, t->at), d, t, out);
}

static __always_inline void forget_packet(struct packet *out)
{
	out->ip_bytes = 0;
	out->ip_at = 0;
	out->version = 0;
	out->ecn = 0;
	out->segments = 1;
	out->protocol = PROTOCOL_UNKNOWN;
	out->has = 0;
	out->scale = 0;
	out->tsval = 0;
	out->tsecr = 0;
	out->sack_high = 0;
}

/* OPTIONS_LEFT, TOO_SHORT, or the reason why the packet is nothing for the fast path. */
static __always_inline int parse_headers(const struct frame *f, __u32 link, enum direction d, struct packet *out)
{
	struct place place;
	int result;

	forget_packet(out);
	result = strip_link(f, link, &place);
	if (result != PARSED_TCP)
		return result;
	result = place.version == 4 ? walk_v4(f, d, &place, out) : walk_v6(f, d, &place, out);
	if (result != PARSED_TCP)
		return result;
	if (out->protocol == PROTOCOL_TCP)
		return walk_tcp(f, d, &place, out);
	if (out->protocol == PROTOCOL_AH)
		return AUTHENTICATED;
	if (out->protocol != PROTOCOL_UDP)
		return OTHER_TRANSPORT;
	return walk_udp(f, d, &place, out);
}

/*
 * What nearly every packet is: Ethernet, IP without options or extensions, UDP or TCP, all of it where it can be read at once. Read
 * there by the same steps, at places that the compiler knows, without a copy; UNUSUAL is everything else. Of `f` only what does
 * not stand in the copy is used.
 */
static __always_inline int parse_usual(const struct frame *f, const __u8 *data, const __u8 *data_end, enum direction d,
				       struct packet *out)
{
	struct place place = { .begin = FRAME_AT(LINK_ETHERNET), .at = FRAME_AT(LINK_ETHERNET) + 14, .end = f->end };
	const __u8 *ip = data + 14, *next;
	__u32 kind;
	__u64 sum = 0;
	int result, bare;

	if (data + 14 + 20 > data_end)
		return UNUSUAL;
	kind = load16(data + 12);
	if (kind == ETHERTYPE_IPV4 && ip[0] == 0x45) {
		next = ip + 20;
		forget_packet(out);
		result = read_v4(f, ip, d, &place, out);
	} else if (kind == ETHERTYPE_IPV6 && data + 14 + 40 <= data_end && ip[0] >> 4 == 6) {
		next = ip + 40;
		forget_packet(out);
		result = read_v6(f, ip, d, &place, out);
	} else {
		return UNUSUAL;
	}
	if (result != PARSED_TCP)
		return result;
	if (out->protocol == PROTOCOL_UDP && next + 8 <= data_end)
		return read_udp(f, next, d, &place, out);
	if (out->protocol != PROTOCOL_TCP || next + 20 > data_end)
		return UNUSUAL;
	bare = place.end - place.at == (__u32)(next[12] >> 4) * 4;
	if (bare)
		sum = sum_words(next, 5);
	if (next[12] >> 4 == 8 && next + 32 <= data_end && load32(next + 20) == NOP_NOP_TIMESTAMPS) {
		set_timestamps(out, load32(next + 24), load32(next + 28));
		if (bare)
			sum += sum_words(next + 20, 3);
	} else if (next[12] >> 4 != 5)
		return read_tcp(next, d, &place, out);
	result = read_tcp(next, d, &place, out);
	if (result != OPTIONS_LEFT)
		return result;
	if (bare)
		set_sum(out, sum);
	split_merged(f, out);
	return PARSED_TCP;
}

#endif
