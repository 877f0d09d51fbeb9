/* SPDX-License-Identifier: MIT */
/* sinfo: the partitions and their nodes. Nodes in the same state share a line, unless -N requests one each.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/jobs.h"
#include "cli/slurm/json_form.h"
#include "cli/slurm/nodes.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/table.h"
#include "cli/term/field.h"

#define FORMAT_USUAL      "%9P %.5a %.10l %.6D %.6t %N"
#define FORMAT_SUMMARY    "%9P %.5a %.10l %.16F %N"
#define FORMAT_NODES      "%N %.6D %.9P %6t"
#define FORMAT_NODES_LONG "%N %.6D %.9P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E"
#define NODE_WIDTH_MIN    9 // of the names with -N; longer ones widen the column
#define FORMAT_LONG       "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
#define FORMAT_REASONS    "%20E %9u %19H %N"

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
    (void)now_ms;
    return xasprintf("%s%s", field_text(partition_of(group), "name"), is_default ? "*" : "");
}

TEXT(partition_name)
{
    (void)now_ms;
    return xstrdup(field_text(partition_of(group), "name"));
}

TEXT(available)
{
    (void)group, (void)now_ms;
    return xstrdup("up");
}

TEXT(limit)
{
    (void)now_ms;
    return slurm_partition_time(partition_of(group), "max_time", "infinite");
}

TEXT(usual_limit)
{
    (void)now_ms;
    return slurm_partition_time(partition_of(group), "default_time", "n/a");
}

TEXT(priority)
{
    (void)now_ms;
    return xasprintf("%" PRId64, field_integer(partition_of(group), "priority", 0));
}

TEXT(users)
{
    const char *users = field_text(partition_of(group), "users");
    (void)now_ms;
    return users != NULL ? text_escape(users, 256) : xstrdup("all");
}

TEXT(count)
{
    (void)now_ms;
    return xasprintf("%" PRId64, count_of(group));
}

TEXT(state)
{
    (void)now_ms;
    return xstrdup(slurm_node_state(first_of(group)));
}

TEXT(compact_state)
{
    (void)now_ms;
    return xstrdup(slurm_node_state_compact(first_of(group)));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

TEXT(nodes)
{
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0;
    json_t *node = NULL;
    (void)now_ms;
    json_array_foreach(json_object_get(group, "nodes"), index, node)
        strings_add(&names, field_text(node, "name"));
    qsort(names.items, names.count, sizeof(*names.items), by_name);
    return hostlist_compress(&names);
}

TEXT(cpus)
{
    (void)now_ms;
    return xasprintf("%" PRId64, field_integer(first_of(group), "cpus", 1));
}

TEXT(memory)
{
    (void)now_ms;
    return xasprintf("%" PRId64, field_integer(first_of(group), "memory_bytes", 0) >> 20);
}

TEXT(gres)
{
    char *gres = slurm_node_gres(first_of(group));
    (void)now_ms;
    return gres != NULL ? gres : xstrdup("(null)");
}

TEXT(features)
{
    const char *features = field_text(first_of(group), SLURM_NODE_FEATURES);
    (void)now_ms;
    return xstrdup(features != NULL ? features : "(null)");
}

TEXT(reason)
{
    const char *reason = field_text(first_of(group), "reason");
    (void)now_ms;
    return reason != NULL ? text_escape(reason, 256) : xstrdup("none");
}

/* Allocated, idle, other, all. */
TEXT(summary)
{
    size_t index = 0;
    json_t *node = NULL;
    int64_t counts[3] = { 0 };
    (void)now_ms;
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

/* The same for CPUs, of which mgpu counts only requested ones. */
TEXT(cpu_summary)
{
    int64_t cpus = field_integer(first_of(group), "cpus", 1) * count_of(group);
    const char *state = slurm_node_state(first_of(group));
    (void)now_ms;
    bool is_idle = strcmp(state, "idle") == 0,
         is_used = strcmp(state, "mixed") == 0 || strcmp(state, "allocated") == 0;
    return xasprintf("%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64, is_used ? cpus : 0, is_idle ? cpus : 0,
        is_idle || is_used ? 0 : cpus, cpus);
}

TEXT(word_no)
{
    (void)group, (void)now_ms;
    return xstrdup("no");
}

TEXT(size)
{
    (void)group, (void)now_ms;
    return xstrdup("1-infinite");
}

TEXT(root)
{
    (void)group, (void)now_ms;
    return xstrdup("root");
}

TEXT(unknown)
{
    (void)group, (void)now_ms;
    return xstrdup("Unknown");
}

TEXT(short_summary)
{
    char *text = text_summary(group, now_ms), *slash = strchr(text, '/');
    if (slash != NULL && (slash = strchr(slash + 1, '/')) != NULL)
        *slash = '\0';
    return text;
}

TEXT(gres_used)
{
    int64_t gpus = field_integer(first_of(group), "gpus", 0);
    (void)now_ms;
    return gpus > 0 ? xasprintf("gpu:%" PRId64, field_integer(first_of(group), "gpus_used", 0))
                    : xstrdup("(null)");
}

TEXT(sockets)
{
    (void)now_ms;
    return xasprintf("1:%" PRId64 ":1", field_integer(first_of(group), "cpus", 1));
}

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

static const struct slurm_column columns[] = {
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
    { 'h', "OverSubscribe", "OVERSUBSCRIBE", text_word_no, 0 },
    { 'H', "Timestamp", "TIMESTAMP", text_unknown, 0 },
    { 'i', "Reservation", "RESERVATION", slurm_text_none, 0 },
    { 'I', "PriorityJobFactor", "PRIO_JOB_FACTOR", text_one, 0 },
    { 'l', "Time", "TIMELIMIT", text_limit, 0 },
    { 'L', "DefaultTime", "DEFAULTTIME", text_usual_limit, 0 },
    { 'm', "Memory", "MEMORY", text_memory, 0 },
    { 'M', "PreemptMode", "PREEMPT_MODE", text_preemption, 0 },
    { 'n', "NodeHost", "HOSTNAMES", text_nodes, 0 },
    { 'N', "NodeList", "NODELIST", text_nodes, 0 },
    { 'o', "NodeAddr", "NODE_ADDR", text_nodes, 0 },
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
    { 0, "AllocMem", "ALLOCMEM", slurm_text_zero, 0 },
    { 0, "Cluster", "CLUSTER", slurm_text_cluster, 0 },
    { 0, "Comment", "COMMENT", slurm_text_null, 0 },
    { 0, "Extra", "EXTRA", slurm_text_null, 0 },
    { 0, "GresUsed", "GRES_USED", text_gres_used, 0 },
    { 0, "Port", "PORT", text_port, 0 },
    { 0, "StateComplete", "STATE", text_state, 0 },
    { 0 },
};

struct sinfo {
    const char *format, *long_format, *nodes, *partitions, *states, *sort;
    bool is_headless, is_each_node, is_reasons, is_summary, is_long, is_json, is_dead, is_responding,
        is_reservations;
    int64_t repeat_s;
};

static int set_text(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sinfo *sinfo = target;
    (void)err;
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "format", &sinfo->format }, { "Format", &sinfo->long_format }, { "nodes", &sinfo->nodes },
        { "partition", &sinfo->partitions }, { "states", &sinfo->states }, { "sort", &sinfo->sort } };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(texts[i].name, option->name) == 0)
            *texts[i].text = value;
    return 0;
}

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sinfo *sinfo = target;
    (void)value, (void)err;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "noheader", &sinfo->is_headless }, { "Node", &sinfo->is_each_node },
        { "list-reasons", &sinfo->is_reasons }, { "summarize", &sinfo->is_summary },
        { "long", &sinfo->is_long }, { "json", &sinfo->is_json }, { "dead", &sinfo->is_dead },
        { "responding", &sinfo->is_responding }, { "reservation", &sinfo->is_reservations } };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(flags[i].name, option->name) == 0)
            *flags[i].flag = true;
    return 0;
}

