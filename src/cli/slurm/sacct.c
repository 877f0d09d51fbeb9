/* SPDX-License-Identifier: MIT */
/*
 * sacct: jobs of the store, which contains them from their submit on. A job that has started also has a line
 * for its batch script.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/jobs.h"
#include "cli/slurm/json_form.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/state.h"
#include "cli/slurm/steps.h"
#include "cli/slurm/table.h"
#include "cli/submit/slurm_values.h"
#include "cli/term/field.h"
#include "cli/term/time_text.h"
#include "cli/term/when.h"
#include "job/slurm.h"

#define FORMAT_USUAL "jobid,jobname,partition,account,alloccpus,state,exitcode"
#define FORMAT_BRIEF "jobid,state,exitcode"
#define FORMAT_LONG                                                                                          \
    "jobid,jobidraw,jobname,partition,maxrss,alloccpus,elapsed,state,exitcode,reqmem,alloctres,nodelist"

/* How long it waited. */
static char *text_planned(const json_t *job, int64_t now_ms)
{
    _cleanup_free_ char *seconds = slurm_text_pending_time(job, now_ms);
    return slurm_duration_text(strtoll(seconds, NULL, 10), true);
}

static char *text_suspended(const json_t *job, int64_t now_ms)
{
    (void)job, (void)now_ms;
    return xstrdup("00:00:00");
}

/* The fields of Slurm 22.05, and as many characters as each has without %width; those that are not measured
 * here are empty. */
