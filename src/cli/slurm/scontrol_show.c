/* SPDX-License-Identifier: MIT */
/* Each kind of object is a table of lines of KEY=VALUE. With -o an object is printed on one line. */
#include "cli/slurm/scontrol_show.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/jobs.h"
#include "cli/slurm/nodes.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/steps.h"
#include "cli/term/field.h"
#include "job/slurm.h"

struct pair {
    bool is_new_line; // it begins one
    const char *key;
    slurm_text_fn *text; // NULL: `constant`
    const char *constant;
};

static void print_pairs(const struct pair *pairs, const json_t *thing, bool is_one_line)
{
    int64_t now_ms = clock_wall_ms();
    for (const struct pair *pair = pairs; pair->key != NULL; pair++) {
        _cleanup_free_ char *text = pair->text != NULL ? pair->text(thing, now_ms) : xstrdup(pair->constant);
        if (pair != pairs)
            (void)fputs(pair->is_new_line && !is_one_line ? "\n   " : " ", stdout);
        (void)printf("%s=%s", pair->key, text);
    }
    (void)fputs(is_one_line ? "\n" : "\n\n", stdout);
}

#define TEXT(name) static char *text_##name(const json_t *job, int64_t now_ms)

/* --- jobs --- */

TEXT(user)
{
    _cleanup_free_ char *name = slurm_text_user(job, now_ms);
    return xasprintf("%s(%" PRId64 ")", name, field_integer(job, "uid", 0));
}

TEXT(group)
{
    const struct passwd *user = getpwuid((uid_t)field_integer(job, "uid", 0));
    _cleanup_free_ char *name = slurm_text_group(job, now_ms);
    return xasprintf("%s(%u)", name, user != NULL ? user->pw_gid : 0);
}

TEXT(requeue)
{
    (void)now_ms;
    return xstrdup(json_is_true(json_object_get(job, "requeue_on_node_lost")) ? "1" : "0");
}

TEXT(batch_flag)
{
    const char *kind = slurm_job_note(job, SLURM_NOTE_KIND);
    (void)now_ms;
    return xstrdup(kind == NULL || strcmp(kind, "sbatch") == 0 ? "1" : "0");
}

TEXT(cpus_per_task)
{
    const char *cpus = slurm_job_note(job, SLURM_NOTE_CPUS_PER_TASK);
    (void)now_ms;
    return xstrdup(cpus != NULL ? cpus : "1");
}

TEXT(output)
{
    const char *log = field_text(job, "log"), *output = field_text(job, "output");
    (void)now_ms;
    return xstrdup(log != NULL ? log : output != NULL ? output : "/dev/null");
}

TEXT(error)
{
    const char *error = field_text(job, "error");
    return error != NULL ? xstrdup(error) : text_output(job, now_ms);
}

TEXT(input)
{
    const char *input = field_text(job, "input");
    (void)now_ms;
    return xstrdup(input != NULL ? input : "/dev/null");
}

TEXT(account)
{
    const char *account = slurm_job_note(job, SLURM_NOTE_ACCOUNT);
    (void)now_ms;
    return account != NULL ? text_escape(account, 256) : xstrdup("(null)");
}

TEXT(comment)
{
    const char *comment = slurm_job_note(job, SLURM_NOTE_COMMENT);
    (void)now_ms;
    return comment != NULL ? text_escape(comment, 1024) : xstrdup("(null)");
}

TEXT(nodes)
{
    char *nodes = slurm_text_nodes(job, now_ms);
    if (nodes[0] != '\0')
        return nodes;
    free(nodes);
    return xstrdup("(null)");
}

