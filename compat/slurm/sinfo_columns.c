/* SPDX-License-Identifier: MIT */
#include "compat/slurm/sinfo_columns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/partitions.h"
#include "compat/slurm/slurm.h"

#define TEXT(name) static char *text_##name(const json_t *group, int64_t now_ms)

/* A line: {"partition": one of the API, "nodes": [nodes of the API]}, all in one state. */
static const json_t *first_of(const json_t *group)
{
    return json_array_get(json_object_get(group, "nodes"), 0);
}

static int64_t count_of(const json_t *group)
{
    return (int64_t)json_array_size(json_object_get(group, "nodes"));
}

static const json_t *partition_of(const json_t *group)
{
    return json_object_get(group, "partition");
}

TEXT(partition)
{
    bool is_default = json_is_true(json_object_get(partition_of(group), "default"));
    return xasprintf("%s%s", field_text(partition_of(group), "name"), is_default ? "*" : "");
}

FIELD(partition_name, xstrdup(field_text(partition_of(group), "name")))
FIELD(available, xstrdup("up"))
FIELD(limit, slurm_partition_time(partition_of(group), "max_time", "infinite"))
FIELD(usual_limit, slurm_partition_time(partition_of(group), "default_time", "n/a"))
FIELD(priority, xasprintf("%" PRId64, field_integer(partition_of(group), "priority", 0)))

TEXT(users)
{
    const char *users = field_text(partition_of(group), "users");
    return users != NULL ? text_escape(users, 256) : xstrdup("all");
}

FIELD(count, xasprintf("%" PRId64, count_of(group)))
FIELD(state, xstrdup(count_of(group) > 0 ? slurm_node_state(first_of(group)) : "n/a"))
FIELD(compact_state, xstrdup(count_of(group) > 0 ? slurm_node_state_compact(first_of(group)) : "n/a"))

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

TEXT(nodes)
{
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0;
    json_t *node = NULL;
    json_array_foreach(json_object_get(group, "nodes"), index, node)
        strings_add(&names, field_text(node, "name"));
    if (names.count > 0)
        qsort(names.items, names.count, sizeof(*names.items), by_name);
    return hostlist_compress(&names);
}

FIELD(cpus, xasprintf("%" PRId64, field_integer(first_of(group), "cpus", count_of(group) > 0)))
FIELD(memory, xasprintf("%" PRId64, field_integer(first_of(group), "memory_bytes", 0) >> 20))

TEXT(gres)
{
    char *gres = slurm_node_gres(first_of(group));
    return gres != NULL ? gres : xstrdup("(null)");
}

TEXT(features)
{
    const char *features = field_text(first_of(group), SLURM_NODE_FEATURES);
    return xstrdup(features != NULL ? features : "(null)");
}

TEXT(reason)
{
    const char *reason = field_text(first_of(group), "reason");
    return reason != NULL ? text_escape(reason, 256) : xstrdup("none");
}