static const struct slurm_column columns[] = {
    { 0, "Account", "Account", slurm_text_account, -10 },
    { 0, "AdminComment", "AdminComment", slurm_text_none, -19 },
    { 0, "AllocCPUS", "AllocCPUS", slurm_text_cpus, -10 },
    { 0, "AllocNodes", "AllocNodes", slurm_text_node_count, -10 },
    { 0, "AllocTRES", "AllocTRES", slurm_text_tres, -10 },
    { 0, "AssocID", "AssocID", slurm_text_zero, -7 },
    { 0, "AveCPU", "AveCPU", slurm_text_ave_cpu, -10 },
    { 0, "AveCPUFreq", "AveCPUFreq", slurm_text_none, -10 },
    { 0, "AveDiskRead", "AveDiskRead", slurm_text_none, -14 },
    { 0, "AveDiskWrite", "AveDiskWrite", slurm_text_none, -14 },
    { 0, "AvePages", "AvePages", slurm_text_none, -10 },
    { 0, "AveRSS", "AveRSS", slurm_text_ave_rss, -10 },
    { 0, "AveVMSize", "AveVMSize", slurm_text_none, -10 },
    { 0, "BlockID", "BlockID", slurm_text_none, -16 },
    { 0, "Cluster", "Cluster", slurm_text_cluster, -10 },
    { 0, "Comment", "Comment", slurm_text_comment, -14 },
    { 0, "Constraints", "Constraints", slurm_text_none, -19 },
    { 0, "ConsumedEnergy", "ConsumedEnergy", slurm_text_none, -14 },
    { 0, "ConsumedEnergyRaw", "ConsumedEnergyRaw", slurm_text_none, -17 },
    { 0, "Container", "Container", slurm_text_none, -19 },
    { 0, "CPUTime", "CPUTime", slurm_text_cpu_time, -10 },
    { 0, "CPUTimeRAW", "CPUTimeRAW", slurm_text_cpu_time_raw, -10 },
    { 0, "DBIndex", "DBIndex", slurm_text_raw_id, -19 },
    { 0, "DerivedExitCode", "DerivedExitCode", slurm_text_exit, -15 },
    { 0, "Elapsed", "Elapsed", slurm_text_elapsed, -10 },
    { 0, "ElapsedRaw", "ElapsedRaw", slurm_text_elapsed_raw, -10 },
    { 0, "Eligible", "Eligible", slurm_text_submitted, -19 },
    { 0, "End", "End", slurm_text_account_end, -19 },
    { 0, "ExitCode", "ExitCode", slurm_text_exit, -8 },
    { 0, "FailedNode", "FailedNode", slurm_text_none, -10 },
    { 0, "Flags", "Flags", slurm_text_none, -19 },
    { 0, "GID", "GID", slurm_text_gid, -6 },
    { 0, "Group", "Group", slurm_text_group, -9 },
    { 0, "JobID", "JobID", slurm_text_job_id, 12 },
    { 0, "JobIDRaw", "JobIDRaw", slurm_text_raw_id, 12 },
    { 0, "JobName", "JobName", slurm_text_name, -10 },
    { 0, "Layout", "Layout", slurm_text_none, -9 },
    { 0, "MaxDiskRead", "MaxDiskRead", slurm_text_none, -12 },
    { 0, "MaxDiskReadNode", "MaxDiskReadNode", slurm_text_none, -15 },
    { 0, "MaxDiskReadTask", "MaxDiskReadTask", slurm_text_none, -15 },
    { 0, "MaxDiskWrite", "MaxDiskWrite", slurm_text_none, -12 },
    { 0, "MaxDiskWriteNode", "MaxDiskWriteNode", slurm_text_none, -16 },
    { 0, "MaxDiskWriteTask", "MaxDiskWriteTask", slurm_text_none, -16 },
    { 0, "MaxPages", "MaxPages", slurm_text_none, -8 },
    { 0, "MaxPagesNode", "MaxPagesNode", slurm_text_none, -12 },
    { 0, "MaxPagesTask", "MaxPagesTask", slurm_text_none, -12 },
    { 0, "MaxRSS", "MaxRSS", slurm_text_max_rss, -10 },
    { 0, "MaxRSSNode", "MaxRSSNode", slurm_text_max_rss_node, -10 },
    { 0, "MaxRSSTask", "MaxRSSTask", slurm_text_max_rss_task, -10 },
    { 0, "MaxVMSize", "MaxVMSize", slurm_text_none, -10 },
    { 0, "MaxVMSizeNode", "MaxVMSizeNode", slurm_text_none, -14 },
    { 0, "MaxVMSizeTask", "MaxVMSizeTask", slurm_text_none, -14 },
    { 0, "McsLabel", "McsLabel", slurm_text_none, -9 },
    { 0, "MinCPU", "MinCPU", slurm_text_none, -10 },
    { 0, "MinCPUNode", "MinCPUNode", slurm_text_none, -10 },
    { 0, "MinCPUTask", "MinCPUTask", slurm_text_none, -10 },
    { 0, "NCPUS", "NCPUS", slurm_text_cpus, -10 },
    { 0, "NNodes", "NNodes", slurm_text_node_count, -8 },
    { 0, "NodeList", "NodeList", slurm_text_account_nodes, -15 },
    { 0, "NTasks", "NTasks", slurm_text_step_tasks, -8 },
    { 0, "Partition", "Partition", slurm_text_partition, -10 },
    { 0, "Planned", "Planned", text_planned, -10 },
    { 0, "PlannedCPU", "PlannedCPU", slurm_text_none, -10 },
    { 0, "PlannedCPURAW", "PlannedCPURAW", slurm_text_none, -13 },
    { 0, "Priority", "Priority", slurm_text_priority, -10 },
    { 0, "QOS", "QOS", slurm_text_qos, -10 },
    { 0, "QOSRAW", "QOSRAW", slurm_text_zero, -10 },
    { 0, "Reason", "Reason", slurm_text_reason, -22 },
    { 0, "ReqCPUFreq", "ReqCPUFreq", slurm_text_none, -10 },
    { 0, "ReqCPUFreqGov", "ReqCPUFreqGov", slurm_text_none, -13 },
    { 0, "ReqCPUFreqMax", "ReqCPUFreqMax", slurm_text_none, -13 },
    { 0, "ReqCPUFreqMin", "ReqCPUFreqMin", slurm_text_none, -13 },
    { 0, "ReqCPUS", "ReqCPUS", slurm_text_cpus, -8 },
    { 0, "ReqMem", "ReqMem", slurm_text_memory, -10 },
    { 0, "ReqNodes", "ReqNodes", slurm_text_node_count, -8 },
    { 0, "ReqTRES", "ReqTRES", slurm_text_tres, -10 },
    { 0, "Reservation", "Reservation", slurm_text_none, -20 },
    { 0, "ReservationId", "ReservationId", slurm_text_none, -15 },
    { 0, "Reserved", "Reserved", text_planned, -10 },
    { 0, "ResvCPU", "ResvCPU", slurm_text_none, -10 },
    { 0, "ResvCPURAW", "ResvCPURAW", slurm_text_none, -10 },
    { 0, "Start", "Start", slurm_text_account_start, -19 },
    { 0, "State", "State", slurm_text_account_state, -10 },
    { 0, "Submit", "Submit", slurm_text_submitted, -19 },
    { 0, "SubmitLine", "SubmitLine", slurm_text_command, -20 },
    { 0, "Suspended", "Suspended", text_suspended, -10 },
    { 0, "SystemComment", "SystemComment", slurm_text_none, -19 },
    { 0, "SystemCPU", "SystemCPU", slurm_text_system_cpu, -10 },
    { 0, "Timelimit", "Timelimit", slurm_text_account_limit, -10 },
    { 0, "TimelimitRaw", "TimelimitRaw", slurm_text_limit_raw, -12 },
    { 0, "TotalCPU", "TotalCPU", slurm_text_total_cpu, -10 },
    { 0, "TRESUsageInAve", "TRESUsageInAve", slurm_text_none, -14 },
    { 0, "TRESUsageInMax", "TRESUsageInMax", slurm_text_none, -14 },
    { 0, "TRESUsageInMaxNode", "TRESUsageInMaxNode", slurm_text_none, -14 },
    { 0, "TRESUsageInMaxTask", "TRESUsageInMaxTask", slurm_text_none, -14 },
    { 0, "TRESUsageInMin", "TRESUsageInMin", slurm_text_none, -14 },
    { 0, "TRESUsageInMinNode", "TRESUsageInMinNode", slurm_text_none, -14 },
    { 0, "TRESUsageInMinTask", "TRESUsageInMinTask", slurm_text_none, -14 },
    { 0, "TRESUsageInTot", "TRESUsageInTot", slurm_text_none, -14 },
    { 0, "TRESUsageOutAve", "TRESUsageOutAve", slurm_text_none, -14 },
    { 0, "TRESUsageOutMax", "TRESUsageOutMax", slurm_text_none, -14 },
    { 0, "TRESUsageOutMaxNode", "TRESUsageOutMaxNode", slurm_text_none, -14 },
    { 0, "TRESUsageOutMaxTask", "TRESUsageOutMaxTask", slurm_text_none, -14 },
    { 0, "TRESUsageOutMin", "TRESUsageOutMin", slurm_text_none, -14 },
    { 0, "TRESUsageOutMinNode", "TRESUsageOutMinNode", slurm_text_none, -14 },
    { 0, "TRESUsageOutMinTask", "TRESUsageOutMinTask", slurm_text_none, -14 },
    { 0, "TRESUsageOutTot", "TRESUsageOutTot", slurm_text_none, -14 },
    { 0, "UID", "UID", slurm_text_uid, -6 },
    { 0, "User", "User", slurm_text_user, -9 },
    { 0, "UserCPU", "UserCPU", slurm_text_user_cpu, -10 },
    { 0, "WCKey", "WCKey", slurm_text_wckey, -10 },
    { 0, "WCKeyID", "WCKeyID", slurm_text_zero, -10 },
    { 0, "WorkDir", "WorkDir", slurm_text_directory, -20 },
    { 0 },
};

