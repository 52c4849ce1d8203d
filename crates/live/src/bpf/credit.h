/* SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT) */
/*
 * The arithmetic of credit: crates/core/src/credit/account.rs restated, to the last bit. Laws and sources stand there.
 *
 * An account keeps its debt u = 2I - alpha >= 1 [ns of channel time] as of a number of boosts k; a boost is
 * u -> ceil(u / 2), and k of them ceil(u / 2^k), applied late. Accounts are ordered by v = u 2^k, which no boost touches.
 */
#ifndef LASTHOP_CREDIT_H
#define LASTHOP_CREDIT_H

#include "uapi.h"

#ifndef __bpf__
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Half of what 64 bits hold: nobody owes more, and doubling stays in range. */
#define LARGEST_DEBT 0x7fffffffffffffffull

struct account {
	__u64 debt_ns;
	__u64 boosts;
};

/* The least first has the most credit. */
struct credit_key {
	__u64 exponent; /* boosts + floor(log2 debt) */
	__u64 mantissa; /* the debt, its top bit at bit 63 */
};

/* When a bucket of credit is full again if nothing more is taken, ns. */
struct bucket {
	__u64 full_at_ns;
};

static __always_inline __u64 saturating_add(__u64 a, __u64 b)
{
	__u64 sum = a + b;

	return sum < a ? ~0ull : sum;
}

static __always_inline struct account account_new(__u64 increment_ns, __u64 boosts)
{
	return (struct account){ .debt_ns = increment_ns ? increment_ns : 1, .boosts = boosts };
}

/* After all boosts so far; `boosts` is never less than the account's own. */
static __always_inline __u64 debt_at(const struct account *account, __u64 boosts)
{
	__u64 missed = boosts - account->boosts;

	return missed < 64 ? ((account->debt_ns - 1) >> missed) + 1 : 1;
}

static __always_inline __s64 credit_at(const struct account *account, __u64 boosts, __u64 increment_ns)
{
	return (__s64)(2 * increment_ns - debt_at(account, boosts));
}

static __always_inline void charge(struct account *account, __u64 boosts, __u64 cost_ns)
{
	__u64 debt = saturating_add(debt_at(account, boosts), cost_ns);

	account->debt_ns = debt > LARGEST_DEBT ? LARGEST_DEBT : debt;
	account->boosts = boosts;
}

/* Zero bits above the highest set one; value is not 0. BPF has no instruction for it. */
static __always_inline __u32 leading_zeros(__u64 value)
{
	__u32 zeros = 0;

	if (!(value >> 32)) {
		zeros += 32;
		value <<= 32;
	}
	if (!(value >> 48)) {
		zeros += 16;
		value <<= 16;
	}
	if (!(value >> 56)) {
		zeros += 8;
		value <<= 8;
	}
	if (!(value >> 60)) {
		zeros += 4;
		value <<= 4;
	}
	if (!(value >> 62)) {
		zeros += 2;
		value <<= 2;
	}
	if (!(value >> 63))
		zeros += 1;
	return zeros;
}

static __always_inline struct credit_key key_of(const struct account *account)
{
	__u32 zeros = leading_zeros(account->debt_ns);

	return (struct credit_key){
		.exponent = account->boosts + (63 - zeros),
		.mantissa = account->debt_ns << (zeros & 63),
	};
}

static __always_inline int is_exhausted(__u64 debt_ns, __u64 increment_ns)
{
	return debt_ns >= 2 * increment_ns;
}

/* Takes the credit of one new flow, if there is as much: one comes in every interval, a full bucket holds burst. */
static __always_inline int bucket_take(struct bucket *bucket, __u64 now_ns, __u64 interval_ns, __u64 burst_ns)
{
	__u64 from = bucket->full_at_ns > now_ns ? bucket->full_at_ns : now_ns;
	__u64 full_at = saturating_add(from, interval_ns);

	if (full_at - now_ns > burst_ns)
		return 0;
	bucket->full_at_ns = full_at;
	return 1;
}

/* One step of the hash of a flow's key. */
static __always_inline __u64 mix(__u64 x)
{
	__u64 y = (x ^ x >> 32) * 0x9e3779b97f4a7c15ull;

	return y ^ y >> 29;
}

#endif
