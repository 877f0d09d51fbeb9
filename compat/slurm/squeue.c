/* SPDX-License-Identifier: MIT */
/*
 * squeue: waiting and running jobs, and those that ended within MinJobAge if requested by state. -o takes
 * letters with widths, -O names; both use the same table of fields.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/submit/slurm_verbose.h"
#include "cli/term/time_text.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/json_form.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/sacct_columns.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/state.h"
#include "compat/slurm/steps.h"
#include "compat/slurm/table.h"
#include "job/array.h"

/* "%all" of -o. */
#define FORMAT_ALL                                                                                           \
    "%a|%b|%c|%d|%e|%f|%g|%h|%i|%j|%k|%l|%m|%n|%o|%p|%q|%r|%s|%t|%u|%v|%w|%x|%y|%z|"                         \
    "%A|%B|%C|%D|%E|%F|%G|%H|%I|%J|%K|%L|%M|%N|%O|%P|%Q|%R|%S|%T|%U|%V|%W|%X|%Y|%Z"

#define FORMAT_USUAL "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define FORMAT_LONG  "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
#define FORMAT_STEPS "%.15= %.8j %.9P %.8u %.9M %N"

static char *text_comment(const json_t *job, int64_t now_ms)
{
    char *text = slurm_text_comment(job, now_ms);
    if (text[0] != '\0')
        return text;
    free(text);
    return xstrdup("(null)");
}

static char *text_sockets(const json_t *job, int64_t now_ms)
{
    return xstrdup("*:*:*");
}

static char *text_input(const json_t *job, int64_t now_ms)
{
    return xstrdup("/dev/null");
}

static char *text_features(const json_t *job, int64_t now_ms)
{
    _cleanup_free_ char *features = slurm_text_constraints(job, now_ms);
    return features[0] != '\0' ? take_ptr(features) : xstrdup("(null)");
}

