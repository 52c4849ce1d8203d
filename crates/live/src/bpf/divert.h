/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/* Hooks of interfaces of which a process keeps the queue or repairs the losses. Part of lasthop.bpf.c, whose maps and `pass` they use. */
#ifndef LASTHOP_DIVERT_H
#define LASTHOP_DIVERT_H

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

/* The device that a packet is to be handed to. */
static __always_inline __u32 divert_to(struct __sk_buff *skb)
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

static __always_inline int divert(struct __sk_buff *skb, enum link_layer link)
{
	__u32 into = divert_to(skb);

	/* It passed here a moment ago, and lost its class on the way. */
	return into == COMES_BACK && !radios.any ? GO_ON : pass(skb, link, TO_STATION, into);
}

SEC("tc")
int lasthop_divert(struct __sk_buff *skb)
{
	return divert(skb, LINK_ETHERNET);
}

SEC("tc")
int lasthop_divert_ip(struct __sk_buff *skb)
{
	return divert(skb, LINK_IP);
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

/* The device that a bare acknowledgment is to be handed to. */
static __always_inline int catch_to(struct __sk_buff *skb)
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
	return pass(skb, LINK_ETHERNET, TO_REMOTE, catch_to(skb));
}

SEC("tc")
int lasthop_catch_ip(struct __sk_buff *skb)
{
	return pass(skb, LINK_IP, TO_REMOTE, catch_to(skb));
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

#endif