static const struct pair job_pairs[] = {
    { false, "JobId", slurm_text_raw_id, NULL },
    { false, "ArrayJobId", slurm_text_array_job_id, NULL },
    { false, "ArrayTaskId", slurm_text_array_task_id, NULL },
    { false, "JobName", slurm_text_name, NULL },
    { true, "UserId", text_user, NULL },
    { false, "GroupId", text_group, NULL },
    { false, "MCS_label", NULL, "N/A" },
    { true, "Priority", slurm_text_priority, NULL },
    { false, "Nice", slurm_text_nice, NULL },
    { false, "Account", text_account, NULL },
    { false, "QOS", slurm_text_qos, NULL },
    { true, "JobState", slurm_text_state, NULL },
    { false, "Reason", slurm_text_reason, NULL },
    { false, "Dependency", slurm_text_dependency, NULL },
    { true, "Requeue", text_requeue, NULL },
    { false, "Restarts", slurm_text_restarts, NULL },
    { false, "BatchFlag", text_batch_flag, NULL },
    { false, "Reboot", NULL, "0" },
    { false, "ExitCode", slurm_text_exit, NULL },
    { true, "RunTime", slurm_text_elapsed, NULL },
    { false, "TimeLimit", slurm_text_account_limit, NULL },
    { false, "TimeMin", NULL, "N/A" },
    { true, "SubmitTime", slurm_text_submitted, NULL },
    { false, "EligibleTime", slurm_text_submitted, NULL },
    { true, "StartTime", slurm_text_expected, NULL },
    { false, "EndTime", slurm_text_ended, NULL },
    { false, "Deadline", NULL, "N/A" },
    { true, "Partition", slurm_text_partition, NULL },
    { false, "AllocNode:Sid", NULL, "(null):0" },
    { true, "ReqNodeList", NULL, "(null)" },
    { false, "ExcNodeList", NULL, "(null)" },
    { true, "NodeList", text_nodes, NULL },
    { true, "BatchHost", slurm_text_batch_host, NULL },
    { true, "NumNodes", slurm_text_node_count, NULL },
    { false, "NumCPUs", slurm_text_cpus, NULL },
    { false, "NumTasks", slurm_text_tasks, NULL },
    { false, "CPUs/Task", text_cpus_per_task, NULL },
    { true, "TRES", slurm_text_tres, NULL },
    { true, "MinMemoryNode", slurm_text_memory, NULL },
    { false, "TresPerNode", slurm_text_gres, NULL },
    { true, "Command", slurm_text_command, NULL },
    { true, "WorkDir", slurm_text_directory, NULL },
    { true, "Comment", text_comment, NULL },
    { true, "StdErr", text_error, NULL },
    { true, "StdIn", text_input, NULL },
    { true, "StdOut", text_output, NULL },
    { 0 },
};

/* Those of an array alone have its number. */
static void print_job(const json_t *job, bool is_one_line)
{
    struct pair pairs[sizeof(job_pairs) / sizeof(job_pairs[0])];
    bool is_array = field_is_known(job, "array_job") || field_is_known(job, "array_left");
    size_t count = 0;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (job_pairs[i].key == NULL || is_array || strncmp(job_pairs[i].key, "Array", 5) != 0)
            pairs[count++] = job_pairs[i];
    print_pairs(pairs, job, is_one_line);
}

static int show_jobs(struct client *client, const char *name, bool is_one_line, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *jobs = NULL;
    size_t index = 0;
    json_t *job = NULL;
    int r = name != NULL ? slurm_ids_parse(name, &ids, err) : 0;
    const struct slurm_query query = { .ids = &ids };
    if (r < 0)
        return error_set(err, -ENOENT, "Invalid job id specified");
    r = slurm_jobs_get(client, &query, &jobs, err);
    if (r < 0)
        return r;
    if (json_array_size(jobs) == 0 && name != NULL)
        return error_set(err, -ENOENT, "Invalid job id specified");
    if (json_array_size(jobs) == 0)
        (void)puts("No jobs in the system");
    json_array_foreach(jobs, index, job)
    {
        _cleanup_json_ json_t *whole = NULL;
        _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, field_integer(job, "id", 0));
        /* Where it runs and what it writes is in the whole of it alone. */
        if (name != NULL && client_get(client, path, &whole, NULL) == 0)
            print_job(whole, is_one_line);
        else
            print_job(job, is_one_line);
    }
    return 0;
}

/* --- nodes and partitions --- */

#define NODE_PARTITIONS "slurm_partitions" // added to a node of the API

TEXT(node_name)
{
    (void)now_ms;
    return xstrdup(field_text(job, "name"));
}