/* Allocated, idle, other, all. */
TEXT(summary)
{
    size_t index = 0;
    json_t *node = NULL;
    int64_t counts[3] = { 0 };
    json_array_foreach(json_object_get(group, "nodes"), index, node)
    {
        const char *state = slurm_node_state(node);
        counts[strcmp(state, "idle") == 0                                       ? 1
               : strcmp(state, "mixed") == 0 || strcmp(state, "allocated") == 0 ? 0
                                                                                : 2]++;
    }
    return xasprintf(
        "%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64, counts[0], counts[1], counts[2], count_of(group));
}

/* The same for CPUs: allocated, free, on nodes out of service, all. */
TEXT(cpu_summary)
{
    int64_t used = 0, idle = 0, other = 0;
    size_t index = 0;
    json_t *node = NULL;
    json_array_foreach(json_object_get(group, "nodes"), index, node)
    {
        int64_t cpus = field_integer(node, "cpus", 1), of_jobs = field_integer(node, SLURM_NODE_CPUS, 0);
        used += of_jobs;
        *(field_is(node, "state", "up") ? &idle : &other) += cpus - of_jobs;
    }
    return xasprintf("%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64, used, idle, other, used + idle + other);
}

FIELD(upper_no, xstrdup("NO"))
FIELD(word_no, xstrdup("no"))
FIELD(size, xstrdup("1-infinite"))
FIELD(root, xstrdup("root"))
FIELD(unknown, xstrdup("Unknown"))

TEXT(short_summary)
{
    char *text = text_summary(group, now_ms), *slash = strchr(text, '/');
    if (slash != NULL && (slash = strchr(slash + 1, '/')) != NULL)
        *slash = '\0';
    return text;
}

TEXT(gres_used)
{
    char *used = slurm_node_gres_used(first_of(group), true);
    return used != NULL ? used : xstrdup("(null)");
}

FIELD(memory_used, xasprintf("%" PRId64, field_integer(first_of(group), SLURM_NODE_MEMORY, 0) >> 20))
FIELD(name, xstrdup(field_text(first_of(group), "name")))
FIELD(sockets, xasprintf("1:%" PRId64 ":1", field_integer(first_of(group), "cpus", 1)))

#define CONSTANT(name, value)                                                                                \
    TEXT(name)                                                                                               \
    {                                                                                                        \
        (void)group, (void)now_ms;                                                                           \
        return xstrdup(value);                                                                               \
    }

CONSTANT(unlimited, "UNLIMITED")
CONSTANT(one, "1")
CONSTANT(preemption, "REQUEUE")
CONSTANT(all, "all")
CONSTANT(version, SLURM_VERSION)
CONSTANT(port, "6818")

const struct slurm_column sinfo_columns[] = {
    { 'a', "Available", "AVAIL", text_available, 0 },
    { 'A', "NodeAI", "NODES(A/I)", text_short_summary, 0 },
    { 'b', "features_act", "ACTIVE_FEATURES", text_features, 0 },
    { 'B', "MaxCPUsPerNode", "MAX_CPUS_PER_NODE", text_unlimited, 0 },
    { 'c', "CPUs", "CPUS", text_cpus, 0 },
    { 'C', "CPUsState", "CPUS(A/I/O/T)", text_cpu_summary, 0 },
    { 'd', "Disk", "TMP_DISK", slurm_text_zero, 0 },
    { 'D', "Nodes", "NODES", text_count, 0 },
    { 'e', "FreeMem", "FREE_MEM", slurm_text_unavailable, 0 },
    { 'E', "Reason", "REASON", text_reason, 0 },
    { 'f', "Features", "AVAIL_FEATURES", text_features, 0 },
    { 'F', "NodeAIOT", "NODES(A/I/O/T)", text_summary, 0 },
    { 'g', "Groups", "GROUPS", text_users, 0 },
    { 'G', "Gres", "GRES", text_gres, 0 },
    { 'h', "OverSubscribe", "OVERSUBSCRIBE", text_upper_no, 0 },
    { 'H', "Timestamp", "TIMESTAMP", text_unknown, 0 },
    { 'i', "Reservation", "RESERVATION", slurm_text_none, 0 },
    { 'I', "PriorityJobFactor", "PRIO_JOB_FACTOR", text_one, 0 },
    { 'l', "Time", "TIMELIMIT", text_limit, 0 },
    { 'L', "DefaultTime", "DEFAULTTIME", text_usual_limit, 0 },
    { 'm', "Memory", "MEMORY", text_memory, 0 },
    { 'M', "PreemptMode", "PREEMPT_MODE", text_preemption, 0 },
    { 'n', "NodeHost", "HOSTNAMES", text_name, 0 },
    { 'N', "NodeList", "NODELIST", text_nodes, 0 },
    { 'o', "NodeAddr", "NODE_ADDR", text_name, 0 },
    { 'O', "CPUsLoad", "CPU_LOAD", slurm_text_unavailable, 0 },
    { 'p', "PriorityTier", "PRIO_TIER", text_priority, 0 },
    { 'P', "Partition", "PARTITION", text_partition, 0 },
    { 'r', "Root", "ROOT", text_word_no, 0 },
    { 'R', "PartitionName", "PARTITION", text_partition_name, 0 },
    { 's', "Size", "JOB_SIZE", text_size, 0 },
    { 'S', "AllocNodes", "ALLOCNODES", text_all, 0 },
    { 't', "StateCompact", "STATE", text_compact_state, 0 },
    { 'T', "StateLong", "STATE", text_state, 0 },
    { 'u', "User", "USER", text_root, 0 },
    { 'U', "UserLong", "USER", text_root, 0 },
    { 'v', "Version", "VERSION", text_version, 0 },
    { 'w', "Weight", "WEIGHT", text_one, 0 },
    { 'X', "Sockets", "SOCKETS", text_one, 0 },
    { 'Y', "Cores", "CORES", text_cpus, 0 },
    { 'z', "SocketCoreThread", "S:C:T", text_sockets, 0 },
    { 'Z', "Threads", "THREADS", text_one, 0 },
    { 0, "AllocMem", "ALLOCMEM", text_memory_used, 0 },
    { 'V', "Cluster", "CLUSTER", slurm_text_cluster, 0 },
    { 0, "Comment", "COMMENT", slurm_text_null, 0 },
    { 0, "Extra", "EXTRA", slurm_text_null, 0 },
    { 0, "GresUsed", "GRES_USED", text_gres_used, 0 },
    { 0, "Port", "PORT", text_port, 0 },
    { 0, "StateComplete", "STATE", text_state, 0 },
    { 0 },
};

const char sinfo_format_all[] =
    "%a|%b|%c|%d|%e|%f|%g|%h|%l|%m|%n|%o|%p|%r|%s|%t|%u|%v|%w|%z|"
    "%A |%B |%C |%D |%E |%F |%G |%H |%I |%L |%M |%N |%O |%P |%R |%S |%T |%U |%V |%X |%Y |%Z ";

/* Values that the nodes of a line have in common if the line shows them, and values of its partitions. */
static slurm_text_fn *const of_nodes[] = { text_state, text_compact_state, text_cpus, text_memory, text_gres,
    text_reason, text_features, text_name, text_gres_used, text_memory_used, text_sockets };
static slurm_text_fn *const of_partitions[] = { text_partition, text_partition_name, text_limit,
    text_usual_limit, text_priority, text_users };

static bool is_among(slurm_text_fn *const *list, size_t count, slurm_text_fn *text)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == text)
            return true;
    return false;
}

bool sinfo_is_alike(
    const struct slurm_table *table, const json_t *group, const json_t *partition, const json_t *node)
{
    _cleanup_json_ json_t *alone = json_pack("{s:O,s:[O]}", "partition", partition, "nodes", node);
    for (size_t i = 0; i < table->count; i++) {
        slurm_text_fn *text = table->cells[i].column != NULL ? table->cells[i].column->text : NULL;
        if (!is_among(of_nodes, sizeof(of_nodes) / sizeof(of_nodes[0]), text) &&
            !is_among(of_partitions, sizeof(of_partitions) / sizeof(of_partitions[0]), text))
            continue;
        _cleanup_free_ char *first = text(group, 0), *second = text(alone, 0);
        if (strcmp(first, second) != 0)
            return false;
    }
    return true;
}