struct sacct {
    const char *format, *states, *users, *name, *start, *end, *delimiter, *partitions, *accounts, *qos,
        *nodes;
    struct slurm_ids ids;
    int64_t start_ms, end_ms;
    bool is_headless, is_parsable, has_last_delimiter, is_job_alone, is_all_users, is_brief, is_long, is_json;
    bool is_help_format;
};

static int set_ids(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    (void)option;
    return slurm_ids_parse(value, &((struct sacct *)target)->ids, err);
}

static int set_text(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sacct *sacct = target;
    (void)err;
    const struct {
        const char *name;
        const char **text;
    } texts[] = { { "format", &sacct->format }, { "state", &sacct->states }, { "user", &sacct->users },
        { "uid", &sacct->users }, { "name", &sacct->name }, { "starttime", &sacct->start },
        { "endtime", &sacct->end }, { "delimiter", &sacct->delimiter }, { "partition", &sacct->partitions },
        { "accounts", &sacct->accounts }, { "qos", &sacct->qos }, { "nodelist", &sacct->nodes } };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(texts[i].name, option->name) == 0)
            *texts[i].text = value;
    return 0;
}

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sacct *sacct = target;
    (void)value, (void)err;
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "noheader", &sacct->is_headless }, { "allocations", &sacct->is_job_alone },
        { "allusers", &sacct->is_all_users }, { "brief", &sacct->is_brief }, { "long", &sacct->is_long },
        { "json", &sacct->is_json }, { "helpformat", &sacct->is_help_format },
        { "parsable2", &sacct->is_parsable }, { "parsable", &sacct->is_parsable } };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(flags[i].name, option->name) == 0)
            *flags[i].flag = true;
    sacct->has_last_delimiter |= strcmp(option->name, "parsable") == 0;
    return 0;
}

