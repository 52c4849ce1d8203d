/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* 200,000,000 instructions, and how many nanoseconds they took: does a clock that should count instructions count them? */
#include <stdio.h>
#include <time.h>

int main(void)
{
	unsigned long left = 100000000;
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
#if defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("1: subs %0, %0, #1\nbne 1b" : "+r"(left) : : "cc");
#else
	__asm__ volatile("1: dec %0\njnz 1b" : "+r"(left) : : "cc");
#endif
	clock_gettime(CLOCK_MONOTONIC, &after);
	printf("%lld\n", (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec);
	return 0;
}
