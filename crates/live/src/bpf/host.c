/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fast path's headers compiled for the host, so that a test can hold them equal to Rust. */
#include "layout.h"

int lasthop_host_sizes(void);

int lasthop_host_sizes(void)
{
	return sizeof(struct flow_state);
}
