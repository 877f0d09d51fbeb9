/* SPDX-License-Identifier: MIT */
/* scontrol show job. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/submit/slurm_values.h"
#include "compat/slurm/control/scontrol_show.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/sacct_columns.h"
#include "compat/slurm/steps.h"
#include "job/slurm.h"

#define MIB_SHIFT      20
#define PATH_SHOWN_MAX 4096U

#define TEXT(name) static char *text_##name(const json_t *job, int64_t now_ms)

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

FIELD(requeue, xstrdup(json_is_true(json_object_get(job, "requeue_on_node_lost")) ? "1" : "0"))

TEXT(batch_flag)
{
    const char *kind = slurm_job_note(job, SLURM_NOTE_KIND);
    return xstrdup(kind == NULL || strcmp(kind, "sbatch") == 0 ? "1" : "0");
}

TEXT(cpus_per_task)
{
    const char *cpus = slurm_job_note(job, SLURM_NOTE_CPUS_PER_TASK);
    return xstrdup(cpus != NULL ? cpus : "1");
}

/* The file that the job will write; the index of an array that waits as a whole is left open. */
static char *expected_path(const json_t *job, const char *pattern)
{
    int64_t id = field_integer(job, "id", 0), index = field_integer(job, "array_index", -1);
    const char *name = field_text(job, "name"), *folder = field_text(job, "cwd");
    _cleanup_buffer_ struct buffer path = { 0 };
    if (pattern[0] != '/' && folder != NULL)
        buffer_printf(&path, "%s/", folder);
    for (const char *p = pattern; *p != '\0'; p++) {
        size_t digits = *p == '%' ? strspn(p + 1, "0123456789") : 0;
        char code = *p == '%' ? p[1 + digits] : '\0';
        int width = digits == 1 ? p[1] - '0' : 0;
        if (code == 'j' || code == 'A')
            buffer_printf(&path, "%0*" PRId64, width, code == 'A' ? field_integer(job, "array_job", id) : id);
        else if (code == 'a' && index >= 0)
            buffer_printf(&path, "%0*" PRId64, width, index);
        else if (code == 'n' && name != NULL)
            buffer_append_text(&path, name);
        else if (code == '%')
            buffer_append(&path, "%", 1);
        else
            buffer_append(&path, p, 1);
        if (code == 'j' || code == 'A' || code == '%' || (code == 'a' && index >= 0) ||
            (code == 'n' && name != NULL))
            p += digits + 1;
    }
    return text_escape(buffer_text(&path), PATH_SHOWN_MAX);
}

TEXT(output)
{
    const char *log = field_text(job, "log"), *output = field_text(job, "output");
    return log != NULL ? xstrdup(log) : output != NULL ? expected_path(job, output) : xstrdup("/dev/null");
}

TEXT(error)
{
    const char *error = field_text(job, "error");
    return error != NULL ? expected_path(job, error) : text_output(job, now_ms);
}

TEXT(input)
{
    const char *input = field_text(job, "input");
    return xstrdup(input != NULL ? input : "/dev/null");
}

TEXT(account)
{
    const char *account = slurm_job_note(job, SLURM_NOTE_ACCOUNT);
    return account != NULL ? text_escape(account, 256) : xstrdup("(null)");
}

TEXT(comment)
{
    const char *comment = slurm_job_note(job, SLURM_NOTE_COMMENT);
    return comment != NULL ? text_escape(comment, 1024) : NULL;
}

FIELD(nodes, slurm_text_nodes(job, now_ms))

/* --tmp and --contiguous, which are stored but have no effect. */
TEXT(temporary)
{
    const char *size = slurm_job_note(job, "tmp");
    uint64_t bytes = 0;
    bool is_size = size != NULL && slurm_parse_memory("tmp", size, &bytes, NULL) == 0;
    return slurm_memory_text(is_size ? (int64_t)bytes : 0);
}

FIELD(contiguous, xstrdup(slurm_job_note(job, "contiguous") != NULL ? "1" : "0"))

/* A job that has not started has none. */
FIELD(batch_host, field_text(job, "node") != NULL ? xstrdup(field_text(job, "node")) : NULL)

