/* SPDX-License-Identifier: MIT */
#include "controller/core/partition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/state.h"

const struct core_partition *core_partitions(const struct core *core, size_t *ret_count)
{
    *ret_count = core->options.n_partitions;
    return core->options.partitions;
}

/* The default partition; NULL only if none is configured, as in tests. */
static const struct core_partition *default_partition(const struct core *core)
{
    for (size_t i = 0; i < core->options.n_partitions; i++)
        if (core->options.partitions[i].is_default)
            return &core->options.partitions[i];
    return NULL;
}

static const struct core_partition *find(const struct core *core, const char *name, size_t length)
{
    for (size_t i = 0; i < core->options.n_partitions; i++) {
        const struct core_partition *partition = &core->options.partitions[i];
        if (strlen(partition->set.name) == length && strncmp(partition->set.name, name, length) == 0)
            return partition;
    }
    return NULL;
}

static int refuse_unknown(const struct core *core, const char *name, size_t length, struct error *err)
{
    _cleanup_buffer_ struct buffer known = { 0 };
    for (size_t i = 0; i < core->options.n_partitions; i++)
        buffer_printf(&known, "%s%s", i > 0 ? ", " : "", core->options.partitions[i].set.name);
    (void)error_set(err, -EINVAL, "there is no partition '%.*s'", length < 60 ? (int)length : 60, name);
    return error_hint(err, "the partitions are: %.200s", buffer_text(&known));
}

int core_each_partition_of(const struct core *core, const struct job_ask *ask, core_partition_fn *check,
    const void *arg, struct error *err)
{
    const struct core_partition *usual = default_partition(core);
    const char *names = ask->partition;
    int r = 0;
    if (names == NULL)
        return usual != NULL && ask->adopted_pid == 0 ? check(usual, arg, err) : 0;
    while (r == 0 && *names != '\0') {
        size_t length = strcspn(names, ",");
        const struct core_partition *partition = find(core, names, length);
        r = partition != NULL ? check(partition, arg, err) : refuse_unknown(core, names, length, err);
        names += length + (names[length] == ',');
    }
    return r;
}

static int check_limits(const struct core_partition *partition, const void *arg, struct error *err)
{
    const struct job_ask *ask = arg;
    const char *name = partition->set.name;
    if (partition->max_time_ms != 0 && ask->time_limit_ms > partition->max_time_ms) {
        char asked[32], most[32];
        format_duration(ask->time_limit_ms, asked, sizeof(asked));
        format_duration(partition->max_time_ms, most, sizeof(most));
        (void)error_set(err, -ERANGE, "requested a time limit of %s; the maximum in partition %.60s is %s",
            asked, name, most);
        return error_hint(err, "-t %" PRId64 "s, or another partition", partition->max_time_ms / 1000);
    }
    uint32_t gpus = ask->gpus > 0 ? ask->gpus : ask->nodes * ask->gpus_per_node;
    if (partition->max_gpus != 0 && gpus > partition->max_gpus) {
        (void)error_set(err, -ERANGE,
            "requested %" PRIu32 " GPUs; a job in partition %.60s has at most %" PRIu32, gpus, name,
            partition->max_gpus);
        return error_hint(err, "-g %" PRIu32 ", or another partition", partition->max_gpus);
    }
    return 0;
}

int core_check_partition(const struct core *core, const struct job_ask *ask, struct error *err)
{
    return core_each_partition_of(core, ask, check_limits, ask, err);
}

static void lower(int64_t *limit_ms, int64_t other_ms)
{
    if (other_ms != 0 && (*limit_ms == 0 || other_ms < *limit_ms))
        *limit_ms = other_ms;
}

struct addition {
    struct core_partition_terms *to;
};

static int add_terms(const struct core_partition *partition, const void *arg, struct error *err)
{
    struct core_partition_terms *terms = ((const struct addition *)arg)->to;
    lower(&terms->max_time_ms, partition->max_time_ms);
    lower(&terms->default_time_ms, partition->default_time_ms);
    if (terms->name == NULL && !partition->is_builtin)
        terms->name = partition->set.name; // the default one: the request names none
    return 0;
}

struct core_partition_terms core_partition_terms(const struct core *core, const struct job_ask *ask)
{
    struct core_partition_terms terms = { .name = ask->partition };
    const struct addition addition = { &terms };
    struct error ignored;
    (void)core_each_partition_of(core, ask, add_terms, &addition, &ignored);
    return terms;
}

void core_configure_partitions(struct core *core)
{
    size_t count = core->options.n_partitions;
    _cleanup_free_ struct cluster_partition *sets = xcalloc(count + 1, sizeof(*sets));
    for (size_t i = 0; i < count; i++)
        sets[i] = core->options.partitions[i].set; // borrowed
    sched_set_partitions(core->sched, core->now_ms, sets, count);
}