static int set_repeat(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    (void)option;
    return parse_integer(value, "--iterate", 1, INT32_MAX, &((struct sinfo *)target)->repeat_s, err);
}

const struct slurm_option slurm_sinfo_options[] = {
    SLURM_NO_EFFECT(SLURM_SINFO, "all", 'a', NULL, NULL, "all partitions"),
    SLURM_ROW(SLURM_SINFO, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_ROW(SLURM_SINFO, "cluster", 0, "list", slurm_set_clusters, NULL, "the same"),
    SLURM_ROW(SLURM_SINFO, "dead", 'd', NULL, set_flag, NULL, "nodes that do not answer"),
    SLURM_NO_EFFECT(SLURM_SINFO, "exact", 'e', NULL, NULL, "nodes that are alike alone share a line"),
    SLURM_NO_EFFECT(SLURM_SINFO, "federation", 0, NULL, "FEDERATION", "of the federation"),
    SLURM_ROW(
        SLURM_SINFO, "format", 'o', "format", set_text, "FORMAT", "what is printed, as letters: '%P %t'"),
    SLURM_ROW(
        SLURM_SINFO, "Format", 'O', "names", set_text, NULL, "what is printed, as names: Partition,Nodes"),
    SLURM_NO_EFFECT(SLURM_SINFO, "future", 'F', NULL, NULL, "nodes of the future"),
    SLURM_NO_EFFECT(SLURM_SINFO, "hide", 0, NULL, NULL, "no hidden partitions"),
    SLURM_ROW(SLURM_SINFO, "iterate", 'i', "seconds", set_repeat, NULL, "print again after this time"),
    SLURM_ROW(SLURM_SINFO, "json", 0, NULL, set_flag, NULL, "print JSON, as openapi v0.0.38 of Slurm"),
    SLURM_ROW(SLURM_SINFO, "list-reasons", 'R', NULL, set_flag, NULL, "why nodes are out of service"),
    SLURM_NO_EFFECT(SLURM_SINFO, "local", 0, NULL, "LOCAL", "of this cluster"),
    SLURM_ROW(SLURM_SINFO, "long", 'l', NULL, set_flag, NULL, "more columns"),
    SLURM_ROW(SLURM_SINFO, "Node", 'N', NULL, set_flag, NULL, "one line for each node"),
    SLURM_ROW(SLURM_SINFO, "nodes", 'n', "list", set_text, NULL, "these nodes"),
    SLURM_NO_EFFECT(SLURM_SINFO, "noconvert", 0, NULL, NULL, "sizes as they are kept"),
    SLURM_ROW(SLURM_SINFO, "noheader", 'h', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SINFO, "partition", 'p', "list", set_text, "PARTITION", "these partitions"),
    SLURM_ROW(SLURM_SINFO, "responding", 'r', NULL, set_flag, NULL, "nodes that answer"),
    SLURM_ROW(
        SLURM_SINFO, "sort", 'S', "letters", set_text, "SORT", "order: by letters of -o, '-' for descending"),
    SLURM_ROW(SLURM_SINFO, "states", 't', "list", set_text, NULL, "nodes in these states"),
    SLURM_ROW(SLURM_SINFO, "summarize", 's', NULL, set_flag, NULL, "one line for each partition"),
    SLURM_ROW(SLURM_SINFO, "reservation", 'T', NULL, set_flag, NULL, "reservations, of which there are none"),
    SLURM_NO_EFFECT(SLURM_SINFO, "verbose", 'v', NULL, NULL, "increase verbosity"),
    SLURM_REFUSE(SLURM_SINFO, "yaml", 0, NULL, SLURM_NO_YAML),
    { 0 },
};

/* Those of Slurm, whether nodes of mgpu can be in them or not. */
static int check_states(const struct sinfo *sinfo, struct error *err)
{
    static const char known[] =
        "all alloc allocated comp completing down drain drained draining drng fail failing "
        "future idle maint mix mixed no_respond npc perfctrs planned power_down "
        "powering_down powering_up reboot resv reserved unk unknown";
    _cleanup_free_ char *copy = sinfo->states != NULL ? xstrdup(sinfo->states) : NULL;
    char *rest = copy;
    for (char *word = NULL; rest != NULL && (word = strsep(&rest, ",&")) != NULL;) {
        for (char *p = word; *p != '\0'; p++)
            *p = (char)tolower((unsigned char)*p);
        if (!slurm_list_has(known, word))
            return error_set(err, -EINVAL, "Bad state string: \"%.60s\"", word);
    }
    return 0;
}

static bool is_wanted(const struct sinfo *sinfo, const json_t *node)
{
    bool is_state = sinfo->states == NULL || slurm_list_has(sinfo->states, slurm_node_state(node)) ||
                    slurm_list_has(sinfo->states, slurm_node_state_compact(node));
    bool is_reason = !sinfo->is_reasons || field_text(node, "reason") != NULL;
    _cleanup_strings_ struct strings names = { 0 };
    bool is_node = sinfo->nodes == NULL, is_up = !field_is(node, "state", "down");
    if ((sinfo->is_dead && is_up) || (sinfo->is_responding && !is_up))
        return false;
    if (sinfo->nodes != NULL)
        (void)hostlist_expand(sinfo->nodes, &names, NULL);
    for (size_t i = 0; i < names.count; i++)
        is_node |= strcmp(names.items[i], field_text(node, "name")) == 0;
    return is_state && is_reason && is_node;
}

/* Nodes that share a line: all, unless the line shows something in which they differ. */
static bool is_alike(const struct slurm_table *table, const json_t *group, const json_t *node)
{
    static slurm_text_fn *const of_nodes[] = { text_state, text_compact_state, text_cpus, text_memory,
        text_gres, text_reason, text_features };
    _cleanup_json_ json_t *alone = json_pack("{s:[O]}", "nodes", node);
    for (size_t i = 0; i < table->count; i++)
        for (size_t k = 0; k < sizeof(of_nodes) / sizeof(of_nodes[0]); k++) {
            if (table->cells[i].column == NULL || table->cells[i].column->text != of_nodes[k])
                continue;
            _cleanup_free_ char *first = of_nodes[k](group, 0), *second = of_nodes[k](alone, 0);
            if (strcmp(first, second) != 0)
                return false;
        }
    return true;
}

static json_t *add_group(json_t *groups, json_t *partition)
{
    json_t *group = json_object();
    (void)json_object_set(group, "partition", partition);
    (void)json_object_set_new(group, "nodes", json_array());
    (void)json_array_append_new(groups, group);
    return group;
}

static void group_partition(const struct sinfo *sinfo, const struct slurm_table *table, json_t *partition,
    const json_t *nodes, json_t *groups)
{
    size_t first = json_array_size(groups), index = 0;
    json_t *node = NULL;
    json_array_foreach(nodes, index, node)
    {
        json_t *into = NULL;
        if (!slurm_partition_has(partition, field_text(node, "name")) || !is_wanted(sinfo, node))
            continue;
        for (size_t k = first; k < json_array_size(groups) && into == NULL; k++)
            if (!sinfo->is_each_node && is_alike(table, json_array_get(groups, k), node))
                into = json_array_get(groups, k);
        if (into == NULL)
            into = add_group(groups, partition);
        (void)json_array_append(json_object_get(into, "nodes"), node);
    }
}

static json_t *group_nodes(
    const struct sinfo *sinfo, const struct slurm_table *table, const json_t *partitions, const json_t *nodes)
{
    json_t *groups = json_array(), *partition = NULL;
    size_t index = 0;
    json_array_foreach(
        partitions, index, partition) if (sinfo->partitions == NULL ||
                                          slurm_list_has(sinfo->partitions, field_text(partition, "name")))
        group_partition(sinfo, table, partition, nodes, groups);
    return groups;
}

static int read_format(const struct sinfo *sinfo, struct slurm_table *table, struct error *err)
{
    const char *format = sinfo->format != NULL ? sinfo->format
                         : sinfo->is_reasons   ? FORMAT_REASONS
                         : sinfo->is_each_node ? (sinfo->is_long ? FORMAT_NODES_LONG : FORMAT_NODES)
                         : sinfo->is_summary   ? FORMAT_SUMMARY
                         : sinfo->is_long      ? FORMAT_LONG
                                               : FORMAT_USUAL;
    return sinfo->long_format != NULL ? slurm_table_read_names(table, sinfo->long_format, err)
                                      : slurm_table_read_letters(table, format, err);
}

/* With -N and no format of the user's, the names of nodes have a column as wide as the longest. */
static void fit_names(const struct sinfo *sinfo, const json_t *nodes, struct slurm_table *table)
{
    size_t index = 0;
    json_t *node = NULL;
    if (!sinfo->is_each_node || sinfo->format != NULL || sinfo->long_format != NULL || sinfo->is_reasons)
        return;
    table->cells[0].width = NODE_WIDTH_MIN;
    json_array_foreach(nodes, index, node)
    {
        int width = (int)strlen(field_text(node, "name"));
        table->cells[0].width = width > table->cells[0].width ? width : table->cells[0].width;
    }
}

static void print_json(const struct sinfo *sinfo, const json_t *partitions, const json_t *nodes)
{
    json_t *list = json_array(), *node = NULL;
    size_t index = 0;
    json_array_foreach(nodes, index, node)
    {
        _cleanup_free_ char *in = slurm_partitions_of(partitions, field_text(node, "name"));
        bool is_in = sinfo->partitions == NULL || slurm_lists_meet(sinfo->partitions, in);
        if (is_in && is_wanted(sinfo, node))
            (void)json_array_append_new(list, slurm_json_node(node, partitions));
    }
    slurm_json_print("nodes", list, false);
}

static int print(const struct sinfo *sinfo, struct error *err)
{
    struct client client;
    struct slurm_table table = { .columns = columns, .is_headless = sinfo->is_headless, .sort = sinfo->sort };
    _cleanup_json_ json_t *nodes = NULL, *partitions = NULL, *groups = NULL;
    client_init(&client, NULL, NULL);
    int r = slurm_nodes_get(&client, &nodes, err);
    if (r == 0)
        r = slurm_partitions_get(&client, &partitions, err);
    client_clear(&client);
    if (r == 0)
        r = read_format(sinfo, &table, err);
    if (r == 0 && sinfo->is_json) {
        print_json(sinfo, partitions, nodes);
    } else if (r == 0) {
        groups = group_nodes(sinfo, &table, partitions, nodes);
        fit_names(sinfo, nodes, &table);
        if (!sinfo->is_headless && (sinfo->is_long || sinfo->repeat_s > 0))
            slurm_print_date();
        slurm_table_print(&table, groups);
    }
    slurm_table_clear(&table);
    return r;
}

int slurm_run_sinfo(const struct slurm_program *program, int argc, char **argv)
{
    struct sinfo sinfo = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &sinfo };
    struct error err = { 0 };
    int first = 0;
    if (slurm_options_answer(program, argc, argv))
        return 0;
    int r = slurm_options_from_environment(&reading, "SINFO", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r < 0)
        return slurm_fail(program, &err);
    if (check_states(&sinfo, &err) < 0)
        return slurm_fail(program, &err);
    if (sinfo.is_reservations)
        return puts("No reservations in the system") < 0;
    do {
        r = print(&sinfo, &err);
        (void)fflush(stdout);
        if (r == 0 && sinfo.repeat_s > 0)
            (void)sleep((unsigned)sinfo.repeat_s);
    } while (r == 0 && sinfo.repeat_s > 0);
    return r < 0 ? slurm_fail_load("slurm_load_partitions", &err) : 0;
}
