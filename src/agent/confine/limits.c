/* SPDX-License-Identifier: MIT */
/*
 * Decides which controller is used in which hierarchy, and which attempt has which CPUs. All state that must
 * outlive an agent is in the kernel or in files: limits and CPUs in the cgroups, and the v1 directories in a
 * file of the run directory, because the next agent may be started in another cgroup.
 *
 * Whole CPUs (-c 2) become a cpuset of CPUs that no other attempt has, so that programs see the requested
 * number. Fractions of a CPU become a time quota, and so do whole CPUs if cpusets are not available.
 */
#include "agent/confine/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/confine/cpu_pool.h"
#include "agent/confine/limit_files.h"
#include "agent/confine/limits_private.h"
#include "agent/confine/name.h"
#include "agent/confine/v1.h"
#include "agent/confine/v2.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"

#define REMEMBERED     "cgroup-v1" // file in the run dir: lines of controller and directory
#define REMEMBERED_MAX 32768U      // bytes of it
#define REGIONS_MAX    65536U
#define NODE_CPUS      "/sys/devices/system/node/node%u/cpulist"

const char *const limits_controllers[LIMIT_CONTROLLERS] = {
    [LIMIT_MEMORY] = "memory",
    [LIMIT_PIDS] = "pids",
    [LIMIT_CPU] = "cpu",
    [LIMIT_CPUSET] = "cpuset",
    [LIMIT_DMEM] = "dmem",
};

/* --- v1: finding our place --- */

/* The directory that an earlier agent used, or NULL. The caller frees it. */
static char *remembered_base(char *text, const char *controller)
{
    size_t length = strlen(controller);
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchrnul(line, '\n');
        if (strncmp(line, controller, length) == 0 && line[length] == ' ')
            return xstrndup(line + length + 1, (size_t)(end - line) - length - 1);
        line = *end == '\n' ? end + 1 : end;
    }
    return NULL;
}

static void remember_bases(const struct limits *limits, const char *run_dir)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *name = xasprintf("%s/" REMEMBERED, run_dir);
    for (size_t i = 0; i < LIMIT_CONTROLLERS; i++)
        if (limits->places[i].base != NULL)
            buffer_printf(&text, "%s %s\n", limits_controllers[i], limits->places[i].base);
    /* Without the file, the next agent still finds the groups, unless it is started in another cgroup. */
    if (text.length > 0)
        (void)file_write(AT_FDCWD, name, text.bytes, text.length, false);
}

static void find_base(
    struct limits *limits, enum limit_controller controller, char *known, const char *parent)
{
    struct limits_place *place = &limits->places[controller];
    _cleanup_free_ char *before = remembered_base(known, limits_controllers[controller]);
    int r = 0;
    if (before != NULL && v1_is_base(before, limits->instance, controller, &place->why))
        place->base = take_ptr(before);
    else
        r = v1_find_base(
            limits_controllers[controller], parent, limits->instance, controller, &place->base, &place->why);
    place->hierarchy = r == 0 ? HIERARCHY_V1 : HIERARCHY_NONE;
}

/* --- CPUs --- */

bool limits_read_cpus(const char *dir, const char *file, struct cpu_set *ret)
{
    char text[CPU_LIST_SIZE];
    return limit_files_read(dir, file, text, sizeof(text)) && cpu_set_parse(text, ret) &&
           cpu_set_count(ret) > 0;
}

static void turn_off_cpuset(struct limits *limits, const char *dir)
{
    limits->places[LIMIT_CPUSET].hierarchy = HIERARCHY_NONE;
    (void)error_set(&limits->places[LIMIT_CPUSET].why, -ENODATA, "%s does not contain its CPUs", dir);
}

static void note_cpus(void *arg, const char *dir, const struct spool_id *id)
{
    struct limits *limits = arg;
    struct cpu_set set;
    if (limits_read_cpus(dir, "cpuset.cpus", &set))
        cpu_pool_note(&limits->pool, id->job, id->attempt, &set);
}

static void fill_pool_v1(struct limits *limits)
{
    const char *base = limits->places[LIMIT_CPUSET].base;
    if ((!limits_read_cpus(base, "cpuset.effective_cpus", &limits->pool.all) &&
            !limits_read_cpus(base, "cpuset.cpus", &limits->pool.all)) ||
        !limit_files_read(base, "cpuset.mems", limits->mems, LIMITS_MEMS_SIZE) || limits->mems[0] == '\0') {
        turn_off_cpuset(limits, base);
        return;
    }
    v1_list(base, limits->instance, note_cpus, limits);
}