/* As scontrol writes it. */
TEXT(node_state)
{
    const char *state = slurm_node_state(job);
    (void)now_ms;
    if (strcmp(state, "drained") == 0)
        return xstrdup("IDLE+DRAIN");
    if (strcmp(state, "draining") == 0)
        return xstrdup("MIXED+DRAIN");
    _cleanup_free_ char *upper = xstrdup(state);
    for (char *p = upper; *p != '\0'; p++)
        *p = (char)(*p - 'a' + 'A');
    return take_ptr(upper);
}

TEXT(node_cpus)
{
    (void)now_ms;
    return xasprintf("%" PRId64, field_integer(job, "cpus", 1));
}

TEXT(node_memory)
{
    (void)now_ms;
    return xasprintf("%" PRId64, field_integer(job, "memory_bytes", 0) >> 20);
}

TEXT(node_features)
{
    const char *features = field_text(job, SLURM_NODE_FEATURES);
    (void)now_ms;
    return xstrdup(features != NULL ? features : "(null)");
}

TEXT(node_gres)
{
    char *gres = slurm_node_gres(job);
    (void)now_ms;
    return gres != NULL ? gres : xstrdup("(null)");
}

TEXT(node_gres_used)
{
    (void)now_ms;
    return xasprintf("gpu:%" PRId64, field_integer(job, "gpus_used", 0));
}

TEXT(node_partitions)
{
    (void)now_ms;
    return xstrdup(field_text(job, NODE_PARTITIONS));
}

TEXT(node_reason)
{
    const char *reason = field_text(job, "reason");
    (void)now_ms;
    return reason != NULL ? text_escape(reason, 256) : xstrdup("(null)");
}

static const struct pair node_pairs[] = {
    { false, "NodeName", text_node_name, NULL },
    { false, "Arch", NULL, "x86_64" },
    { false, "CPUAlloc", NULL, "0" },
    { false, "CPUEfctv", text_node_cpus, NULL },
    { false, "CPUTot", text_node_cpus, NULL },
    { true, "AvailableFeatures", text_node_features, NULL },
    { true, "ActiveFeatures", text_node_features, NULL },
    { true, "Gres", text_node_gres, NULL },
    { true, "GresUsed", text_node_gres_used, NULL },
    { true, "NodeAddr", text_node_name, NULL },
    { false, "NodeHostName", text_node_name, NULL },
    { true, "RealMemory", text_node_memory, NULL },
    { true, "State", text_node_state, NULL },
    { true, "Partitions", text_node_partitions, NULL },
    { true, "Reason", text_node_reason, NULL },
    { 0 },
};

static int show_nodes(struct client *client, const char *name, bool is_one_line, struct error *err)
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
    json_array_foreach(nodes, index, node)
    {
        bool is_wanted = name == NULL;
        _cleanup_free_ char *in = slurm_partitions_of(partitions, field_text(node, "name"));
        (void)json_object_set_new(node, NODE_PARTITIONS, json_string(in));
        for (size_t i = 0; i < names.count; i++)
            is_wanted |= strcmp(names.items[i], field_text(node, "name")) == 0;
        if (is_wanted)
            print_pairs(node_pairs, node, is_one_line);
        found += is_wanted;
    }
    if (found == 0 && name != NULL)
        (void)printf("Node %s not found\n", name);
    return found == 0 && name != NULL ? 1 : 0;
}

