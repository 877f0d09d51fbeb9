/* SPDX-License-Identifier: MIT */
#include "agent/confine/cpu_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cpu_set_has(const struct cpu_set *set, uint32_t cpu)
{
    return (set->words[cpu / 64] >> (cpu % 64) & 1) != 0;
}

void cpu_set_add(struct cpu_set *set, uint32_t cpu)
{
    set->words[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

void cpu_set_add_all(struct cpu_set *set, const struct cpu_set *more)
{
    for (size_t i = 0; i < CPU_POOL_MAX / 64; i++)
        set->words[i] |= more->words[i];
}

size_t cpu_set_count(const struct cpu_set *set)
{
    size_t count = 0;
    for (size_t i = 0; i < CPU_POOL_MAX / 64; i++)
        count += (size_t)__builtin_popcountll(set->words[i]);
    return count;
}

/* Parses a number at *text and advances *text. */
static bool parse_cpu(const char **text, uint32_t *ret)
{
    char *end = NULL;
    if (**text < '0' || **text > '9')
        return false;
    unsigned long cpu = strtoul(*text, &end, 10);
    *text = end;
    *ret = (uint32_t)cpu;
    return cpu < CPU_POOL_MAX;
}

bool cpu_set_parse(const char *text, struct cpu_set *ret)
{
    struct cpu_set set = { 0 };
    while (*text != '\0' && *text != '\n') {
        uint32_t first, last;
        if (!parse_cpu(&text, &first))
            return false;
        last = first;
        if (*text == '-' && (text++, !parse_cpu(&text, &last)))
            return false;
        for (uint32_t cpu = first; cpu <= last; cpu++)
            cpu_set_add(&set, cpu);
        if (*text == ',')
            text++;
        else if (*text != '\0' && *text != '\n')
            return false;
    }
    *ret = set;
    return true;
}

void cpu_set_format(const struct cpu_set *set, char text[CPU_LIST_SIZE])
{
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t cpu = 0; cpu < CPU_POOL_MAX; cpu++) {
        uint32_t first = cpu;
        if (!cpu_set_has(set, cpu))
            continue;
        while (cpu + 1 < CPU_POOL_MAX && cpu_set_has(set, cpu + 1))
            cpu++;
        int n = first == cpu
                    ? snprintf(text + length, CPU_LIST_SIZE - length, "%s%u", length > 0 ? "," : "", cpu)
                    : snprintf(text + length, CPU_LIST_SIZE - length, "%s%u-%u", length > 0 ? "," : "", first,
                          cpu);
        length += (size_t)n;
    }
}

static bool is_owner(const struct cpu_pool *pool, uint32_t cpu, uint64_t job, uint32_t attempt)
{
    return pool->owners[cpu].job == job && pool->owners[cpu].attempt == attempt;
}

static void set_owner(struct cpu_pool *pool, const struct cpu_set *set, uint64_t job, uint32_t attempt)
{
    for (uint32_t cpu = 0; cpu < CPU_POOL_MAX; cpu++) {
        if (!cpu_set_has(set, cpu))
            continue;
        pool->owners[cpu].job = job;
        pool->owners[cpu].attempt = attempt;
    }
}

void cpu_pool_note(struct cpu_pool *pool, uint64_t job, uint32_t attempt, const struct cpu_set *set)
{
    set_owner(pool, set, job, attempt);
}

void cpu_pool_give_back(struct cpu_pool *pool, uint64_t job, uint32_t attempt)
{
    for (uint32_t cpu = 0; cpu < CPU_POOL_MAX; cpu++)
        if (is_owner(pool, cpu, job, attempt))
            pool->owners[cpu].job = 0;
}

/* Adds free CPUs until there are `count`; if `near` is NULL, any CPUs. */
static void pick(const struct cpu_pool *pool, const struct cpu_set *near, size_t count, struct cpu_set *set)
{
    size_t left = count - cpu_set_count(set);
    for (uint32_t cpu = 0; cpu < CPU_POOL_MAX && left > 0; cpu++) {
        if (!cpu_set_has(&pool->all, cpu) || pool->owners[cpu].job != 0 || cpu_set_has(set, cpu) ||
            (near != NULL && !cpu_set_has(near, cpu)))
            continue;
        cpu_set_add(set, cpu);
        left--;
    }
}

static void find_own(const struct cpu_pool *pool, uint64_t job, uint32_t attempt, struct cpu_set *ret)
{
    *ret = (struct cpu_set){ 0 };
    for (uint32_t cpu = 0; cpu < CPU_POOL_MAX; cpu++)
        if (cpu_set_has(&pool->all, cpu) && is_owner(pool, cpu, job, attempt))
            cpu_set_add(ret, cpu);
}

bool cpu_pool_take(struct cpu_pool *pool, uint64_t job, uint32_t attempt, size_t count,
    const struct cpu_set *near, struct cpu_set *ret)
{
    struct cpu_set set;
    find_own(pool, job, attempt, &set);
    if (cpu_set_count(&set) != count) {
        cpu_pool_give_back(pool, job, attempt);
        set = (struct cpu_set){ 0 };
        if (near != NULL)
            pick(pool, near, count, &set);
        pick(pool, NULL, count, &set);
    }
    if (count == 0 || cpu_set_count(&set) != count)
        return false;
    set_owner(pool, &set, job, attempt);
    *ret = set;
    return true;
}