/* Letters of -o, and names of -O and --Format: all of Slurm 22.05. Fields without a meaning here are N/A. */
static const struct slurm_column columns[] = {
    { 'a', "Account", "ACCOUNT", slurm_text_account, 0 },
    { 'A', "JobID", "JOBID", slurm_text_raw_id, 0 },
    { 'B', "BatchHost", "EXEC_HOST", slurm_text_batch_host, 0 },
    { 'b', "tres-per-node", "TRES_PER_NODE", slurm_text_tres_per_node, 0 },
    { 'c', "MinCPUs", "MIN_CPUS", slurm_text_cpus, 0 },
    { 'C', "NumCPUs", "CPUS", slurm_text_cpus, 0 },
    { 'd', "MinTmpDisk", "MIN_TMP_DISK", slurm_text_zero, 0 },
    { 'D', "NumNodes", "NODES", slurm_text_node_count, 0 },
    { 'e', "EndTime", "END_TIME", slurm_text_ended, 0 },
    { 'E', "Dependency", "DEPENDENCY", slurm_text_dependency, 0 },
    { 'f', "Feature", "FEATURES", text_features, 0 },
    { 'F', "ArrayJobID", "ARRAY_JOB_ID", slurm_text_array_job_id, 0 },
    { 'g', "GroupName", "GROUP", slurm_text_group, 0 },
    { 'G', "GroupID", "GROUP", slurm_text_gid, 0 },
    { 'h', "OverSubscribe", "OVER_SUBSCRIBE", slurm_text_oversubscribe, 0 },
    { 'H', "Sockets", "SOCKETS_PER_NODE", slurm_text_star, 0 },
    { 'i', "JobArrayID", "JOBID", slurm_text_job_id, 0 },
    { 'I', "Cores", "CORES_PER_SOCKET", slurm_text_star, 0 },
    { 'j', "Name", "NAME", slurm_text_name, 0 },
    { 'J', "Threads", "THREADS_PER_CORE", slurm_text_star, 0 },
    { 'k', "Comment", "COMMENT", text_comment, 0 },
    { 'K', "ArrayTaskID", "ARRAY_TASK_ID", slurm_text_array_task_id, 0 },
    { 'l', "TimeLimit", "TIME_LIMIT", slurm_text_limit, 0 },
    { 'L', "TimeLeft", "TIME_LEFT", slurm_text_left, 0 },
    { 'm', "MinMemory", "MIN_MEMORY", slurm_text_least_memory, 0 },
    { 'M', "TimeUsed", "TIME", slurm_text_used, 0 },
    { 'n', "ReqNodes", "REQ_NODES", slurm_text_requested_nodes, 0 },
    { 'N', "NodeList", "NODELIST", slurm_text_nodes, 0 },
    { 'o', "Command", "COMMAND", slurm_text_command, 0 },
    { 'O', "Contiguous", "CONTIGUOUS", slurm_text_zero, 0 },
    { 'p', "Priority", "PRIORITY", slurm_text_priority_part, 0 },
    { 'P', "Partition", "PARTITION", slurm_text_partition, 0 },
    { 'q', "QOS", "QOS", slurm_text_qos, 0 },
    { 'Q', "PriorityLong", "PRIORITY", slurm_text_priority, 0 },
    { 'r', "Reason", "REASON", slurm_text_reason, 0 },
    { 'R', "ReasonList", "NODELIST(REASON)", slurm_text_nodes_or_reason, 0 },
    { 's', "SelectJobInfo", "SELECT_JOBINFO", slurm_text_none, 0 },
    { 'S', "StartTime", "START_TIME", slurm_text_expected, 0 },
    { 't', "StateCompact", "ST", slurm_text_compact_state, 0 },
    { 'T', "State", "STATE", slurm_text_state, 0 },
    { 'u', "UserName", "USER", slurm_text_user, 0 },
    { 'U', "UserID", "USER", slurm_text_uid, 0 },
    { 'v', "Reservation", "RESERVATION", slurm_text_null, 0 },
    { 'V', "SubmitTime", "SUBMIT_TIME", slurm_text_submitted, 0 },
    { 'w', "WCKey", "WCKEY", slurm_text_wckey, 0 },
    { 'W', "Licenses", "LICENSES", slurm_text_licenses, 0 },
    { 'x', "ExcNodes", "EXC_NODES", slurm_text_excluded, 0 },
    { 'X', "CoreSpec", "CORE_SPEC", slurm_text_unavailable, 0 },
    { 'y', "Nice", "NICE", slurm_text_nice, 0 },
    { 'Y', "SchedNodes", "SCHEDNODES", slurm_text_null, 0 },
    { 'z', "SCT", "S:C:T", text_sockets, 0 },
    { 'Z', "WorkDir", "WORK_DIR", slurm_text_directory, 0 },
    { 0, "NumTasks", "TASKS", slurm_text_tasks, 0 },
    { 0, "tres-alloc", "TRES_ALLOC", slurm_text_tres, 0 },
    { 0, "tres", "TRES_ALLOC", slurm_text_tres, 0 },
    { 0, "Gres", "TRES_PER_NODE", slurm_text_tres_per_node, 0 },
    { 0, "STDOUT", "STDOUT", slurm_text_output, 0 },
    { 0, "Cluster", "CLUSTER", slurm_text_cluster, 0 },
    { 0, "RestartCnt", "RESTART_COUNT", slurm_text_restarts, 0 },
    { 0, "exit_code", "EXIT_CODE", slurm_text_exit, 0 },
    { 0, "ExpectedStart", "START_TIME", slurm_text_expected, 0 },
    { 0, "AccrueTime", "ACCRUE_TIME", slurm_text_begin, 0 },
    { 0, "admin_comment", "ADMIN_COMMENT", slurm_text_none, 0 },
    { 0, "AllocNodes", "ALLOC_NODES", slurm_text_none, 0 },
    { 0, "AllocSID", "ALLOC_SID", slurm_text_zero, 0 },
    { 0, "AssocID", "ASSOC_ID", slurm_text_zero, 0 },
    { 0, "BatchFlag", "BATCH_FLAG", slurm_text_batch, 0 },
    { 0, "BoardsPerNode", "BOARDS_PER_NODE", slurm_text_star, 0 },
    { 0, "BurstBuffer", "BURST_BUFFER", slurm_text_none, 0 },
    { 0, "BurstBufferState", "BURST_BUFFER_STATE", slurm_text_none, 0 },
    { 0, "ClusterFeature", "CLUSTER_FEATURES", slurm_text_null, 0 },
    { 0, "Container", "CONTAINER", slurm_text_none, 0 },
    { 0, "CPUFreq", "CPU_FREQ", slurm_text_unavailable, 0 },
    { 0, "cpus-per-task", "CPUS_PER_TASK", slurm_text_task_cpus, 0 },
    { 0, "cpus-per-tres", "CPUS_PER_TRES", slurm_text_cpus_per_tres, 0 },
    { 0, "Deadline", "DEADLINE", slurm_text_deadline, 0 },
    { 0, "DelayBoot", "DELAY_BOOT", slurm_text_zero, 0 },
    { 0, "DerivedEC", "DERIVED_EC", slurm_text_zero, 0 },
    { 0, "EligibleTime", "ELIGIBLE_TIME", slurm_text_begin, 0 },
    { 0, "HetJobID", "HET_JOB_ID", slurm_text_unavailable, 0 },
    { 0, "HetJobIDSet", "HET_JOB_ID_SET", slurm_text_unavailable, 0 },
    { 0, "HetJobOffset", "HET_JOB_OFFSET", slurm_text_unavailable, 0 },
    { 0, "LastSchedEval", "LAST_SCHED_EVAL", slurm_text_unavailable, 0 },
    { 0, "MaxCPUs", "MAX_CPUS", slurm_text_zero, 0 },
    { 0, "MaxNodes", "MAX_NODES", slurm_text_zero, 0 },
    { 0, "MCSLabel", "MCSLABEL", slurm_text_unavailable, 0 },
    { 0, "mem-per-tres", "MEM_PER_TRES", slurm_text_mem_per_tres, 0 },
    { 0, "MinTime", "MIN_TIME", slurm_text_least_short, 0 },
    { 0, "Network", "NETWORK", slurm_text_null, 0 },
    { 0, "Nodes", "NODES", slurm_text_nodes, 0 },
    { 0, "NTPerBoard", "NTASKS_PER_BOARD", slurm_text_unavailable, 0 },
    { 0, "NTPerCore", "NTASKS_PER_CORE", slurm_text_unavailable, 0 },
    { 0, "NTPerNode", "NTASKS_PER_NODE", slurm_text_tasks_per_node, 0 },
    { 0, "NTPerSocket", "NTASKS_PER_SOCKET", slurm_text_unavailable, 0 },
    { 0, "Origin", "ORIGIN", slurm_text_unavailable, 0 },
    { 0, "OriginRaw", "ORIGIN_RAW", slurm_text_unavailable, 0 },
    { 0, "PendingTime", "PENDING_TIME", slurm_text_pending_time, 0 },
    { 0, "PreemptTime", "PREEMPT_TIME", slurm_text_unavailable, 0 },
    { 0, "Prefer", "PREFER", slurm_text_none, 0 },
    { 0, "Profile", "PROFILE", slurm_text_unavailable, 0 },
    { 0, "Reboot", "REBOOT", slurm_text_zero, 0 },
    { 0, "ReqSwitch", "REQ_SWITCH", slurm_text_zero, 0 },
    { 0, "Requeue", "REQUEUE", slurm_text_requeue, 0 },
    { 0, "ResizeTime", "RESIZE_TIME", slurm_text_unavailable, 0 },
    { 0, "ResvPort", "RESV_PORTS", slurm_text_unavailable, 0 },
    { 0, "SiblingsActive", "SIBLINGS_ACTIVE", slurm_text_unavailable, 0 },
    { 0, "SiblingsActiveRaw", "SIBLINGS_ACTIVE_RAW", slurm_text_unavailable, 0 },
    { 0, "SiblingsViable", "SIBLINGS_VIABLE", slurm_text_unavailable, 0 },
    { 0, "SiblingsViableRaw", "SIBLINGS_VIABLE_RAW", slurm_text_unavailable, 0 },
    { 0, "SPerBoard", "SOCKETS_PER_BOARD", slurm_text_star, 0 },
    { 0, "STDERR", "STDERR", slurm_text_output, 0 },
    { 0, "STDIN", "STDIN", text_input, 0 },
    { '=', "StepID", "STEPID", slurm_text_job_id, 0 }, // mgpu's own: like 'i', with its own header
    { 0, "StepName", "NAME", slurm_text_name, 0 },
    { 0, "StepState", "STATE", slurm_text_state, 0 },
    { 0, "system_comment", "SYSTEM_COMMENT", slurm_text_none, 0 },
    { 0, "tres-bind", "TRES_BIND", slurm_text_tres_bind, 0 },
    { 0, "tres-freq", "TRES_FREQ", slurm_text_tres_freq, 0 },
    { 0, "tres-per-job", "TRES_PER_JOB", slurm_text_tres_per_job, 0 },
    { 0, "tres-per-socket", "TRES_PER_SOCKET", slurm_text_tres_per_socket, 0 },
    { 0, "tres-per-step", "TRES_PER_STEP", slurm_text_unavailable, 0 },
    { 0, "tres-per-task", "TRES_PER_TASK", slurm_text_tres_per_task, 0 },
    { 0, "Wait4Switch", "WAIT4SWITCH", slurm_text_zero, 0 },
    { 0 },
};

