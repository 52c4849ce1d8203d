// SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT)
/*
 * CHAP as a queue discipline (Linux 6.16, CONFIG_NET_SCH_BPF): holds the packets, asks chap.h, keeps the pace.
 *
 * One object serves one interface: the controller loads one for each. Root only, so that one order holds for the whole
 * link. The pace is its own: what lies below (a driver's queue, mac80211's) pushes back late or never. A controller that
 * is silent for 2 s is dead: then packets leave at once, still in CHAP's order.
 */
#include "uapi.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "chap.h"

#pragma clang diagnostic ignored "-Wunused-parameter" /* BPF_PROG's own */

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define NET_XMIT_CN 2
#define EBUSY 16

/* The kernel's types, with what is used here; CO-RE finds the places. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device;
struct sk_buff {
	char cb[48];
	unsigned char *head;
	__u32 end;
	__u32 len;
};
struct qdisc_skb_cb {
	unsigned int pkt_len;
};
struct skb_shared_info {
	unsigned short gso_segs;
};
struct qdisc_skb_head {
	__u32 qlen;
};
struct gnet_stats_queue {
	__u32 qlen;
	__u32 backlog;
	__u32 drops;
	__u32 requeues;
	__u32 overlimits;
};
struct Qdisc {
	__u32 limit;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};
#pragma clang attribute pop

/* In full: the verifier takes no mere mention of it. */
struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};
struct nlattr;
struct netlink_ext_ack;

struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *arg, struct netlink_ext_ack *extack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
};

extern __u32 bpf_skb_get_hash(struct sk_buff *skb) __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free_list) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, __u64 expire, __u64 delta_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;
extern int bpf_dynptr_from_skb(struct sk_buff *skb, __u64 flags, struct bpf_dynptr *ptr) __ksym;
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;

#ifndef __kptr
#define __kptr __attribute__((btf_type_tag("kptr")))
#endif

/* The packets themselves, by number. */
struct held {
	struct sk_buff __kptr *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CHAP_PACKETS);
	__type(key, __u32);
	__type(value, struct held);
} held SEC(".maps");