/* Its GPUs on each node. */
TEXT(job_gres)
{
    int64_t gpus = field_integer(job, "gpus", 0);
    if (!field_is_known(job, "granted") && !field_is_known(job, "node"))
        return NULL;
    return gpus > 0 ? xasprintf("gpu:%" PRId64, gpus) : xstrdup("(null)");
}

/* "CPU_IDs=(null) Mem=1024 GRES=gpu:2(IDX:0-1)": its resources on the node. mgpu does not report which
 * CPUs. */
static char *place_text(const json_t *job, const char *node)
{
    json_t *indexes = json_array(), *gpu = NULL;
    size_t index = 0;
    bool is_first = field_is(job, "node", node);
    json_array_foreach(json_object_get(job, "granted"), index,
        gpu) if (field_text(gpu, "node") == NULL ? is_first : field_is(gpu, "node", node))(void)
        json_array_append(indexes, json_object_get(gpu, "index"));
    _cleanup_free_ char *list = slurm_indexes_text(indexes);
    _cleanup_free_ char *gres = json_array_size(indexes) == 0
                                    ? xstrdup("")
                                    : xasprintf("gpu:%zu(IDX:%s)", json_array_size(indexes), list);
    json_decref(indexes);
    return xasprintf(
        "CPU_IDs=(null) Mem=%" PRId64 " GRES=%s", field_integer(job, "memory", 0) >> MIB_SHIFT, gres);
}