/* In v2 attempts are named "jJOB.ATTEMPT". */
static void fill_pool_v2(struct limits *limits, const char *instance)
{
    DIR *attempts = opendir(instance);
    if (attempts == NULL || !limits_read_cpus(instance, "cpuset.cpus.effective", &limits->pool.all))
        turn_off_cpuset(limits, instance);
    for (const struct dirent *entry; attempts != NULL && (entry = readdir(attempts)) != NULL;) {
        struct spool_id id = { 0 };
        char name[SPOOL_NAME_SIZE];
        int n = snprintf(name, sizeof(name), "%s.0.0", entry->d_name + (entry->d_name[0] == 'j'));
        if (entry->d_name[0] != 'j' || n >= (int)sizeof(name) || !spool_parse_name(name, &id))
            continue;
        _cleanup_free_ char *dir = xasprintf("%s/%s", instance, entry->d_name);
        note_cpus(limits, dir, &id);
    }
    if (attempts != NULL)
        (void)closedir(attempts);
}

static void note_group(void *arg, const char *dir, const struct spool_id *id)
{
    *(bool *)arg = true;
}

/* The file exists only in the root cgroup. */
static void read_regions(struct limits *limits, const char *instance)
{
    _cleanup_free_ char *dir = xstrdup(instance);
    free(take_ptr(limits->regions));
    for (char *slash; limits->regions == NULL && (slash = strrchr(dir, '/')) != NULL; *slash = '\0') {
        _cleanup_buffer_ struct buffer text = { 0 };
        _cleanup_free_ char *path = xasprintf("%s/dmem.capacity", dir);
        if (file_read(AT_FDCWD, path, REGIONS_MAX, &text) == 0 && text.length > 0)
            limits->regions = xstrdup(buffer_text(&text));
    }
}

/* --- life --- */

struct limits *limits_new(const char *run_dir, const char *parent)
{
    struct limits *limits = xcalloc(1, sizeof(*limits));
    _cleanup_buffer_ struct buffer known = { 0 };
    _cleanup_free_ char *name = xasprintf("%s/" REMEMBERED, run_dir);
    confine_name_read(run_dir, limits->instance);
    (void)file_read(AT_FDCWD, name, REMEMBERED_MAX, &known);
    for (size_t i = 0; i < LIMIT_CONTROLLERS; i++) {
        struct limits_place *place = &limits->places[i];
        find_base(limits, (enum limit_controller)i, buffer_text(&known), parent);
        if (place->base != NULL)
            v1_list(place->base, limits->instance, note_group, &place->has_groups);
    }
    if (limits->places[LIMIT_CPUSET].hierarchy == HIERARCHY_V1)
        fill_pool_v1(limits);
    remember_bases(limits, run_dir);
    return limits;
}

void limits_enable_v2(struct limits *limits, const char *instance)
{
    for (size_t i = 0; i < LIMIT_CONTROLLERS; i++) {
        struct limits_place *place = &limits->places[i];
        struct error why = { 0 };
        int r = v2_enable(instance, limits_controllers[i], &why);
        if (r == 0)
            place->hierarchy = HIERARCHY_V2;
        else if (place->hierarchy == HIERARCHY_V2)
            place->hierarchy = HIERARCHY_NONE;
        /* A controller used by v1 is not available in v2, so only the error of v1 is useful. */
        if (r < 0 && place->hierarchy == HIERARCHY_NONE && (r != -ENOSYS || place->why.code == -ENOSYS))
            place->why = why;
    }
    if (limits->places[LIMIT_CPUSET].hierarchy == HIERARCHY_V2)
        fill_pool_v2(limits, instance);
    if (limits->places[LIMIT_DMEM].hierarchy == HIERARCHY_V2)
        read_regions(limits, instance);
}

void limits_free(struct limits *limits)
{
    if (limits == NULL)
        return;
    for (size_t i = 0; i < LIMIT_CONTROLLERS; i++)
        free(limits->places[i].base);
    free(limits->regions);
    free(limits);
}

/* --- one attempt --- */