const struct slurm_option slurm_sacct_options[] = {
    SLURM_ROW(SLURM_SACCT, "accounts", 'A', "list", set_text, NULL, "jobs of these accounts"),
    SLURM_ROW(SLURM_SACCT, "allocations", 'X', NULL, set_flag, NULL, "no lines for steps"),
    SLURM_NO_EFFECT(SLURM_SACCT, "allclusters", 'L', NULL, NULL, "jobs of all clusters"),
    SLURM_ROW(SLURM_SACCT, "allusers", 'a', NULL, set_flag, NULL, "jobs of all users"),
    SLURM_NO_EFFECT(SLURM_SACCT, "array", 0, NULL, NULL, "one line for each element of an array"),
    SLURM_ROW(SLURM_SACCT, "brief", 'b', NULL, set_flag, NULL, "JobID, State and ExitCode"),
    SLURM_NO_EFFECT(SLURM_SACCT, "clusters", 'M', "list", NULL, "jobs of these clusters"),
    SLURM_ROW(SLURM_SACCT, "delimiter", 0, "text", set_text, NULL, "what stands between fields of -p and -P"),
    SLURM_NO_EFFECT(SLURM_SACCT, "duplicates", 'D', NULL, NULL, "all jobs that have the same number"),
    SLURM_ROW(SLURM_SACCT, "endtime", 'E', "time", set_text, NULL, "jobs that were there before this time"),
    SLURM_ROW(SLURM_SACCT, "format", 'o', "fields", set_text, "FORMAT", "fields, each with %width"),
    SLURM_ROW(SLURM_SACCT, "helpformat", 'e', NULL, set_flag, NULL, "print the names of all fields"),
    SLURM_ROW(SLURM_SACCT, "jobs", 'j', "list", set_ids, NULL, "these jobs"),
    SLURM_ROW(SLURM_SACCT, "json", 0, NULL, set_flag, NULL, "print JSON, as openapi v0.0.38 of Slurm"),
    SLURM_NO_EFFECT(SLURM_SACCT, "local", 0, NULL, NULL, "jobs of this cluster"),
    SLURM_ROW(SLURM_SACCT, "long", 'l', NULL, set_flag, NULL, "more fields"),
    SLURM_ROW(SLURM_SACCT, "name", 0, "list", set_text, NULL, "jobs with these names"),
    SLURM_NO_EFFECT(SLURM_SACCT, "noconvert", 0, NULL, NULL, "sizes as they are kept"),
    SLURM_ROW(SLURM_SACCT, "nodelist", 'N', "list", set_text, NULL, "jobs on these nodes"),
    SLURM_ROW(SLURM_SACCT, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SACCT, "parsable", 'p', NULL, set_flag, NULL, "fields with a | behind each"),
    SLURM_ROW(SLURM_SACCT, "parsable2", 'P', NULL, set_flag, NULL, "fields with a | between them"),
    SLURM_ROW(SLURM_SACCT, "partition", 'r', "list", set_text, NULL, "jobs of these partitions"),
    SLURM_ROW(SLURM_SACCT, "qos", 'q', "list", set_text, NULL, "jobs of these QOS"),
    SLURM_ROW(SLURM_SACCT, "starttime", 'S', "time", set_text, NULL,
        "jobs that were there after this time (midnight)"),
    SLURM_ROW(SLURM_SACCT, "state", 's', "list", set_text, NULL, "jobs in these states"),
    SLURM_NO_EFFECT(SLURM_SACCT, "truncate", 'T', NULL, NULL, "times within those of -S and -E"),
    SLURM_NO_EFFECT(SLURM_SACCT, "units", 0, "unit", NULL, "unit of sizes"),
    SLURM_ROW(SLURM_SACCT, "uid", 'u', "list", set_text, NULL, "jobs of these users (you)"),
    SLURM_ROW(SLURM_SACCT, "user", 0, "list", set_text, NULL, "jobs of these users (you)"),
    SLURM_NO_EFFECT(SLURM_SACCT, "wckeys", 'W', "list", NULL, "jobs with these keys"),
    SLURM_NO_EFFECT(SLURM_SACCT, "yaml", 0, NULL, NULL, "print YAML"),
    { 0 },
};