struct squeue {
    const char *format, *long_format, *states, *users, *name, *partitions, *nodes, *accounts, *qos, *sort;
    struct slurm_ids ids;
    bool is_headless, is_mine, is_start, is_long, is_json, is_steps, is_each_element, is_empty;
    int64_t repeat_s;
    struct strings given; // options, for --verbose
};

static int set_ids(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct squeue *squeue = target;
    squeue->ids.refusal = "Invalid job id: ";
    return slurm_ids_parse(value, &squeue->ids, err);
}

static int set_states(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    ((struct squeue *)target)->states = value;
    for (char *word = NULL; strcasecmp(value, "all") != 0 && (word = strsep(&rest, ", ")) != NULL;)
        if (word[0] != '\0' && slurm_state_find(word) == NULL)
            return slurm_state_refuse("squeue", word, err);
    return 0;
}

/* A filter by a property that no job has. */
static int set_absent(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    ((struct squeue *)target)->is_empty = true;
    return 0;
}

static int set_steps(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct squeue *squeue = target;
    squeue->is_steps = true;
    squeue->ids.refusal = "Invalid job_step id: ";
    return value != NULL ? slurm_ids_parse(value, &squeue->ids, err) : 0;
}

static int set_repeat(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    return parse_integer(value, "--iterate", 1, INT32_MAX, &((struct squeue *)target)->repeat_s, NULL) < 0
               ? error_set(err, -EINVAL, "--iterate=%.60s", value)
               : 0;
}