/* Creates the attempt's group of this v1 controller; the init of each step enters it. NULL on error. */
static const char *make_v1(struct limits *limits, const struct spool_id *id, enum limit_controller controller,
    struct launch_spec *spec, struct error *err)
{
    struct limits_place *place = &limits->places[controller];
    _cleanup_free_ char *group = v1_make(place->base, limits->instance, id, err);
    if (group == NULL)
        return NULL;
    place->has_groups = true;
    strings_add(&spec->v1_cgroups, group);
    return spec->v1_cgroups.items[spec->v1_cgroups.count - 1];
}

static int apply(struct limits *limits, const struct spool_id *id, const char *attempt,
    enum limit_controller controller, const struct limit_values *values, struct launch_spec *spec,
    struct error *err)
{
    enum limit_hierarchy hierarchy = limits->places[controller].hierarchy;
    const char *dir = hierarchy == HIERARCHY_V1 ? make_v1(limits, id, controller, spec, err) : attempt;
    if (hierarchy == HIERARCHY_V1 && dir == NULL)
        return err->code;
    return limit_files_write(dir, hierarchy, controller, values, err);
}

static bool is_on(const struct limits *limits, enum limit_controller controller)
{
    return limits->places[controller].hierarchy != HIERARCHY_NONE;
}

static int apply_memory(struct limits *limits, const struct spool_id *id, const char *attempt,
    struct launch_spec *spec, struct error *err)
{
    const struct limit_values values = { .memory = spec->memory_limit };
    free(take_ptr(spec->memory_cgroup));
    /* In v2 memory is counted even without a limit. This shows whether the node itself ran out of it. */
    if (limits->places[LIMIT_MEMORY].hierarchy == HIERARCHY_V2)
        spec->memory_cgroup = xstrdup(attempt);
    if (spec->memory_limit == 0 || !is_on(limits, LIMIT_MEMORY))
        return 0;
    int r = apply(limits, id, attempt, LIMIT_MEMORY, &values, spec, err);
    if (r == 0 && spec->memory_cgroup == NULL)
        spec->memory_cgroup = xstrdup(spec->v1_cgroups.items[spec->v1_cgroups.count - 1]);
    return r;
}

static int apply_cpuset(struct limits *limits, const struct spool_id *id, const char *attempt,
    struct launch_spec *spec, const struct cpu_set *set, struct error *err)
{
    _cleanup_free_ char *list = xcalloc(1, CPU_LIST_SIZE);
    const struct limit_values values = { .cpus = list, .mems = limits->mems };
    cpu_set_format(set, list);
    int r = apply(limits, id, attempt, LIMIT_CPUSET, &values, spec, err);
    return r;
}

/* The CPUs near its GPUs; NULL if unknown. */
static const struct cpu_set *find_near(const struct launch_spec *spec, struct cpu_set *set)
{
    char path[64], text[CPU_LIST_SIZE];
    struct cpu_set here;
    bool is_known = false;
    *set = (struct cpu_set){ 0 };
    for (uint64_t left = spec->numas; left != 0; left &= left - 1) {
        (void)snprintf(path, sizeof(path), NODE_CPUS, (unsigned)__builtin_ctzll(left));
        if (!limit_files_read("", path, text, sizeof(text)) || !cpu_set_parse(text, &here))
            continue;
        cpu_set_add_all(set, &here);
        is_known = true;
    }
    return is_known ? set : NULL;
}

/* The attempt competes for the CPUs as a whole, however many processes it has. In v2 each attempt does so by
 * default. */
static int group_on_cpus(
    struct limits *limits, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    if (limits->places[LIMIT_CPU].hierarchy != HIERARCHY_V1)
        return 0;
    return make_v1(limits, id, LIMIT_CPU, spec, err) == NULL ? err->code : 0;
}

static int apply_cpu(struct limits *limits, const struct spool_id *id, const char *attempt,
    struct launch_spec *spec, struct error *err)
{
    const struct limit_values quota = { .cpu_milli = spec->cpu_milli };
    struct cpu_set near, set;
    if (spec->cpu_milli == 0)
        return group_on_cpus(limits, id, spec, err);
    if (spec->cpu_milli % 1000 == 0 && is_on(limits, LIMIT_CPUSET) &&
        cpu_pool_take(
            &limits->pool, id->job, id->attempt, spec->cpu_milli / 1000, find_near(spec, &near), &set)) {
        int r = apply_cpuset(limits, id, attempt, spec, &set, err);
        return r < 0 ? r : group_on_cpus(limits, id, spec, err);
    }
    return is_on(limits, LIMIT_CPU) ? apply(limits, id, attempt, LIMIT_CPU, &quota, spec, err) : 0;
}