/* --- which --- */

static int read_moment(const char *what, const char *text, int64_t *ret_ms, struct error *err)
{
    _cleanup_free_ char *moment = slurm_moment(text);
    /* "now-2hours" is what sacct alone takes. */
    if (strncmp(text, "now-", 4) == 0) {
        _cleanup_free_ char *later = xasprintf("now+%s", text + 4);
        _cleanup_free_ char *distance = slurm_moment(later);
        int64_t now_ms = clock_wall_ms();
        int r = when_parse(distance, what, now_ms, &when_local, ret_ms, err);
        *ret_ms = 2 * now_ms - *ret_ms;
        return r;
    }
    /* "2026-11-22T10:00" and "11/22". */
    char *t = strchr(moment, 'T');
    if (t != NULL && strchr(moment, 'Z') == NULL && strchr(moment, '+') == NULL)
        *t = ' ';
    return when_parse(moment, what, clock_wall_ms(), &when_local, ret_ms, err);
}

/* True if the text of this field is one of the list, or no list is given. */
static bool is_among(const char *list, slurm_text_fn *field, const json_t *job)
{
    _cleanup_free_ char *text = field(job, 0);
    return list == NULL || slurm_lists_meet(list, text);
}

static bool is_wanted(const struct sacct *sacct, const json_t *job)
{
    const char *ended = field_text(job, "ended_at"), *submitted = field_text(job, "submitted_at");
    int64_t ended_ms = ended != NULL ? time_parse(ended) : INT64_MAX;
    int64_t submitted_ms = submitted != NULL ? time_parse(submitted) : 0;
    if (ended_ms < sacct->start_ms || (sacct->end_ms > 0 && submitted_ms > sacct->end_ms))
        return false;
    if (!is_among(sacct->partitions, slurm_text_partition, job) ||
        !is_among(sacct->accounts, slurm_text_account, job) || !is_among(sacct->qos, slurm_text_qos, job) ||
        (sacct->nodes != NULL && !slurm_job_is_on(job, sacct->nodes)))
        return false;
    if (sacct->states == NULL)
        return true;
    _cleanup_free_ char *copy = xstrdup(sacct->states);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ", ")) != NULL;)
        if (word[0] != '\0' && slurm_state_find(word) == slurm_state_of(job))
            return true;
    return false;
}

