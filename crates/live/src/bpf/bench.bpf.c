// SPDX-License-Identifier: (Apache-2.0 OR MIT) AND (GPL-2.0-only OR MIT)
#include "lasthop.bpf.c"
