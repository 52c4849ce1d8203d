// SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT)
#include "layout.h"
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct flow_key);
	__type(value, struct flow_state);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

static __always_inline int pass(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct counters *c = bpf_map_lookup_elem(&counters, &zero);

	if (c)
		c->packets[TO_STATION] += 1 + (skb->len & 0);
	return -1;
}

SEC("tc")
int lasthop_ingress(struct __sk_buff *skb)
{
	return pass(skb);
}

SEC("tc")
int lasthop_egress(struct __sk_buff *skb)
{
	return pass(skb);
}

SEC("tc")
int lasthop_ingress_ip(struct __sk_buff *skb)
{
	return pass(skb);
}

SEC("tc")
int lasthop_egress_ip(struct __sk_buff *skb)
{
	return pass(skb);
}

SEC("tc")
int nothing(struct __sk_buff *skb)
{
	(void)skb;
	return -1;
}

SEC("syscall")
int set_plan(struct set_plan_args *args)
{
	struct flow_key key = args->key;
	struct flow_state *state = bpf_map_lookup_elem(&flows, &key);
	__u32 d = args->direction & 1;

	if (!state) {
		args->result = -2;
		return 0;
	}
	state->half[d].plan = args->plan;
	args->result = 0;
	return 0;
}

SEC("syscall")
int set_scale(struct set_scale_args *args)
{
	struct flow_key key = args->key;
	struct flow_state *state = bpf_map_lookup_elem(&flows, &key);
	__u32 d = args->direction & 1;

	if (!state) {
		args->result = -2;
		return 0;
	}
	state->half[d].told_scale = args->scale + 1;
	args->result = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