static bool has_line(const char *text, const char *line)
{
    size_t length = strlen(line);
    for (const char *at = strstr(text, line); at != NULL; at = strstr(at + 1, line))
        if ((at == text || at[-1] == '\n') && (at[length] == '\n' || at[length] == '\0'))
            return true;
    return false;
}

static int apply_pids(struct limits *limits, const struct spool_id *id, const char *attempt,
    struct launch_spec *spec, struct error *err)
{
    const struct limit_values values = { .pids = spec->pids_max };
    if (spec->pids_max == 0 || !is_on(limits, LIMIT_PIDS))
        return 0;
    return apply(limits, id, attempt, LIMIT_PIDS, &values, spec, err);
}

/* The kernel rounds down to whole pages, and shares are whole MiB. If the limit is not in the file
 * afterwards, it was not set. */
static int apply_dmem(
    const struct limits *limits, const char *attempt, const struct launch_spec *spec, struct error *err)
{
    _cleanup_buffer_ struct buffer now = { 0 };
    if (spec->dmem.count > 0 && !is_on(limits, LIMIT_DMEM))
        return error_set(err, -ENOTSUP, "GPU memory cannot be limited any more: the dmem controller is off");
    for (size_t i = 0; i < spec->dmem.count; i++) {
        const struct limit_values values = { .dmem = spec->dmem.items[i] };
        int r = limit_files_write(attempt, HIERARCHY_V2, LIMIT_DMEM, &values, err);
        if (r < 0)
            return r;
    }
    _cleanup_free_ char *path = xasprintf("%s/dmem.max", attempt);
    int r = spec->dmem.count > 0 ? file_read(AT_FDCWD, path, REGIONS_MAX, &now) : 0;
    for (size_t i = 0; r == 0 && i < spec->dmem.count; i++)
        if (!has_line(buffer_text(&now), spec->dmem.items[i]))
            return error_set(err, -EIO, "%s does not contain the limit %s", path, spec->dmem.items[i]);
    return r < 0 ? error_set_errno(err, r, "cannot read %s", path) : 0;
}

int limits_apply(struct limits *limits, const struct spool_id *id, const char *attempt,
    struct launch_spec *spec, struct error *err)
{
    strings_clear(&spec->v1_cgroups);
    int r = apply_memory(limits, id, attempt, spec, err);
    if (r == 0)
        r = apply_cpu(limits, id, attempt, spec, err);
    if (r == 0)
        r = apply_pids(limits, id, attempt, spec, err);
    return r == 0 ? apply_dmem(limits, attempt, spec, err) : r;
}

int limits_remove(struct limits *limits, const struct spool_id *id)
{
    int first = 0;
    for (size_t i = 0; i < LIMIT_CONTROLLERS; i++) {
        const struct limits_place *place = &limits->places[i];
        int r = place->has_groups ? v1_remove(place->base, limits->instance, id) : 0;
        first = first == 0 ? r : first;
    }
    if (first == 0)
        cpu_pool_give_back(&limits->pool, id->job, id->attempt);
    return first;
}

struct visit {
    const char *instance;
    confine_visit_fn *visit;
    void *arg;
};

static void visit_group(void *arg, const char *dir, const struct spool_id *id)
{
    const struct visit *visit = arg;
    _cleanup_free_ char *attempt =
        xasprintf("%s/j%" PRIu64 ".%u", visit->instance == NULL ? "" : visit->instance, id->job, id->attempt);
    if (visit->instance == NULL || access(attempt, F_OK) < 0)
        visit->visit(visit->arg, id, v1_is_populated(dir));
}

void limits_list(struct limits *limits, const char *instance, confine_visit_fn *visit, void *arg)
{
    struct visit all = { instance, visit, arg };
    for (size_t i = 0; i < LIMIT_CONTROLLERS; i++)
        if (limits->places[i].base != NULL)
            v1_list(limits->places[i].base, limits->instance, visit_group, &all);
}

const char *limits_how(const struct limits *limits, enum limit_controller controller)
{
    static const char *const words[HIERARCHIES] = { NULL, "cgroup v1", "cgroup v2" };
    return words[limits->places[controller].hierarchy];
}

const char *limits_regions(const struct limits *limits)
{
    return limits->regions;
}

const struct error *limits_why(const struct limits *limits, enum limit_controller controller)
{
    return &limits->places[controller].why;
}
