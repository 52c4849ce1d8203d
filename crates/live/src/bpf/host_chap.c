/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The headers of credit and of CHAP's order compiled for the host, so that a test can hold them equal to Rust. */
#define SEC(name)
#include "chap.h"

struct account lasthop_host_account_new(__u64 increment_ns, __u64 boosts);
__u64 lasthop_host_debt_at(const struct account *account, __u64 boosts);
__s64 lasthop_host_credit_at(const struct account *account, __u64 boosts, __u64 increment_ns);
void lasthop_host_charge(struct account *account, __u64 boosts, __u64 cost_ns);
struct credit_key lasthop_host_key(const struct account *account);
int lasthop_host_is_exhausted(__u64 debt_ns, __u64 increment_ns);
int lasthop_host_bucket_take(struct bucket *bucket, __u64 now_ns, __u64 interval_ns, __u64 burst_ns);
__u64 lasthop_host_mix(__u64 x);
void lasthop_host_chap_reset(const struct chap_control *control);
__u32 lasthop_host_chap_enqueue(__u64 now, __u64 key, __u32 station, __u32 bytes, __u32 *dropped);
__u32 lasthop_host_chap_dequeue(__u64 now, __u64 *cost_ns);
void lasthop_host_chap_stats(struct chap_stats *stats);

struct account lasthop_host_account_new(__u64 increment_ns, __u64 boosts)
{
	return account_new(increment_ns, boosts);
}

__u64 lasthop_host_debt_at(const struct account *account, __u64 boosts)
{
	return debt_at(account, boosts);
}

__s64 lasthop_host_credit_at(const struct account *account, __u64 boosts, __u64 increment_ns)
{
	return credit_at(account, boosts, increment_ns);
}

void lasthop_host_charge(struct account *account, __u64 boosts, __u64 cost_ns)
{
	charge(account, boosts, cost_ns);
}

struct credit_key lasthop_host_key(const struct account *account)
{
	return key_of(account);
}

int lasthop_host_is_exhausted(__u64 debt_ns, __u64 increment_ns)
{
	return is_exhausted(debt_ns, increment_ns);
}

int lasthop_host_bucket_take(struct bucket *bucket, __u64 now_ns, __u64 interval_ns, __u64 burst_ns)
{
	return bucket_take(bucket, now_ns, interval_ns, burst_ns);
}

__u64 lasthop_host_mix(__u64 x)
{
	return mix(x);
}

void lasthop_host_chap_reset(const struct chap_control *control)
{
	for (__u32 number = 0; number < CHAP_PACKETS; number++)
		chap_clear_packet(number);
	for (__u32 slot = 0; slot < CHAP_SLOTS; slot++)
		chap_clear_slot(slot);
	chap_clear();
	chap_stats = (struct chap_stats){ 0 };
	chap_control = *control;
}

/* The number of the packet that came; `dropped` is that of the one that had to go for it, or CHAP_NONE. */
__u32 lasthop_host_chap_enqueue(__u64 now, __u64 key, __u32 station, __u32 bytes, __u32 *dropped)
{
	__u32 number = chap_free_packet(), slot = chap_slot(now, key, station);

	chap_describe(number, bytes, 1, station);
	chap_push(now, slot, number);
	*dropped = CHAP_NONE;
	if (chap_is_over_limit()) {
		*dropped = chap_take_head(now, heap_first(POOREST), 0);
		chap_release(*dropped);
	}
	return number;
}

__u32 lasthop_host_chap_dequeue(__u64 now, __u64 *cost_ns)
{
	__u32 number;

	if (chap_is_empty())
		return CHAP_NONE;
	number = chap_next(now, cost_ns);
	chap_release(number);
	return number;
}

void lasthop_host_chap_stats(struct chap_stats *stats)
{
	*stats = chap_stats;
}