static int check_states(const struct sacct *sacct, struct error *err)
{
    _cleanup_free_ char *copy = sacct->states != NULL ? xstrdup(sacct->states) : NULL;
    char *rest = copy;
    for (char *word = NULL; rest != NULL && (word = strsep(&rest, ", ")) != NULL;)
        if (word[0] != '\0' && slurm_state_find(word) == NULL)
            return error_set(err, -EINVAL, "Unrecognized job state value: %.60s", word);
    return 0;
}

static int load(struct sacct *sacct, json_t **ret, struct error *err)
{
    struct client client;
    _cleanup_json_ json_t *found = NULL, *jobs = json_array();
    size_t index = 0;
    json_t *job = NULL;
    bool is_everybody = sacct->is_all_users || sacct->ids.count > 0;
    const struct slurm_query query = { .ids = &sacct->ids,
        .users = sacct->users != NULL ? sacct->users
                 : is_everybody       ? NULL
                                      : slurm_own_name(),
        .name = sacct->name,
        .is_quick = true,
        .has_ended = true };
    int r = check_states(sacct, err);
    if (r == 0)
        r = slurm_users_check(sacct->users, "Invalid user id", err);
    if (r < 0)
        return r;
    if (sacct->start != NULL)
        r = read_moment("--starttime", sacct->start, &sacct->start_ms, err);
    else if (sacct->ids.count == 0)
        r = read_moment("--starttime", "now-1day", &sacct->start_ms, err);
    if (r == 0 && sacct->end != NULL)
        r = read_moment("--endtime", sacct->end, &sacct->end_ms, err);
    if (r < 0)
        return r;
    client_init(&client, NULL, NULL);
    r = slurm_jobs_get(&client, &query, &found, err);
    client_clear(&client);
    if (r < 0)
        return r;
    json_array_foreach(found, index, job) if (is_wanted(sacct, job))(void) json_array_append(jobs, job);
    *ret = take_ptr(jobs);
    return 0;
}

/* --- print --- */

/* "JobID,State%20": fields and their widths; names may be abbreviated if unambiguous. */
static int read_format(struct slurm_table *table, const char *format, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(format);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ", ")) != NULL;) {
        char *percent = strchr(word, '%');
        _cleanup_buffer_ struct buffer name = { 0 };
        if (percent != NULL)
            *percent++ = '\0';
        if (word[0] == '\0')
            continue;
        buffer_printf(&name, "%s:0", word);
        if (slurm_table_read_names(table, buffer_text(&name), NULL) < 0)
            return error_set(err, -EINVAL, "Invalid field requested: \"%.60s\"", word);
        struct slurm_cell *cell = &table->cells[table->count - 1];
        long width = percent != NULL ? strtol(percent, NULL, 10) : 0;
        /* There a positive width is to the right, other than in squeue. */
        cell->width = percent != NULL && width != 0 ? -(int)width : cell->column->width;
    }
    return 0;
}

/* Of a field in the line of a step. */
static char *step_text(const struct slurm_column *column, const json_t *step, int64_t now_ms)
{
    if (strcmp(column->name, "Partition") == 0 || strcmp(column->name, "User") == 0)
        return xstrdup("");
    return column->text(step, now_ms);
}

static void print_line(const struct sacct *sacct, const struct slurm_table *table, const json_t *job,
    bool is_step, int64_t now_ms)
{
    const char *delimiter = sacct->delimiter != NULL ? sacct->delimiter : "|";
    for (size_t i = 0; i < table->count; i++) {
        const struct slurm_column *column = table->cells[i].column;
        _cleanup_free_ char *text = job == NULL ? xstrdup(column->header)
                                    : is_step   ? step_text(column, job, now_ms)
                                                : column->text(job, now_ms);
        if (sacct->is_parsable) {
            bool is_last = i + 1 == table->count;
            (void)printf("%s%s", text, is_last && !sacct->has_last_delimiter ? "" : delimiter);
            continue;
        }
        int width = table->cells[i].width, size = width < 0 ? -width : width;
        if ((int)strlen(text) > size && size > 0)
            text[size - 1] = '+', text[size] = '\0';
        slurm_print_cell(text, width);
        (void)putchar(' ');
    }
    (void)putchar('\n');
}

