/* SPDX-License-Identifier: MIT */
/* The CPUs that attempts have exclusively on this node. Accesses no files: the cgroups are authoritative, and
 * an agent fills a pool from them when it starts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_POOL_MAX  4096U  // CPUs of one node
#define CPU_LIST_SIZE 24576U // size of "0-3,8,..." for all of them

struct cpu_set {
    uint64_t words[CPU_POOL_MAX / 64];
};

struct cpu_pool {
    struct cpu_set all; // available to jobs
    /* Owner of each CPU, by job and attempt; job 0: free. */
    struct {
        uint64_t job;
        uint32_t attempt;
    } owners[CPU_POOL_MAX];
};

/* Parses "0-3,8", in the kernel's format, with or without a newline. False if it is not a list or contains a
 * CPU number that is too high; an empty list is valid. */
bool cpu_set_parse(const char *text, struct cpu_set *ret);

/* Formats the list in its shortest form. */
void cpu_set_format(const struct cpu_set *set, char text[CPU_LIST_SIZE]);

size_t cpu_set_count(const struct cpu_set *set);
bool cpu_set_has(const struct cpu_set *set, uint32_t cpu);
void cpu_set_add(struct cpu_set *set, uint32_t cpu);

void cpu_set_add_all(struct cpu_set *set, const struct cpu_set *more);

/* Marks these CPUs as the attempt's, according to its cgroup. */
void cpu_pool_note(struct cpu_pool *pool, uint64_t job, uint32_t attempt, const struct cpu_set *set);

/*
 * Allocates free CPUs to the attempt: those of `near` first, then others, lowest first. An attempt that
 * already has the right number keeps them. False, without any change, if there are not enough.
 */
bool cpu_pool_take(struct cpu_pool *pool, uint64_t job, uint32_t attempt, size_t count,
    const struct cpu_set *near, struct cpu_set *ret);

void cpu_pool_give_back(struct cpu_pool *pool, uint64_t job, uint32_t attempt);