#define TEXT(member) SLURM_TEXT_OF(struct squeue, member)
#define FLAG(member) SLURM_FLAG_OF(struct squeue, member)

const struct slurm_option slurm_squeue_options[] = {
    SLURM_ROW(SLURM_SQUEUE, "account", 'A', "list", TEXT(accounts), "ACCOUNT", "jobs of these accounts"),
    SLURM_ROW(SLURM_SQUEUE, "accounts", 0, "list", TEXT(accounts), NULL, "jobs of these accounts"),
    SLURM_NO_EFFECT(SLURM_SQUEUE, "all", 'a', NULL, NULL, "jobs of all partitions"),
    SLURM_ROW(SLURM_SQUEUE, "array", 'r', NULL, FLAG(is_each_element), "ARRAY",
        "one line for each element of an array"),
    SLURM_ROW(SLURM_SQUEUE, "array-unique", 0, NULL, slurm_set_nothing, "ARRAY_UNIQUE",
        "one line for each element of an array"),
    SLURM_ROW(SLURM_SQUEUE, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_NO_EFFECT(SLURM_SQUEUE, "federation", 0, NULL, "FEDERATION", "jobs of the federation"),
    SLURM_ROW(SLURM_SQUEUE, "format", 'o', "format", TEXT(format), "FORMAT",
        "what is printed, as letters: '%i %t'"),
    SLURM_ROW(SLURM_SQUEUE, "Format", 'O', "names", TEXT(long_format), "FORMAT2",
        "what is printed, as names: JobID:20,State"),
    SLURM_NO_EFFECT(SLURM_SQUEUE, "hide", 0, NULL, NULL, "no jobs of hidden partitions"),
    SLURM_ROW(SLURM_SQUEUE, "iterate", 'i', "seconds", set_repeat, NULL, "print again after this time"),
    SLURM_ROW(SLURM_SQUEUE, "jobs", 'j', "list", set_ids, NULL, "these jobs"),
    SLURM_ROW(SLURM_SQUEUE, "json", 0, NULL, FLAG(is_json), NULL, "print JSON, as openapi v0.0.38 of Slurm"),
    SLURM_ROW(SLURM_SQUEUE, "licenses", 'L', "list", set_absent, "LICENSES",
        "jobs with these licenses, which none has"),
    SLURM_NO_EFFECT(SLURM_SQUEUE, "local", 0, NULL, "LOCAL", "jobs of this cluster"),
    SLURM_ROW(SLURM_SQUEUE, "long", 'l', NULL, FLAG(is_long), NULL, "more columns"),
    SLURM_ROW(SLURM_SQUEUE, "me", 0, NULL, FLAG(is_mine), NULL, "your own jobs"),
    SLURM_ROW(SLURM_SQUEUE, "name", 'n', "list", TEXT(name), "NAMES", "jobs with these names"),
    SLURM_ROW(SLURM_SQUEUE, "nodelist", 'w', "list", TEXT(nodes), NULL, "jobs on these nodes"),
    SLURM_ROW(SLURM_SQUEUE, "nodes", 0, "list", TEXT(nodes), NULL, "jobs on these nodes"),
    SLURM_ROW(SLURM_SQUEUE, "noheader", 'h', NULL, FLAG(is_headless), NULL, "no header"),
    SLURM_NO_EFFECT(SLURM_SQUEUE, "noconvert", 0, NULL, NULL, "sizes as they are stored"),
    SLURM_ROW(
        SLURM_SQUEUE, "partition", 'p', "list", TEXT(partitions), "PARTITION", "jobs of these partitions"),
    SLURM_ROW(SLURM_SQUEUE, "partitions", 0, "list", TEXT(partitions), NULL, "jobs of these partitions"),
    SLURM_NO_EFFECT(SLURM_SQUEUE, "priority", 'P', NULL, "PRIORITY", "a line for each partition"),
    SLURM_ROW(SLURM_SQUEUE, "qos", 'q', "list", TEXT(qos), "QOS", "jobs of these QOS"),
    SLURM_ROW(SLURM_SQUEUE, "reservation", 'R', "name", set_absent, NULL,
        "jobs of this reservation, of which there are none"),
    SLURM_NO_EFFECT(SLURM_SQUEUE, "sibling", 0, NULL, "SIBLING", "siblings of a federation"),
    SLURM_ROW(SLURM_SQUEUE, "sort", 'S', "letters", TEXT(sort), "SORT",
        "order: by letters of -o, '-' for descending"),
    SLURM_ROW(
        SLURM_SQUEUE, "start", 0, NULL, FLAG(is_start), NULL, "when waiting jobs are expected to start"),
    SLURM_ROW(SLURM_SQUEUE, "states", 't', "list", set_states, "STATES", "jobs in these states, or all"),
    SLURM_ROW(SLURM_SQUEUE, "steps", 's', "[list]", set_steps, NULL,
        "running steps instead of jobs; of these jobs, or these steps"),
    SLURM_ROW(SLURM_SQUEUE, "user", 'u', "list", TEXT(users), "USERS", "jobs of these users"),
    SLURM_ROW(SLURM_SQUEUE, "users", 0, "list", TEXT(users), NULL, "the same"),
    SLURM_ROW(SLURM_SQUEUE, "verbose", 'v', NULL, slurm_set_nothing, NULL, "print the options first"),
    SLURM_REFUSE(SLURM_SQUEUE, "yaml", 0, NULL, SLURM_NO_YAML),
    { 0 },
};

/* --- which --- */

static bool is_in_state(const struct squeue *squeue, const json_t *job, int64_t now_ms)
{
    const struct slurm_state *state = slurm_state_of(job);
    if (squeue->is_start)
        return strcmp(state->compact, "PD") == 0;
    if (squeue->states == NULL)
        return !state->is_over;
    if (slurm_job_is_old(job, now_ms))
        return false;
    if (strcasecmp(squeue->states, "all") == 0)
        return true;
    _cleanup_free_ char *copy = xstrdup(squeue->states);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ", ")) != NULL;)
        if (word[0] != '\0' && slurm_state_find(word) == state)
            return true;
    return false;
}

