/* SPDX-License-Identifier: MIT */
/* Which attempt has which CPUs of this node to itself. Touches no file: the truth is in the cgroups, from
 * which an agent fills a pool when it starts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_POOL_MAX  4096U  // CPUs of one node
#define CPU_LIST_SIZE 24576U // "0-3,8,..." of that many

struct cpu_set {
    uint64_t words[CPU_POOL_MAX / 64];
};

struct cpu_pool {
    struct cpu_set all; // that jobs may use
    /* Owner of each CPU, by job and attempt; job 0: free. */
    struct {
        uint64_t job;
        uint32_t attempt;
    } owners[CPU_POOL_MAX];
};

/* "0-3,8": as the kernel writes it, with or without the end of the line. False when it is not a list or names
 * a CPU that is too high; an empty list is one. */
bool cpu_set_parse(const char *text, struct cpu_set *ret);

/* The same back, shortest form. */
void cpu_set_format(const struct cpu_set *set, char text[CPU_LIST_SIZE]);

size_t cpu_set_count(const struct cpu_set *set);
bool cpu_set_has(const struct cpu_set *set, uint32_t cpu);
void cpu_set_add(struct cpu_set *set, uint32_t cpu);

/* These CPUs are the attempt's, as its cgroup says. */
void cpu_pool_note(struct cpu_pool *pool, uint64_t job, uint32_t attempt, const struct cpu_set *set);

/*
 * CPUs for the attempt that nobody else has: those of `near` first, then the others, lowest first. An attempt
 * that has some keeps them when their number is right. False, and nothing is taken, when there are not
 * enough.
 */
bool cpu_pool_take(struct cpu_pool *pool, uint64_t job, uint32_t attempt, size_t count,
    const struct cpu_set *near, struct cpu_set *ret);

void cpu_pool_give_back(struct cpu_pool *pool, uint64_t job, uint32_t attempt);