static void print_partition(const json_t *partition, const json_t *nodes, bool is_one_line)
{
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0;
    json_t *node = NULL;
    int64_t cpus = 0, gpus = 0;
    json_array_foreach(nodes, index, node)
    {
        if (!slurm_partition_has(partition, field_text(node, "name")))
            continue;
        strings_add(&names, field_text(node, "name"));
        cpus += field_integer(node, "cpus", 0);
        gpus += field_integer(node, "gpus", 0);
    }
    bool is_default = json_is_true(json_object_get(partition, "default"));
    _cleanup_free_ char *list = hostlist_compress(&names);
    _cleanup_free_ char *tres =
        xasprintf("cpu=%" PRId64 ",gres/gpu=%" PRId64 ",node=%zu", cpus, gpus, names.count);
    _cleanup_free_ char *total = xasprintf("%" PRId64, cpus), *count = xasprintf("%zu", names.count);
    _cleanup_free_ char *usual = slurm_partition_time(partition, "default_time", "NONE");
    _cleanup_free_ char *most = slurm_partition_time(partition, "max_time", "UNLIMITED");
    _cleanup_free_ char *tier = xasprintf("%" PRId64, field_integer(partition, "priority", 0));
    _cleanup_free_ char *users =
        field_text(partition, "users") != NULL ? text_escape(field_text(partition, "users"), 4096) : NULL;
    const struct pair pairs[] = { { false, "PartitionName", NULL, field_text(partition, "name") },
        { true, "AllowGroups", NULL, users != NULL ? users : "ALL" }, { false, "AllowAccounts", NULL, "ALL" },
        { false, "AllowQos", NULL, "ALL" }, { true, "Default", NULL, is_default ? "YES" : "NO" },
        { false, "QoS", NULL, "N/A" }, { true, "DefaultTime", NULL, usual }, { false, "Hidden", NULL, "NO" },
        { true, "MaxNodes", NULL, "UNLIMITED" }, { false, "MaxTime", NULL, most },
        { true, "Nodes", NULL, list }, { true, "PriorityTier", NULL, tier }, { true, "State", NULL, "UP" },
        { false, "TotalCPUs", NULL, total }, { false, "TotalNodes", NULL, count },
        { true, "TRES", NULL, tres }, { 0 } };
    print_pairs(pairs, NULL, is_one_line);
}

static int show_partitions(struct client *client, const char *name, bool is_one_line, struct error *err)
{
    _cleanup_json_ json_t *nodes = NULL, *partitions = NULL;
    size_t index = 0, found = 0;
    json_t *partition = NULL;
    int r = slurm_nodes_get(client, &nodes, err);
    if (r == 0)
        r = slurm_partitions_get(client, &partitions, err);
    if (r < 0)
        return r;
    json_array_foreach(partitions, index, partition)
    {
        if (name != NULL && !field_is(partition, "name", name))
            continue;
        print_partition(partition, nodes, is_one_line);
        found++;
    }
    return found > 0 || name == NULL ? 0 : error_set(err, -ENOENT, "Partition %.60s not found", name);
}

/* --- steps --- */

static const struct pair step_pairs[] = { { false, "StepId", slurm_text_job_id, NULL },
    { false, "UserId", slurm_text_uid, NULL }, { false, "StartTime", slurm_text_started, NULL },
    { false, "TimeLimit", slurm_text_limit, NULL }, { true, "State", slurm_text_state, NULL },
    { false, "Partition", slurm_text_partition, NULL }, { false, "NodeList", slurm_text_nodes, NULL },
    { true, "Nodes", slurm_text_node_count, NULL }, { false, "CPUs", slurm_text_cpus, NULL },
    { false, "Tasks", slurm_text_step_tasks, NULL }, { false, "Name", slurm_text_name, NULL },
    { false, "Network", slurm_text_null, NULL }, { true, "TRES", slurm_text_tres, NULL },
    { true, "ResvPorts", slurm_text_null, NULL }, { true, "CPUFreqReq", NULL, "Default" },
    { false, "Dist", NULL, "Block" }, { 0 } };

/* The running steps of these jobs, or of all. */
static int show_steps(struct client *client, const char *name, bool is_one_line, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *jobs = NULL;
    size_t index = 0, shown = 0;
    json_t *job = NULL;
    const struct slurm_query query = { .ids = &ids, .is_quick = true, .has_open_alone = true };
    int r = name != NULL ? slurm_ids_parse(name, &ids, err) : 0;
    if (r == 0)
        r = slurm_jobs_get(client, &query, &jobs, err);
    json_array_foreach(jobs, index, job)
    {
        _cleanup_json_ json_t *steps = NULL;
        size_t place = 0;
        json_t *step = NULL;
        if (r == 0)
            r = slurm_steps_get(client, job, true, &steps, err);
        json_array_foreach(steps, place, step)
        {
            bool is_listed = ids.count == 0;
            for (size_t i = 0; i < ids.count; i++)
                is_listed |= slurm_id_fits_step(&ids.items[i], step);
            if (is_listed)
                print_pairs(step_pairs, step, is_one_line);
            shown += is_listed;
        }
    }
    if (r == 0 && shown == 0 && name != NULL)
        return error_set(err, -ENOENT, "Job step %.60s not found", name);
    if (r == 0 && shown == 0)
        (void)puts("No job steps in the system");
    return r;
}