static bool is_among(const char *list, slurm_text_fn *text, const json_t *job)
{
    if (list == NULL)
        return true;
    _cleanup_free_ char *word = text(job, 0);
    return slurm_lists_meet(list, word);
}

static bool is_wanted(const struct squeue *squeue, const json_t *job, int64_t now_ms)
{
    return !squeue->is_empty && is_in_state(squeue, job, now_ms) &&
           is_among(squeue->partitions, slurm_text_partition, job) &&
           is_among(squeue->accounts, slurm_text_account, job) &&
           is_among(squeue->qos, slurm_text_qos, job) &&
           (squeue->nodes == NULL || slurm_job_is_on(job, squeue->nodes));
}

/* One missing job is an error; if several were named, the list is shorter, as in Slurm. */
static int check_found(const struct squeue *squeue, const json_t *jobs, struct error *err)
{
    if (squeue->ids.count != 1 || json_array_size(jobs) > 0)
        return 0;
    return error_set(err, -ENOENT, "Invalid job id specified");
}

/* Letters of columns by which Slurm does not sort. It reads them from the right. */
static int check_sort(const struct squeue *squeue, struct error *err)
{
    static const char unsorted[] = "AabEFKkoqRrsWwXxYyZ";
    for (size_t i = squeue->sort != NULL ? strlen(squeue->sort) : 0; i > 0; i--)
        if (strchr(unsorted, squeue->sort[i - 1]) != NULL)
            return error_set(err, -EINVAL, "Invalid sort specification: %c", squeue->sort[i - 1]);
    return 0;
}

