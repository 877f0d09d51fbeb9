/* SPDX-License-Identifier: MIT */
/* A cluster and a queue to try the scheduler on. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/pass.h"

#define GIB (1ULL << 30)

struct fixture {
    struct cluster cluster;
    struct queue queue;
    struct queue_entry entries[64]; // entry of job n at n
    uint64_t started[64];           // job ids in order of their start
    struct record_list grants[64];  // of job n at n
    size_t n_started;
};

/* One node "box" with this many empty GPUs of 24 GiB and 2 CPUs. */
int fixture_open(void **state, unsigned gpus);
int fixture_close(void **state);

void fixture_add(struct fixture *fixture, uint64_t job, int32_t priority, struct sched_request request);
void fixture_pass(struct fixture *fixture);
/* Gives back what the job holds. */
void fixture_end(struct fixture *fixture, uint64_t job);
/* The GPU index the job got as its n-th. */
uint32_t fixture_gpu(const struct fixture *fixture, uint64_t job, size_t n);
void assert_started(const struct fixture *fixture, size_t count, ...); // job ids, all so far
