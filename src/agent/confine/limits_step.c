/* SPDX-License-Identifier: MIT */
/*
 * Limits of one step below those of its attempt. In v2 the step's cell gets them, for which the attempt
 * enables the controllers; in v1 a group below that of the attempt: BASE/mgpu.HASH.j42.1/step3.0.
 *
 * The CPUs of a step are a part of the attempt's, and are not shared with other steps as long as there are
 * enough. If the attempt has no CPUs of its own, the step gets a quota.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/confine/limits_private.h"
#include "agent/confine/v1.h"
#include "agent/confine/v2.h"
#include "base/memory.h"

/* Where the limits of a step are written. */
struct place_of_step {
    struct limits *limits;
    const struct spool_id *id;
    const char *attempt, *cell; // v2; NULL without it
    struct launch_spec *spec;
};

static enum limit_hierarchy hierarchy_of(const struct place_of_step *step, enum limit_controller controller)
{
    enum limit_hierarchy hierarchy = step->limits->places[controller].hierarchy;
    return hierarchy == HIERARCHY_V2 && step->cell == NULL ? HIERARCHY_NONE : hierarchy;
}

/* The step enters this group instead of the one above it. */
static void enter_instead(struct strings *groups, const char *above, const char *group)
{
    for (size_t i = 0; i < groups->count; i++)
        if (strcmp(groups->items[i], above) == 0) {
            free(groups->items[i]);
            groups->items[i] = xstrdup(group);
            return;
        }
    strings_add(groups, group);
}

static int apply_v1(const struct place_of_step *step, enum limit_controller controller,
    const struct limit_values *values, struct error *err)
{
    struct limits_place *place = &step->limits->places[controller];
    _cleanup_free_ char *above = v1_make(place->base, step->limits->instance, step->id, err);
    if (above == NULL)
        return err->code;
    place->has_groups = true;
    _cleanup_free_ char *group = v1_step_path(above, step->id);
    if (mkdir(group, 0755) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create cgroup %s", group);
    int r = limit_files_write(group, HIERARCHY_V1, controller, values, err);
    if (r < 0)
        return r;
    enter_instead(&step->spec->v1_cgroups, above, group);
    if (controller == LIMIT_MEMORY) {
        free(step->spec->memory_cgroup);
        step->spec->memory_cgroup = take_ptr(group);
    }
    return 0;
}

static int apply_v2(const struct place_of_step *step, enum limit_controller controller,
    const struct limit_values *values, struct error *err)
{
    int r = v2_enable_children(step->attempt, limits_controllers[controller], err);
    if (r == 0)
        r = limit_files_write(step->cell, HIERARCHY_V2, controller, values, err);
    if (r < 0)
        return r;
    free(step->spec->job_cgroup);
    step->spec->job_cgroup = xstrdup(step->cell);
    if (controller == LIMIT_MEMORY) {
        free(step->spec->memory_cgroup);
        step->spec->memory_cgroup = xstrdup(step->cell);
    }
    return 0;
}

static int apply(const struct place_of_step *step, enum limit_controller controller,
    const struct limit_values *values, struct error *err)
{
    switch (hierarchy_of(step, controller)) {
    case HIERARCHY_V1: return apply_v1(step, controller, values, err);
    case HIERARCHY_V2: return apply_v2(step, controller, values, err);
    default: return 0; // only accounted for
    }
}

/* --- CPUs --- */

/* The CPUs of the steps in this directory. */
static void find_taken(const char *dir, struct cpu_set *ret)
{
    DIR *steps = opendir(dir);
    for (const struct dirent *entry; steps != NULL && (entry = readdir(steps)) != NULL;) {
        struct cpu_set set;
        _cleanup_free_ char *path = xasprintf("%s/%s", dir, entry->d_name);
        if (strncmp(entry->d_name, "step", 4) != 0 || !limits_read_cpus(path, "cpuset.cpus", &set))
            continue;
        for (size_t i = 0; i < sizeof(set.words) / sizeof(set.words[0]); i++)
            ret->words[i] |= set.words[i];
    }
    if (steps != NULL)
        (void)closedir(steps);
}

/* Free ones first. */
static void choose(const struct cpu_set *own, const struct cpu_set *taken, size_t count, struct cpu_set *ret)
{
    *ret = (struct cpu_set){ 0 };
    for (int is_taken = 0; is_taken < 2; is_taken++)
        for (uint32_t cpu = 0; cpu < CPU_POOL_MAX && count > 0; cpu++)
            if (cpu_set_has(own, cpu) && cpu_set_has(taken, cpu) == is_taken) {
                cpu_set_add(ret, cpu);
                count--;
            }
}

/* The directory with the CPUs of the attempt; NULL if it has none of its own. The caller frees it. */
static char *own_cpus(const struct place_of_step *step, struct cpu_set *ret)
{
    struct error err = { 0 };
    enum limit_hierarchy hierarchy = hierarchy_of(step, LIMIT_CPUSET);
    const struct limits_place *place = &step->limits->places[LIMIT_CPUSET];
    _cleanup_free_ char *dir = hierarchy == HIERARCHY_V2 ? xstrdup(step->attempt)
                               : hierarchy == HIERARCHY_V1
                                   ? v1_make(place->base, step->limits->instance, step->id, &err)
                                   : NULL;
    return dir != NULL && limits_read_cpus(dir, "cpuset.cpus", ret) ? take_ptr(dir) : NULL;
}

static int apply_cpu(const struct place_of_step *step, uint32_t cpu_milli, struct error *err)
{
    struct cpu_set own, taken = { 0 }, chosen;
    const struct limit_values quota = { .cpu_milli = cpu_milli };
    _cleanup_free_ char *dir = own_cpus(step, &own);
    if (dir == NULL)
        return apply(step, LIMIT_CPU, &quota, err);
    if (cpu_set_count(&own) * 1000 <= cpu_milli)
        return 0;
    find_taken(dir, &taken);
    choose(&own, &taken, cpu_milli / 1000, &chosen);
    _cleanup_free_ char *list = xcalloc(1, CPU_LIST_SIZE);
    cpu_set_format(&chosen, list);
    const struct limit_values values = { .cpus = list, .mems = step->limits->mems };
    return apply(step, LIMIT_CPUSET, &values, err);
}

int limits_apply_step(struct limits *limits, const struct spool_id *id, const char *attempt, const char *cell,
    struct launch_spec *spec, struct error *err)
{
    const struct place_of_step step = { limits, id, attempt, cell, spec };
    const struct limit_values memory = { .memory = spec->memory_limit, .is_step = true };
    int r = spec->memory_limit > 0 ? apply(&step, LIMIT_MEMORY, &memory, err) : 0;
    return r == 0 && spec->cpu_milli > 0 ? apply_cpu(&step, spec->cpu_milli, err) : r;
}

void limits_remove_step(struct limits *limits, const struct spool_id *id)
{
    for (size_t i = 0; i < LIMIT_CONTROLLERS; i++)
        if (limits->places[i].has_groups)
            v1_remove_step(limits->places[i].base, limits->instance, id);
}