static int check_nodes(const struct squeue *squeue, struct client *client, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL, *known = json_object();
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0;
    json_t *node = NULL;
    if (squeue->nodes == NULL)
        return 0;
    int r = client_get(client, API_PATH "/nodes", &answer, err);
    if (r == 0)
        r = hostlist_expand(squeue->nodes, &names, err);
    json_array_foreach(json_object_get(answer, "nodes"), index, node)(void)
        json_object_set(known, field_text(node, "name"), node);
    for (size_t i = 0; r >= 0 && i < names.count; i++)
        if (json_object_get(known, names.items[i]) == NULL)
            return error_set(err, -EINVAL, "Invalid node name %.60s", names.items[i]);
    return r < 0 ? r : 0;
}

static int load(struct squeue *squeue, json_t **ret, struct error *err)
{
    struct client client;
    _cleanup_json_ json_t *found = NULL, *jobs = json_array();
    size_t index = 0;
    json_t *job = NULL;
    int64_t now_ms = clock_wall_ms();
    const struct slurm_query query = { .ids = &squeue->ids,
        .users = squeue->users,
        .names = squeue->name,
        .has_open_alone = squeue->states == NULL && squeue->ids.count == 0 };
    client_init(&client, NULL, NULL);
    int r = check_nodes(squeue, &client, err);
    if (r == 0)
        r = slurm_jobs_get(&client, &query, &found, err);
    client_clear(&client);
    if (r < 0)
        return r;
    /* A job that ended long ago is treated as one that never existed. */
    json_array_foreach(found, index, job) if (is_wanted(squeue, job, now_ms))(void)
        json_array_append(jobs, job);
    size_t known = json_array_size(jobs);
    json_array_foreach(found, index, job) known += !slurm_job_is_old(job, now_ms);
    r = known > 0 ? 0 : check_found(squeue, jobs, err);
    if (r == 0)
        *ret = take_ptr(jobs);
    return r;
}

static void add_element(const struct squeue *squeue, json_t *all, const json_t *job, uint32_t index)
{
    _cleanup_json_ json_t *element = slurm_job_element(job, index);
    bool is_asked = squeue->ids.count == 0;
    for (size_t i = 0; !is_asked && i < squeue->ids.count; i++)
        is_asked = slurm_id_fits(&squeue->ids.items[i], element);
    if (is_asked)
        (void)json_array_append(all, element);
}

/* Lists waiting elements of arrays as separate jobs. */
static void expand_arrays(const struct squeue *squeue, json_t **jobs)
{
    json_t *all = json_array(), *job = NULL;
    size_t index = 0;
    json_array_foreach(*jobs, index, job)
    {
        struct array left = { 0 };
        const char *text = field_text(job, "array_left");
        if (text == NULL || parse_array(text, &left, NULL) < 0) {
            (void)json_array_append(all, job);
            continue;
        }
        for (size_t i = 0; i < left.count; i++)
            for (uint32_t k = left.ranges[i].first, step = left.ranges[i].step; k <= left.ranges[i].last;
                 k += step > 0 ? step : 1)
                add_element(squeue, all, job, k);
        array_clear(&left);
    }
    json_decref(*jobs);
    *jobs = all;
}

static bool is_listed(const struct squeue *squeue, const json_t *step)
{
    for (size_t i = 0; i < squeue->ids.count; i++)
        if (slurm_id_fits_step(&squeue->ids.items[i], step))
            return true;
    return squeue->ids.count == 0;
}