/* One line for the nodes on which it has the same resources. */
TEXT(places)
{
    _cleanup_strings_ struct strings names = { 0 };
    _cleanup_free_ char *list = slurm_text_nodes(job, now_ms);
    struct buffer out = { 0 };
    if (!field_is_known(job, "node") || hostlist_expand(list, &names, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < names.count;) {
        _cleanup_strings_ struct strings same = { 0 };
        _cleanup_free_ char *place = place_text(job, names.items[i]);
        bool is_same = true;
        for (; is_same && i < names.count; i += is_same) {
            _cleanup_free_ char *next = place_text(job, names.items[i]);
            is_same = strcmp(place, next) == 0;
            if (is_same)
                strings_add(&same, names.items[i]);
        }
        _cleanup_free_ char *nodes = hostlist_compress(&same);
        buffer_printf(&out, "%s%s %s", out.length > 0 ? "\n     Nodes=" : "", nodes, place);
    }
    return buffer_take(&out);
}

/* Names of nodes in their short form. */
static char *shorten(const char *nodes)
{
    _cleanup_strings_ struct strings names = { 0 };
    if (nodes == NULL || hostlist_expand(nodes, &names, NULL) < 0 || names.count == 0)
        return xstrdup("(null)");
    return hostlist_compress(&names);
}

FIELD(requested, shorten(field_text(job, "nodelist")))
FIELD(excluded, shorten(field_text(job, "exclude")))

TEXT(features)
{
    char *features = slurm_text_constraints(job, now_ms);
    if (features[0] != '\0')
        return features;
    free(features);
    return xstrdup("(null)");
}

TEXT(throttle)
{
    const char *array = field_text(job, "array"), *percent = array != NULL ? strchr(array, '%') : NULL;
    return percent != NULL ? xstrdup(percent + 1) : NULL;
}

TEXT(tasks_per_node)
{
    const char *tasks = slurm_job_note(job, SLURM_NOTE_TASKS_PER_NODE);
    return xasprintf("%s:0:*:*", tasks != NULL ? tasks : "0");
}

/* For an unknown time, squeue prints N/A, and scontrol this. */
static char *unknown_for_none(char *text)
{
    if (strcmp(text, "N/A") != 0)
        return text;
    free(text);
    return xstrdup("Unknown");
}

FIELD(expected_start, unknown_for_none(slurm_text_expected(job, now_ms)))
FIELD(end, unknown_for_none(slurm_text_ended(job, now_ms)))

/* As in Slurm, the last time at which it was suspended or continued. */
TEXT(suspend_time)
{
    int64_t at_ms, ran_ms;
    slurm_last_pause(job, &at_ms, &ran_ms);
    return slurm_time_shown(at_ms, "None");
}

TEXT(before_pause)
{
    int64_t at_ms, ran_ms;
    slurm_last_pause(job, &at_ms, &ran_ms);
    return xasprintf("%" PRId64, ran_ms / 1000);
}

static const struct scontrol_pair job_pairs[] = {
    { false, "JobId", slurm_text_raw_id, NULL },
    { false, "ArrayJobId", slurm_text_array_job_id, NULL },
    { false, "ArrayTaskId", slurm_text_array_task_id, NULL },
    { false, "ArrayTaskThrottle", text_throttle, NULL },
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
    { true, "DerivedExitCode", slurm_text_derived_exit, NULL, true },
    { true, "RunTime", slurm_text_elapsed, NULL },
    { false, "TimeLimit", slurm_text_account_limit, NULL },
    { false, "TimeMin", slurm_text_least_limit, NULL },
    { true, "SubmitTime", slurm_text_submitted, NULL },
    { false, "EligibleTime", slurm_text_begin, NULL },
    { true, "AccrueTime", slurm_text_begin, NULL },
    { true, "StartTime", text_expected_start, NULL },
    { false, "EndTime", text_end, NULL },
    { false, "Deadline", slurm_text_deadline, NULL },
    { true, "SuspendTime", text_suspend_time, "None" },
    { false, "SecsPreSuspend", text_before_pause, "0" },
    { false, "LastSchedEval", slurm_text_started, NULL },
    { false, "Scheduler", NULL, "Main" },
    { true, "Partition", slurm_text_partition, NULL },
    { false, "AllocNode:Sid", NULL, "(null):0" },
    { true, "ReqNodeList", text_requested, NULL },
    { false, "ExcNodeList", text_excluded, NULL },
    { true, "NodeList", text_nodes, NULL },
    { true, "BatchHost", text_batch_host, NULL },
    { true, "NumNodes", slurm_text_node_count, NULL },
    { false, "NumCPUs", slurm_text_cpus, NULL },
    { false, "NumTasks", slurm_text_tasks, NULL },
    { false, "CPUs/Task", text_cpus_per_task, NULL },
    { false, "ReqB:S:C:T", NULL, "0:0:*:*" },
    { true, "TRES", slurm_text_tres_by_number, NULL },
    { true, "Socks/Node", NULL, "*" },
    { false, "NtasksPerN:B:S:C", text_tasks_per_node, NULL },
    { false, "CoreSpec", NULL, "*" },
    { true, "JOB_GRES", text_job_gres, NULL, true },
    { true, "  Nodes", text_places, NULL, true },
    { true, "MinCPUsNode", text_cpus_per_task, NULL },
    { false, "MinMemoryCPU", slurm_text_least_memory_of_cpu, NULL },
    { false, "MinMemoryNode", slurm_text_least_memory_of_node, NULL },
    { false, "MinTmpDiskNode", text_temporary, NULL },
    { true, "Features", text_features, NULL },
    { false, "DelayBoot", NULL, "00:00:00" },
    { true, "OverSubscribe", slurm_text_oversubscribe, NULL },
    { false, "Contiguous", text_contiguous, NULL },
    { false, "Licenses", slurm_text_licenses, NULL },
    { false, "Network", NULL, "(null)" },
    { true, "Command", slurm_text_command, NULL },
    { true, "WorkDir", slurm_text_directory, NULL },
    { true, "Comment", text_comment, NULL },
    { true, "StdErr", text_error, NULL },
    { true, "StdIn", text_input, NULL },
    { true, "StdOut", text_output, NULL },
    { true, "Power", NULL, "" },
    { true, "CpusPerTres", slurm_text_cpus_per_tres, NULL },
    { true, "MemPerTres", slurm_text_mem_per_tres, NULL },
    { true, "TresBind", slurm_text_tres_bind, NULL },
    { true, "TresFreq", slurm_text_tres_freq, NULL },
    { true, "TresPerJob", slurm_text_tres_per_job, NULL },
    { true, "TresPerNode", slurm_text_tres_per_node, NULL },
    { true, "TresPerSocket", slurm_text_tres_per_socket, NULL },
    { true, "TresPerTask", slurm_text_tres_per_task, NULL },
    { true, "NtasksPerTRES", slurm_text_tasks_per_tres, NULL },
    { true, "", NULL, "" }, // a line of blanks
    { 0 },
};

/* Pairs that only arrays have contain its number. */
static void print_job(const json_t *job, const struct scontrol_form *form)
{
    struct scontrol_pair pairs[sizeof(job_pairs) / sizeof(job_pairs[0])];
    bool is_array = field_is_known(job, "array_job") || field_is_known(job, "array_left");
    size_t count = 0;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (job_pairs[i].key == NULL || is_array || strncmp(job_pairs[i].key, "Array", 5) != 0)
            pairs[count++] = job_pairs[i];
    scontrol_pairs_print(pairs, job, form);
}

/* Where it runs and which files it writes is only in the complete record, which is requested if it
 * `is_named`. */
/* Lists lack its directory, its script and its history. */
static void print_one(struct client *client, const json_t *job, const struct scontrol_form *form)
{
    _cleanup_json_ json_t *whole = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, field_integer(job, "id", 0));
    if (client_get(client, path, &whole, NULL) < 0) {
        print_job(job, form);
        return;
    }
    if (form->has_details)
        slurm_steps_derive(client, whole);
    bool is_element = !field_is_known(job, "array_left") && field_is_known(whole, "array_left");
    _cleanup_json_ json_t *shown =
        is_element ? slurm_job_element(whole, (uint32_t)field_integer(job, "array_index", 0))
                   : json_incref(whole);
    print_job(shown, form);
}