static __always_inline __u32 length_of(const struct sk_buff *skb)
{
	return ((const struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

static __always_inline __u32 segments_of(const struct sk_buff *skb)
{
	const struct skb_shared_info *shared =
		bpf_rdonly_cast(skb->head + skb->end, bpf_core_type_id_kernel(struct skb_shared_info));
	__u32 segments = shared->gso_segs;

	return segments > 1 ? segments : 1;
}

/* The first bytes of an Ethernet frame that carries IP; of other links the IP header alone. */
struct headers {
	__u8 station[6];
	__u8 source[6];
	__u8 type[2];
	__u8 ip[40];
};

#define LONGEST_IP 40
#define SHORTEST_IP 20

/* What is not there stays zero: a short frame, and the addresses of a link that has none. */
static __always_inline void read_headers(struct sk_buff *skb, struct headers *h)
{
	struct bpf_dynptr content;

	if (bpf_dynptr_from_skb(skb, 0, &content))
		return;
	if (chap_control.header_bytes != sizeof(*h) - LONGEST_IP) {
		if (bpf_dynptr_read(h->ip, LONGEST_IP, &content, 0, 0))
			bpf_dynptr_read(h->ip, SHORTEST_IP, &content, 0, 0);
	} else if (bpf_dynptr_read(h, sizeof(*h), &content, 0, 0)) {
		bpf_dynptr_read(h, sizeof(*h) - LONGEST_IP + SHORTEST_IP, &content, 0, 0);
	}
}

static __always_inline __u64 word(const __u8 *p)
{
	__u64 value;

	__builtin_memcpy(&value, p, 8);
	return __builtin_bswap64(value);
}

static __always_inline __u64 half_word(const __u8 *p)
{
	return (__u64)p[0] << 24 | (__u64)p[1] << 16 | (__u64)p[2] << 8 | p[3];
}

/* Source, destination and protocol: what core::credit::key has for FlowKind::Hosts. A tagged frame's are not found. */
static __always_inline __u64 hosts_of(const struct headers *h)
{
	__u64 w[5] = { 0 };
	__u64 hash = chap_control.secret;

	if (h->ip[0] >> 4 == 4) {
		w[1] = 0xffffull << 32 | half_word(h->ip + 12);
		w[3] = 0xffffull << 32 | half_word(h->ip + 16);
		w[4] = h->ip[9];
	} else if (h->ip[0] >> 4 == 6) {
		w[0] = word(h->ip + 8);
		w[1] = word(h->ip + 16);
		w[2] = word(h->ip + 24);
		w[3] = word(h->ip + 32);
		w[4] = h->ip[6];
	}
	for (int i = 0; i < 5; i++)
		hash = mix(hash ^ w[i]);
	return hash;
}

SEC("struct_ops")
int BPF_PROG(chap_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	__u32 bytes = length_of(skb), segments = segments_of(skb), number = chap_free_packet(), station, slot, victim;
	__u64 now = bpf_ktime_get_ns(), key;
	struct headers h = {};
	struct sk_buff *other;
	struct held *place;

	read_headers(skb, &h);
	station = chap_station(h.station);
	key = chap_control.flow_kind == CHAP_HOSTS ? hosts_of(&h) : bpf_skb_get_hash(skb);
	place = bpf_map_lookup_elem(&held, &number);
	if (!place) {
		chap_stats.lost++;
		sch->qstats.drops++;
		bpf_qdisc_skb_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	other = bpf_kptr_xchg(&place->skb, skb);
	if (other) {
		chap_stats.lost++;
		bpf_qdisc_skb_drop(other, to_free);
	}
	slot = chap_slot(now, key, station);
	chap_describe(number, bytes, segments, station);
	chap_push(now, slot, number);
	chap_stats.merged += segments > 1;
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	if (!chap_is_over_limit()) {
		if (chap.queued > chap_stats.most_queued)
			chap_stats.most_queued = chap.queued;
		return NET_XMIT_SUCCESS;
	}

	victim = heap_first(POOREST);
	number = chap_take_head(now, victim, 0);
	place = bpf_map_lookup_elem(&held, &number);
	if (!place)
		return NET_XMIT_SUCCESS;
	other = bpf_kptr_xchg(&place->skb, 0);
	chap_release(number);
	chap_stats.dropped++;
	sch->q.qlen--;
	sch->qstats.drops++;
	if (other) {
		sch->qstats.backlog -= length_of(other);
		bpf_qdisc_skb_drop(other, to_free);
	}
	/* A local sender slows down when it was its own packet. */
	return victim == slot ? NET_XMIT_CN : NET_XMIT_SUCCESS;
}

SEC("struct_ops")
struct sk_buff *BPF_PROG(chap_dequeue, struct Qdisc *sch)
{
	__u64 now, cost_ns = 0;
	struct held *place;
	struct sk_buff *skb;
	__u32 number;

	if (chap_is_empty())
		return 0;
	now = bpf_ktime_get_ns();
	if (chap_is_paced(now)) {
		if (now < chap.next_ns) {
			chap_stats.waits++;
			sch->qstats.overlimits++;
			bpf_qdisc_watchdog_schedule(sch, chap.next_ns, 0);
			return 0;
		}
	} else {
		chap_stats.unpaced++;
	}
	number = chap_next(now, &cost_ns);
	place = bpf_map_lookup_elem(&held, &number);
	if (!place)
		return 0;
	skb = bpf_kptr_xchg(&place->skb, 0);
	chap_release(number);
	chap_pace(now, cost_ns);
	sch->q.qlen--;
	if (!skb) {
		chap_stats.lost++;
		return 0;
	}
	sch->qstats.backlog -= length_of(skb);
	chap_stats.sent_packets++;
	chap_stats.sent_bytes += length_of(skb);
	chap_stats.sent_ns += cost_ns;
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

static int free_packet(__u32 number, void *context)
{
	struct held *place = bpf_map_lookup_elem(&held, &number);
	struct sk_buff *skb;

	if (place) {
		skb = bpf_kptr_xchg(&place->skb, 0);
		if (skb)
			bpf_kfree_skb(skb);
	}
	chap_clear_packet(number);
	return 0;
}

static int free_flow(__u32 slot, void *context)
{
	chap_clear_slot(slot);
	return 0;
}

static __always_inline void start_anew(void)
{
	bpf_loop(CHAP_PACKETS, free_packet, 0, 0);
	bpf_loop(CHAP_SLOTS, free_flow, 0, 0);
	chap_clear();
}

SEC("struct_ops")
int BPF_PROG(chap_init, struct Qdisc *sch, struct nlattr *arg, struct netlink_ext_ack *extack)
{
	if (chap.in_use)
		return -EBUSY;
	chap.in_use = 1;
	start_anew();
	sch->limit = chap_control.limit;
	return 0;
}

SEC("struct_ops")
void BPF_PROG(chap_reset, struct Qdisc *sch)
{
	start_anew();
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops")
void BPF_PROG(chap_destroy, struct Qdisc *sch)
{
	chap.in_use = 0;
}

SEC(".struct_ops.link")
struct Qdisc_ops chap_ops = {
	.id = "chap",
	.enqueue = (void *)chap_enqueue,
	.dequeue = (void *)chap_dequeue,
	.init = (void *)chap_init,
	.reset = (void *)chap_reset,
	.destroy = (void *)chap_destroy,
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
