/* SPDX-License-Identifier: MIT */
/* scontrol show node and partition. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/term/time_text.h"
#include "compat/slurm/control/scontrol_show.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/partitions.h"
#include "compat/slurm/slurm.h"

#define TEXT(name) static char *text_##name(const json_t *job, int64_t now_ms)

/* --- nodes and partitions --- */

#define NODE_PARTITIONS "slurm_partitions" // added to a node object of the API

FIELD(node_name, xstrdup(field_text(job, "name")))

/* The state in scontrol's form. */
TEXT(node_state)
{
    const char *state = slurm_node_state(job);
    if (strcmp(state, "drained") == 0)
        return xstrdup("IDLE+DRAIN");
    if (strcmp(state, "draining") == 0)
        return xstrdup("MIXED+DRAIN");
    _cleanup_free_ char *upper = xstrdup(state);
    for (char *p = upper; *p != '\0'; p++)
        *p = (char)(*p - 'a' + 'A');
    return take_ptr(upper);
}

FIELD(node_cpus, xasprintf("%" PRId64, field_integer(job, "cpus", 1)))
FIELD(node_memory, xasprintf("%" PRId64, field_integer(job, "memory_bytes", 0) >> 20))

TEXT(node_features)
{
    const char *features = field_text(job, SLURM_NODE_FEATURES);
    return xstrdup(features != NULL ? features : "(null)");
}

TEXT(node_gres)
{
    char *gres = slurm_node_gres(job);
    return gres != NULL ? gres : xstrdup("(null)");
}

TEXT(node_gres_used)
{
    char *used = slurm_node_gres_used(job, true);
    return used != NULL ? used : xstrdup("(null)");
}

FIELD(node_cpus_used, xasprintf("%" PRId64, field_integer(job, SLURM_NODE_CPUS, 0)))
FIELD(node_memory_used, xasprintf("%" PRId64, field_integer(job, SLURM_NODE_MEMORY, 0) >> 20))
FIELD(node_tres, slurm_node_tres(job, false))
FIELD(node_tres_used, slurm_node_tres(job, true))

/* When its agent, or mgpud's own worker, started. */
TEXT(node_since)
{
    const char *since = field_text(job, "since");
    return slurm_time_shown(since != NULL ? time_parse(since) : 0, "None");
}

FIELD(node_partitions, xstrdup(field_text(job, NODE_PARTITIONS)))

TEXT(node_reason)
{
    const char *reason = field_text(job, "reason");
    return reason != NULL ? text_escape(reason, 256) : NULL;
}

static const struct scontrol_pair node_pairs[] = {
    { false, "NodeName", text_node_name, NULL },
    { false, "Arch", NULL, "x86_64" },
    { false, "CoresPerSocket", text_node_cpus, NULL },
    { true, "CPUAlloc", text_node_cpus_used, NULL },
    { false, "CPUEfctv", text_node_cpus, NULL },
    { false, "CPUTot", text_node_cpus, NULL },
    { false, "CPULoad", NULL, "N/A" },
    { true, "AvailableFeatures", text_node_features, NULL },
    { true, "ActiveFeatures", text_node_features, NULL },
    { true, "Gres", text_node_gres, NULL },
    { true, "GresDrain", NULL, "N/A", true },
    { true, "GresUsed", text_node_gres_used, NULL, true },
    { true, "NodeAddr", text_node_name, NULL },
    { false, "NodeHostName", text_node_name, NULL },
    { false, "Port", NULL, "0" },
    { false, "Version", NULL, SLURM_VERSION },
    { true, "OS", NULL, "Linux" },
    { true, "RealMemory", text_node_memory, NULL },
    { false, "AllocMem", text_node_memory_used, NULL },
    { false, "FreeMem", NULL, "N/A" },
    { false, "Sockets", NULL, "1" },
    { false, "Boards", NULL, "1" },
    { true, "State", text_node_state, NULL },
    { false, "ThreadsPerCore", NULL, "1" },
    { false, "TmpDisk", NULL, "0" },
    { false, "Weight", NULL, "1" },
    { false, "Owner", NULL, "N/A" },
    { false, "MCS_label", NULL, "N/A" },
    { true, "Partitions", text_node_partitions, NULL },
    { true, "BootTime", NULL, "None" },
    { false, "SlurmdStartTime", text_node_since, NULL },
    { true, "LastBusyTime", NULL, "Unknown" },
    { true, "CfgTRES", text_node_tres, NULL },
    { true, "AllocTRES", text_node_tres_used, NULL },
    { true, "CapWatts", NULL, "n/a" },
    { true, "CurrentWatts", NULL, "0" },
    { false, "AveWatts", NULL, "0" },
    { true, "ExtSensorsJoules", NULL, "n/s" },
    { false, "ExtSensorsWatts", NULL, "0" },
    { false, "ExtSensorsTemp", NULL, "n/s" },
    { true, "Reason", text_node_reason, NULL },
    { 0 },
};

