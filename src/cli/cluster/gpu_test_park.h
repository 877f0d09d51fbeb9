/* SPDX-License-Identifier: MIT */
/* mgpu gpu test --park. */
#pragma once

#include "cli/options/call.h"
#include "cli/options/list.h"

extern const struct list_kind gpu_test_park_list;

struct gpu_test_park_options {
    uint64_t most_bytes; // the most to park; 0: 40 GiB
    const char *user;    // whose the jobs are; NULL: the caller's, or those of the user behind sudo
};

/* Tests parking on the nodes named, or on all where jobs can be parked, and sends mgpud the results. Returns
 * an exit status or a negative errno. */
int gpu_test_park(
    struct call *call, int argc, char **argv, const struct gpu_test_park_options *options, struct error *err);