/* --- the rest --- */

static int show_config(void)
{
    char host[256] = "localhost";
    (void)gethostname(host, sizeof(host) - 1);
    _cleanup_free_ char *now = slurm_time_text(clock_wall_ms(), "");
    (void)printf("Configuration data as of %s\n", now);
    const char *const pairs[][2] = {
        { "AccountingStorageType", "accounting_storage/slurmdbd" },
        { "ClusterName", "mgpu" },
        { "GresTypes", "gpu" },
        { "JobFileAppend", "0" },
        { "JobRequeue", "0" },
        { "KillWait", "30 sec" },
        { "MaxArraySize", "100000" },
        { "MaxJobCount", "100000" },
        { "MinJobAge", "300 sec" },
        { "MpiDefault", "none" },
        { "SchedulerType", "sched/backfill" },
        { "SelectType", "select/cons_tres" },
        { "SLURM_CONF", "/dev/null" },
        { "SLURM_VERSION", SLURM_VERSION },
        { "SlurmctldHost[0]", host },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        (void)printf("%-23s = %s\n", pairs[i][0], pairs[i][1]);
    (void)printf("\nSlurmctld(primary) at %s is UP\n", host);
    return 0;
}

static int show_hostnames(const char *list, struct error *err)
{
    const char *text = list != NULL ? list : getenv("SLURM_JOB_NODELIST");
    _cleanup_strings_ struct strings names = { 0 };
    if (text == NULL)
        return error_set(err, -EINVAL, "Invalid hostlist: (null)");
    int r = hostlist_expand(text, &names, err);
    if (r < 0)
        return error_set(err, r, "Invalid hostlist: %.200s", text);
    for (size_t i = 0; i < names.count; i++)
        (void)puts(names.items[i]);
    return 0;
}

static int show_hostlist(const char *list, struct error *err)
{
    _cleanup_strings_ struct strings names = { 0 };
    int r = list == NULL ? -EINVAL : hostlist_expand(list, &names, err);
    if (r < 0)
        return error_set(err, r, "Invalid hostlist: %.200s", list != NULL ? list : "(null)");
    _cleanup_free_ char *text = hostlist_compress(&names);
    (void)puts(text);
    return 0;
}

static bool is_word(const char *word, const char *name, size_t least)
{
    return strlen(word) >= least && strncasecmp(word, name, strlen(word)) == 0;
}

int scontrol_show(
    struct client *client, const char *word, const char *name, bool is_one_line, struct error *err)
{
    const char *equals = strchr(word, '=');
    _cleanup_free_ char *entity = xstrndup(word, equals != NULL ? (size_t)(equals - word) : strlen(word));
    name = equals != NULL ? equals + 1 : name;
    if (is_word(entity, "jobs", 3) || strcasecmp(entity, "jobid") == 0)
        return show_jobs(client, name, is_one_line, err);
    if (is_word(entity, "nodes", 3))
        return show_nodes(client, name, is_one_line, err);
    if (is_word(entity, "partitions", 3))
        return show_partitions(client, name, is_one_line, err);
    if (is_word(entity, "configuration", 3))
        return show_config();
    if (is_word(entity, "hostnames", 5))
        return show_hostnames(name, err);
    if (is_word(entity, "hostlistsorted", 5))
        return show_hostlist(name, err);
    if (is_word(entity, "steps", 3))
        return show_steps(client, name, is_one_line, err);
    if (is_word(entity, "reservations", 3) || is_word(entity, "licenses", 3)) {
        (void)printf("No %s in the system\n", entity);
        return 0;
    }
    return error_set(err, -EINVAL, "invalid entity:%.60s for keyword:show", word);
}
