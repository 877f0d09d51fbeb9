/* SPDX-License-Identifier: MIT */
/* The results of GPU tests: the last few of each GPU, kept in a file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/message.h"

struct test_results;

extern const struct record_type test_results_record;

/* Reads the file in the directory `state_fd`, which is borrowed. A damaged one is discarded. */
struct test_results *test_results_new(int state_fd);
void test_results_free(struct test_results *results); // NULL is allowed

/* The figures of the lines that `mgpu-gpu-test health` has written; with NULL, why there are none. */
void test_results_put(
    struct test_results *results, const char *uuid, const char *output, const char *why, int64_t wall_ms);

/* When this GPU was tested last; 0: never. */
int64_t test_results_time(const struct test_results *results, const char *uuid);

/* Sets `tests` of the GPU. */
void test_results_show(const struct test_results *results, struct gpu_state *gpu);

/* The number that is the value of `name` in a line of JSON. */
bool test_results_number(const char *output, const char *name, double *ret);
