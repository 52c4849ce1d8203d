// SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT)
/*
 * The data path with a packet that is new on every run, for benches only.
 *
 * BPF_PROG_TEST_RUN repeats one packet: a second run would see a retransmission, or a window that is low already. So
 * each program here first makes the packet new, and beside it stands a program that does only that, to be subtracted.
 * The packet is Ethernet, IPv4 without options, TCP.
 */
#include "lasthop.bpf.c"

#define TCP_AT (14 + 20)
#define STEP_BYTES 1448

struct tcp_start {
	__be16 source;
	__be16 destination;
	__be32 seq;
	__be32 ack;
	__be16 flags;
	__be16 window;
	__be16 checksum;
	__be16 urgent;
};

static __always_inline struct tcp_start *tcp_of(struct __sk_buff *skb)
{
	__u8 *data = (__u8 *)(long)skb->data;

	if (data + TCP_AT + sizeof(struct tcp_start) > (__u8 *)(long)skb->data_end)
		return 0;
	return (struct tcp_start *)(data + TCP_AT);
}

static __always_inline void next_data(struct __sk_buff *skb)
{
	struct tcp_start *tcp = tcp_of(skb);

	if (tcp)
		tcp->seq = __builtin_bswap32(__builtin_bswap32(tcp->seq) + STEP_BYTES);
}

static __always_inline void next_ack(struct __sk_buff *skb)
{
	struct tcp_start *tcp = tcp_of(skb);

	if (tcp) {
		tcp->ack = __builtin_bswap32(__builtin_bswap32(tcp->ack) + STEP_BYTES);
		tcp->window = 0xffff;
		/* The part of the checksum that a virtual link leaves, which no number changes, lies there. */
		tcp->checksum = tcp->urgent;
	}
}

SEC("tc")
int bench_data(struct __sk_buff *skb)
{
	next_data(skb);
	return pass(skb, LINK_ETHERNET, TO_STATION, NOWHERE);
}

SEC("tc")
int bench_data_alone(struct __sk_buff *skb)
{
	next_data(skb);
	return GO_ON;
}

SEC("tc")
int bench_ack(struct __sk_buff *skb)
{
	next_ack(skb);
	return pass(skb, LINK_ETHERNET, TO_REMOTE, NOWHERE);
}

SEC("tc")
int bench_ack_alone(struct __sk_buff *skb)
{
	next_ack(skb);
	return GO_ON;
}