/* Replaces the jobs by their running steps. */
static int load_steps(const struct squeue *squeue, json_t **jobs, struct error *err)
{
    struct client client;
    json_t *all = json_array(), *job = NULL;
    size_t index = 0;
    int r = 0;
    client_init(&client, NULL, NULL);
    json_array_foreach(*jobs, index, job)
    {
        _cleanup_json_ json_t *steps = NULL;
        size_t place = 0;
        json_t *step = NULL;
        if (r == 0)
            r = slurm_steps_get(&client, job, true, &steps, err);
        json_array_foreach(steps, place, step) if (is_listed(squeue, step))(void)
            json_array_append(all, step);
    }
    client_clear(&client);
    json_decref(*jobs);
    *jobs = all;
    return r;
}

static int load_details(json_t *jobs, struct error *err)
{
    _cleanup_(client_clear) struct client client;
    client_init(&client, NULL, NULL);
    int r = slurm_details_add(&client, jobs, err);
    return r;
}

static void note_option(
    const struct slurm_reading *reading, const struct slurm_option *option, const char *value)
{
    slurm_verbose_note(&((struct squeue *)reading->target)->given, option, value);
}

static void squeue_clear(struct squeue *squeue)
{
    slurm_ids_clear(&squeue->ids);
    strings_clear(&squeue->given);
}

static bool has_date(const struct squeue *squeue)
{
    return squeue->is_long || squeue->repeat_s > 0 || slurm_verbose_level(&squeue->given) > 0;
}

static int print(struct squeue *squeue, struct error *err)
{
    _cleanup_json_ json_t *jobs = NULL;
    int r = load(squeue, &jobs, err);
    if (r == 0 && squeue->is_steps)
        r = load_steps(squeue, &jobs, err);
    if (r < 0)
        return r;
    if (squeue->is_each_element)
        expand_arrays(squeue, &jobs);
    else
        slurm_jobs_narrow(&squeue->ids, &jobs);
    if (squeue->is_json)
        return slurm_json_print_jobs(jobs);
    struct slurm_table table = {
        .columns = columns, .is_headless = squeue->is_headless, .sort = squeue->sort
    };
    bool is_all = squeue->format != NULL && strcasecmp(squeue->format, "%all") == 0;
    const char *format = is_all                   ? FORMAT_ALL
                         : squeue->format != NULL ? squeue->format
                         : squeue->is_steps       ? FORMAT_STEPS
                         : squeue->is_long        ? FORMAT_LONG
                         : squeue->is_start       ? "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
                                                  : FORMAT_USUAL;
    r = squeue->long_format != NULL ? slurm_table_read_names(&table, squeue->long_format, err)
                                    : slurm_table_read_letters(&table, format, err);
    if (r == 0 && slurm_table_has(&table, "WorkDir"))
        r = load_details(jobs, err);
    if (r == 0 && !squeue->is_headless && has_date(squeue))
        slurm_print_date();
    if (r == 0)
        slurm_verbose_count(&squeue->given, json_array_size(jobs));
    int sorted = check_sort(squeue, err);
    if (sorted < 0)
        (void)json_array_clear(jobs); // the header is printed before the error
    if (r == 0)
        slurm_table_print(&table, jobs);
    slurm_table_clear(&table);
    return r < 0 ? r : sorted;
}

int slurm_run_squeue(const struct slurm_program *program, int argc, char **argv)
{
    struct squeue squeue = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &squeue, .seen = note_option };
    struct error err = { 0 };
    int first = 0;
    int r = slurm_options_from_environment(&reading, "SQUEUE", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r == 0 && first < argc)
        r = error_set(&err, -EINVAL, "Unrecognized option: %.60s", argv[first]);
    if (r == 0)
        r = slurm_users_check(squeue.users, "Invalid user", &err);
    if (r < 0) {
        squeue_clear(&squeue);
        return slurm_fail(program, &err);
    }
    if (slurm_verbose_print(slurm_verbose_squeue, &squeue.given))
        (void)puts("\n");
    squeue.users = squeue.is_mine ? slurm_own_name() : squeue.users;
    do {
        r = print(&squeue, &err);
        (void)fflush(stdout);
        if (r == 0 && squeue.repeat_s > 0)
            (void)sleep((unsigned)squeue.repeat_s);
    } while (r == 0 && squeue.repeat_s > 0);
    squeue_clear(&squeue);
    if (r == -EINVAL)
        return slurm_fail(program, &err);
    return r < 0 ? slurm_fail_load("slurm_load_jobs", &err) : 0;
}