int scontrol_show_nodes(
    struct client *client, const char *name, const struct scontrol_form *form, struct error *err)
{
    _cleanup_json_ json_t *nodes = NULL, *partitions = NULL;
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0, found = 0;
    json_t *node = NULL;
    int r = name != NULL ? hostlist_expand(name, &names, err) : 0;
    if (r == 0)
        r = slurm_nodes_get(client, &nodes, err);
    if (r == 0)
        r = slurm_partitions_get(client, &partitions, err);
    if (r < 0)
        return r;
    scontrol_count_print(json_array_size(nodes), form);
    json_array_foreach(nodes, index, node)
    {
        bool is_wanted = name == NULL;
        _cleanup_free_ char *in = slurm_partitions_of(partitions, field_text(node, "name"));
        (void)json_object_set_new(node, NODE_PARTITIONS, json_string(in));
        for (size_t i = 0; i < names.count; i++)
            is_wanted |= strcmp(names.items[i], field_text(node, "name")) == 0;
        if (is_wanted)
            scontrol_pairs_print(node_pairs, node, form);
        found += is_wanted;
    }
    if (found == 0 && name != NULL)
        (void)(form->is_quiet ? 0 : printf("Node %s not found\n", name));
    return found == 0 && name != NULL ? 1 : 0;
}

static void print_partition(const json_t *partition, const json_t *nodes, const struct scontrol_form *form)
{
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0;
    json_t *node = NULL;
    int64_t cpus = 0, gpus = 0, memory_mib = 0;
    json_array_foreach(nodes, index, node)
    {
        if (!slurm_partition_has(partition, field_text(node, "name")))
            continue;
        strings_add(&names, field_text(node, "name"));
        cpus += field_integer(node, "cpus", 0);
        gpus += field_integer(node, "gpus", 0);
        memory_mib += field_integer(node, "memory_bytes", 0) >> 20;
    }
    bool is_default = json_is_true(json_object_get(partition, "default"));
    _cleanup_free_ char *list = hostlist_compress(&names);
    _cleanup_free_ char *gpus_text = gpus > 0 ? xasprintf("%" PRId64, gpus) : xstrdup("");
    _cleanup_free_ char *tres = xasprintf("cpu=%" PRId64 ",mem=%" PRId64 "M,node=%zu,billing=%" PRId64 "%s%s",
        cpus, memory_mib, names.count, cpus, gpus > 0 ? ",gres/gpu=" : "", gpus_text);
    _cleanup_free_ char *total = xasprintf("%" PRId64, cpus), *count = xasprintf("%zu", names.count);
    _cleanup_free_ char *usual = slurm_partition_time(partition, "default_time", "NONE");
    int64_t most_s = field_integer(partition, "max_time", 0);
    _cleanup_free_ char *most = most_s > 0 ? slurm_duration_text(most_s, true) : xstrdup("UNLIMITED");
    _cleanup_free_ char *tier =
        xasprintf("%" PRId64, field_integer(partition, "priority", 0) + 1); // 1 is the default
    _cleanup_free_ char *users =
        field_text(partition, "users") != NULL ? text_escape(field_text(partition, "users"), 4096) : NULL;
    const struct scontrol_pair pairs[] = { { false, "PartitionName", NULL, field_text(partition, "name") },
        { true, "AllowGroups", NULL, users != NULL ? users : "ALL" }, { false, "AllowAccounts", NULL, "ALL" },
        { false, "AllowQos", NULL, "ALL" }, { true, "AllocNodes", NULL, "ALL" },
        { false, "Default", NULL, is_default ? "YES" : "NO" }, { false, "QoS", NULL, "N/A" },
        { true, "DefaultTime", NULL, usual }, { false, "DisableRootJobs", NULL, "NO" },
        { false, "ExclusiveUser", NULL, "NO" }, { false, "GraceTime", NULL, "0" },
        { false, "Hidden", NULL, "NO" }, { true, "MaxNodes", NULL, "UNLIMITED" },
        { false, "MaxTime", NULL, most }, { false, "MinNodes", NULL, "0" }, { false, "LLN", NULL, "NO" },
        { false, "MaxCPUsPerNode", NULL, "UNLIMITED" }, { true, "Nodes", NULL, list },
        { true, "PriorityJobFactor", NULL, "1" }, { false, "PriorityTier", NULL, tier },
        { false, "RootOnly", NULL, "NO" }, { false, "ReqResv", NULL, "NO" },
        { false, "OverSubscribe", NULL, "NO" }, { true, "OverTimeLimit", NULL, "NONE" },
        { false, "PreemptMode", NULL, "OFF" }, { true, "State", NULL, "UP" },
        { false, "TotalCPUs", NULL, total }, { false, "TotalNodes", NULL, count },
        { false, "SelectTypeParameters", NULL, "NONE" }, { true, "JobDefaults", NULL, "(null)" },
        { true, "DefMemPerNode", NULL, "UNLIMITED" }, { false, "MaxMemPerNode", NULL, "UNLIMITED" },
        { true, "TRES", NULL, tres }, { 0 } };
    scontrol_pairs_print(pairs, NULL, form);
}

int scontrol_show_partitions(
    struct client *client, const char *name, const struct scontrol_form *form, struct error *err)
{
    _cleanup_json_ json_t *nodes = NULL, *partitions = NULL;
    size_t index = 0, found = 0;
    json_t *partition = NULL;
    int r = slurm_nodes_get(client, &nodes, err);
    if (r == 0)
        r = slurm_partitions_get(client, &partitions, err);
    if (r < 0)
        return r;
    scontrol_count_print(json_array_size(partitions), form);
    json_array_foreach(partitions, index, partition)
    {
        if (name != NULL && !field_is(partition, "name", name))
            continue;
        print_partition(partition, nodes, form);
        found++;
    }
    if (found > 0 || name == NULL)
        return 0;
    if (!form->is_quiet)
        (void)printf("Partition %s not found\n", name);
    return 1;
}
