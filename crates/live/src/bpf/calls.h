/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/* What the controller calls: part of lasthop.bpf.c, whose maps it works on. */
#ifndef LASTHOP_CALLS_H
#define LASTHOP_CALLS_H

/* Mapped into the controller: what it asks for, and the answer. It asks once at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct reads);
} reads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct plans);
} plans SEC(".maps");

/* Copies the connections that `reads` names: one call for many, for a call costs several times what a copy does. */
SEC("syscall")
int read_flows(void *none)
{
	__u32 zero = 0, i;
	struct reads *r = bpf_map_lookup_elem(&reads, &zero);
	struct flow_state *state;

	(void)none;
	if (!r)
		return 0;
	for (i = 0; i < READS && i < r->count; i++) {
		state = bpf_map_lookup_elem(&flows, &r->keys[i]);
		r->found[i] = !!state;
		if (state)
			r->states[i] = *state;
	}
	return 0;
}

/*
 * Takes away the places of those connections that `reads` names of which nothing has passed since `states` was read. A packet that
 * passes on another processor between comparison and removal is measured in a place that nobody has, or in that of who gets it next:
 * once, and of a connection that had ended or was silent for hours. Its next packet begins anew. No map of the kernel keeps a
 * place from being given away while a program looks at it; one that pushes out the oldest gave away those of the living.
 */
SEC("syscall")
int remove_flows(void *none)
{
	__u32 zero = 0, i;
	struct reads *r = bpf_map_lookup_elem(&reads, &zero);
	struct flow_state *state;

	(void)none;
	if (!r)
		return 0;
	for (i = 0; i < READS && i < r->count; i++) {
		state = bpf_map_lookup_elem(&flows, &r->keys[i]);
		r->found[i] = state && READ_ONCE(state->last_seen_ns) == r->states[i].last_seen_ns &&
			      !bpf_map_delete_elem(&flows, &r->keys[i]);
	}
	return 0;
}

/*
 * The calls of the controller. All but the last write only what the data path reads, so no packet's work is undone; a plan
 * seen half old and half new lasts for one packet.
 */
SEC("syscall")
int set_plans(void *none)
{
	__u32 zero = 0, i;
	struct plans *p = bpf_map_lookup_elem(&plans, &zero);
	struct flow_state *state;

	(void)none;
	if (!p)
		return 0;
	p->found = 0;
	for (i = 0; i < READS && i < p->count; i++) {
		state = bpf_map_lookup_elem(&flows, &p->each[i].key);
		if (!state)
			continue;
		state->half[p->each[i].direction & 1].plan = p->each[i].plan;
		p->found++;
	}
	return 0;
}

SEC("syscall")
int set_udp_plan(struct set_udp_plan_args *args)
{
	struct flow_key key = args->key;
	struct udp_state *state = bpf_map_lookup_elem(&udp_flows, &key);
	__u32 d = args->direction & 1;

	args->result = NO_SUCH_FLOW;
	if (!state)
		return 0;
	state->half[d].plan = args->plan;
	args->result = 0;
	return 0;
}

SEC("syscall")
int set_class(struct set_class_args *args)
{
	struct flow_key key = args->key;
	struct light_flow *flow = bpf_map_lookup_elem(&light_flows, &key);

	args->result = NO_SUCH_FLOW;
	if (!flow)
		return 0;
	flow->user_priority = args->user_priority & 7;
	args->result = 0;
	return 0;
}

SEC("syscall")
int set_scale(struct set_scale_args *args)
{
	struct flow_key key = args->key;
	struct flow_state *state = bpf_map_lookup_elem(&flows, &key);
	__u32 d = args->direction & 1;

	args->result = NO_SUCH_FLOW;
	if (!state)
		return 0;
	state->half[d].conntrack_scale = min_u32(args->scale, LARGEST_SCALE) + 1;
	args->result = 0;
	return 0;
}

/*
 * The window update that is due now, and when the next one is.
 *
 * It moves the edge as an ACK does, and an ACK may pass on another CPU in the same nanoseconds: then one of the two steps is
 * forgotten, or paid for once and made twice. That is one and a half updates' worth at most, either way; if an ACK takes back
 * what an update has just told, its sender has to expect that of any receiver (RFC 9293 section 3.8.6). An ACK that makes an
 * update due while the caller lets go does not ask: the next one does.
 */
SEC("syscall")
int window_update_due(struct window_update_args *args)
{
	struct flow_key key = args->key;
	struct flow_state *state = bpf_map_lookup_elem(&flows, &key);
	struct window_update update = {};
	__u32 d = args->direction & 1;
	__u64 now = call_ns(args), due;

	args->now_ns = now;
	args->due_ns = 0;
	args->has = 0;
	args->result = NO_SUCH_FLOW;
	if (!state)
		return 0;
	args->result = 0;
	due = NOT_DUE;
	if (!args->released) {
		update = window_update(state, &in_force, d, now);
		due = window_due(state, &in_force, d, now);
	}
	if (update.is_due) {
		args->has = update.has_timestamps ? HAS_UPDATE | HAS_UPDATE_TIMESTAMPS : HAS_UPDATE;
		args->seq = update.seq;
		args->ack = update.ack;
		args->window = update.window;
		args->tsval = update.tsval;
		args->tsecr = update.tsecr;
	}
	if (due != NOT_DUE && !is_stale(&in_force, now))
		args->due_ns = due ? due : 1;
	else
		state->half[d].answered = state->half[d].flags & ASKED;
	return 0;
}

#endif
