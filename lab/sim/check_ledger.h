/* SPDX-License-Identifier: MIT */
/* A second ledger of allocations, maintained by the checker. It shares no code with the scheduler's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "lab/sim/check_case.h"
#include "sched/cluster/cluster.h"

#define LEDGER_GPUS     64U
#define LEDGER_GPU_MEM  (80LL << 30) // bytes of each GPU of a case
#define LEDGER_RESERVED 16U

struct ledger_node {
    int64_t whole[LEDGER_GPUS], share[LEDGER_GPUS], memory[LEDGER_GPUS], users[LEDGER_GPUS];
    bool is_paused[LEDGER_GPUS];
    int64_t cpu, host_memory, jobs;
    bool is_down, is_drained;
};

struct ledger_reserved {
    uint64_t id;
    int64_t from_ms, until_ms;
    uint32_t uid;
    uint32_t nodes[LEDGER_GPUS], gpus[LEDGER_GPUS];
    size_t n_gpus;
};

struct ledger {
    const struct sim_case *of;
    struct ledger_node *nodes;
    struct ledger_reserved reserved[LEDGER_RESERVED];
    size_t n_reserved;
};

void ledger_init(struct ledger *ledger, const struct sim_case *of);
void ledger_clear(struct ledger *ledger);

/* Adds an allocation. -EPROTO with a sentence if its resources are not free or do not match the request. */
int ledger_give(struct ledger *ledger, const int64_t *job, const struct allocation *allocation,
    int64_t now_ms, struct error *err);
void ledger_take_back(struct ledger *ledger, const int64_t *job, const struct allocation *allocation);