static void print_rule(const struct slurm_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        int width = table->cells[i].width < 0 ? -table->cells[i].width : table->cells[i].width;
        for (int k = 0; k < width; k++)
            (void)putchar('-');
        (void)putchar(' ');
    }
    (void)putchar('\n');
}

static int print_steps(const struct sacct *sacct, const struct slurm_table *table, struct client *client,
    const json_t *job, int64_t now_ms, struct error *err)
{
    _cleanup_json_ json_t *steps = NULL;
    size_t index = 0;
    json_t *step = NULL;
    int r = slurm_steps_get(client, job, false, &steps, err);
    json_array_foreach(steps, index, step) print_line(sacct, table, step, true, now_ms);
    return r;
}

static int print_jobs(
    const struct sacct *sacct, const struct slurm_table *table, const json_t *jobs, struct error *err)
{
    struct client client;
    size_t index = 0;
    json_t *job = NULL;
    int64_t now_ms = clock_wall_ms();
    int r = 0;
    client_init(&client, NULL, NULL);
    if (!sacct->is_headless)
        print_line(sacct, table, NULL, false, now_ms);
    if (!sacct->is_headless && !sacct->is_parsable)
        print_rule(table);
    json_array_foreach(jobs, index, job)
    {
        if (r < 0)
            break;
        print_line(sacct, table, job, false, now_ms);
        if (!sacct->is_job_alone)
            r = print_steps(sacct, table, &client, job, now_ms, err);
    }
    client_clear(&client);
    return r;
}

static int print_json(const struct sacct *sacct, const json_t *jobs, struct error *err)
{
    struct client client;
    json_t *list = json_array(), *job = NULL;
    size_t index = 0;
    int64_t now_ms = clock_wall_ms();
    int r = 0;
    client_init(&client, NULL, NULL);
    json_array_foreach(jobs, index, job)
    {
        _cleanup_json_ json_t *steps = NULL;
        if (r == 0 && !sacct->is_job_alone)
            r = slurm_steps_get(&client, job, false, &steps, err);
        (void)json_array_append_new(list, slurm_json_account(job, steps, now_ms));
    }
    client_clear(&client);
    if (r == 0)
        slurm_json_print("jobs", list, true);
    else
        json_decref(list);
    return r;
}

static int print(struct sacct *sacct, struct error *err)
{
    _cleanup_json_ json_t *jobs = NULL;
    struct slurm_table table = { .columns = columns };
    const char *format = sacct->format != NULL ? sacct->format
                         : sacct->is_brief     ? FORMAT_BRIEF
                         : sacct->is_long      ? FORMAT_LONG
                                               : FORMAT_USUAL;
    int r = read_format(&table, format, err);
    if (r == 0)
        r = load(sacct, &jobs, err);
    if (r == 0 && sacct->is_json)
        r = print_json(sacct, jobs, err);
    else if (r == 0)
        r = print_jobs(sacct, &table, jobs, err);
    slurm_table_clear(&table);
    return r;
}

static int print_fields(void)
{
    size_t count = 0;
    for (const struct slurm_column *column = columns; column->name != NULL; column++, count++)
        (void)printf("%-18s%s", column->name, count % 4 == 3 ? "\n" : " ");
    (void)putchar('\n');
    return 0;
}

int slurm_run_sacct(const struct slurm_program *program, int argc, char **argv)
{
    struct sacct sacct = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &sacct };
    struct error err = { 0 };
    int first = 0;
    if (slurm_options_answer(program, argc, argv))
        return 0;
    int r = slurm_options_from_environment(&reading, "SACCT", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r == 0 && sacct.is_help_format)
        return print_fields();
    if (r == 0)
        r = print(&sacct, &err);
    slurm_ids_clear(&sacct.ids);
    return r < 0 ? slurm_fail(program, &err) : 0;
}