/* "0" means all jobs, and "0_3" the elements with that index of all arrays. */
static bool is_any(const char *name, int64_t *ret_index)
{
    char *end = NULL;
    *ret_index = SLURM_NO_INDEX;
    if (name == NULL || name[0] != '0' || (name[1] != '\0' && name[1] != '_'))
        return false;
    if (name[1] == '_')
        *ret_index = strtoll(name + 2, &end, 10);
    return end == NULL || (end != name + 2 && *end == '\0');
}

static void drop_old(json_t *jobs)
{
    int64_t now_ms = clock_wall_ms();
    for (size_t i = json_array_size(jobs); i-- > 0;)
        if (slurm_job_is_old(json_array_get(jobs, i), now_ms))
            (void)json_array_remove(jobs, i);
}

int scontrol_show_jobs(
    struct client *client, const char *name, const struct scontrol_form *form, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *jobs = NULL;
    size_t index = 0;
    json_t *job = NULL;
    int64_t wanted = SLURM_NO_INDEX;
    const char *any = is_any(name, &wanted) ? name : NULL;
    name = any != NULL ? NULL : name;
    int r = name != NULL ? slurm_ids_parse(name, &ids, err) : 0;
    const struct slurm_query query = { .ids = &ids };
    if (r < 0) {
        (void)fprintf(stderr, "scontrol_print_job error: Invalid job id specified\n");
        return 1;
    }
    r = slurm_jobs_get(client, &query, &jobs, err);
    if (r < 0)
        return r;
    slurm_jobs_narrow(&ids, &jobs);
    if (name == NULL)
        drop_old(jobs);
    if (json_array_size(jobs) == 0 && name != NULL)
        return error_set(err, -ENOENT, "Invalid job id specified");
    scontrol_count_print(json_array_size(jobs), form);
    if (json_array_size(jobs) == 0)
        (void)puts("No jobs in the system");
    size_t shown = 0;
    json_array_foreach(jobs, index, job)
    {
        if (wanted != SLURM_NO_INDEX && field_integer(job, "array_index", SLURM_NO_INDEX) != wanted)
            continue;
        print_one(client, job, form);
        shown++;
    }
    bool is_missing = wanted != SLURM_NO_INDEX && shown == 0;
    if (is_missing && !form->is_quiet)
        (void)printf("Job %s not found\n", any);
    return is_missing;
}
