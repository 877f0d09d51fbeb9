/* SPDX-License-Identifier: MIT */
/*
 * Commands for which mgpu has little information: sshare (there is one account), sprio, sdiag, sstat. sattach
 * follows the output, and sbcast copies a file to the nodes. Their output is correct but short.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/programs.h"
#include "cli/submit/slurm_moment.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/report.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/steps.h"
#include "compat/slurm/table.h"

#define ACCOUNT "default"

struct others {
    const char *format, *jobs, *users, *accounts, *partitions, *sort;
    bool is_headless, is_parsable, has_last_delimiter, is_all, is_users_alone, is_help_format, is_forced,
        is_preserving;
};

/* --- options --- */

static int set_parsable(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct others *others = target;
    others->is_parsable = others->has_last_delimiter = true;
    return 0;
}

#define TEXT(member) SLURM_TEXT_OF(struct others, member)
#define FLAG(member) SLURM_FLAG_OF(struct others, member)

const struct slurm_option slurm_sshare_options[] = {
    SLURM_ROW(SLURM_SSHARE, "accounts", 'A', "list", TEXT(accounts), NULL, "of these accounts"),
    SLURM_ROW(SLURM_SSHARE, "all", 'a', NULL, FLAG(is_all), NULL, "of all users"),
    SLURM_ROW(SLURM_SSHARE, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_ROW(SLURM_SSHARE, "format", 'o', "fields", TEXT(format), NULL, "fields, each with %width"),
    SLURM_ROW(
        SLURM_SSHARE, "helpformat", 'e', NULL, FLAG(is_help_format), NULL, "print the names of all fields"),
    SLURM_NO_EFFECT(SLURM_SSHARE, "long", 'l', NULL, NULL, "more fields"),
    SLURM_ROW(SLURM_SSHARE, "noheader", 'n', NULL, FLAG(is_headless), NULL, "no header"),
    SLURM_ROW(SLURM_SSHARE, "parsable", 'p', NULL, set_parsable, NULL, "fields, each followed by a |"),
    SLURM_ROW(SLURM_SSHARE, "parsable2", 'P', NULL, FLAG(is_parsable), NULL, "fields separated by a |"),
    SLURM_NO_EFFECT(SLURM_SSHARE, "partition", 'm', NULL, NULL, "shares of each partition"),
    SLURM_ROW(SLURM_SSHARE, "users", 'u', "list", TEXT(users), NULL, "of these users (you)"),
    SLURM_ROW(SLURM_SSHARE, "Users", 'U', NULL, FLAG(is_users_alone), NULL, "users, and not their account"),
    SLURM_NO_EFFECT(SLURM_SSHARE, "verbose", 'v', NULL, NULL, "display more information"),
    { 0 },
};

const struct slurm_option slurm_sprio_options[] = {
    SLURM_ROW(SLURM_SPRIO, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "federation", 0, NULL, "FEDERATION", "jobs of the federation"),
    SLURM_ROW(SLURM_SPRIO, "format", 'o', "format", TEXT(format), NULL,
        "letters, as in '%.15i %Y'; %P is the place in the queue"),
    SLURM_ROW(SLURM_SPRIO, "jobs", 'j', "list", TEXT(jobs), NULL, "these jobs"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "local", 0, NULL, "LOCAL", "jobs of this cluster"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "long", 'l', NULL, NULL, "more columns"),
    SLURM_ROW(SLURM_SPRIO, "noheader", 'h', NULL, FLAG(is_headless), NULL, "no header"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "norm", 'n', NULL, NULL, "factors from 0 to 1"),
    SLURM_ROW(SLURM_SPRIO, "partition", 'p', "list", TEXT(partitions), NULL, "jobs of these partitions"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "sibling", 0, NULL, "SIBLING", "siblings of a federation"),
    SLURM_ROW(
        SLURM_SPRIO, "sort", 'S', "letters", TEXT(sort), NULL, "order: by letters of -o, '-' for descending"),
    SLURM_ROW(SLURM_SPRIO, "user", 'u', "list", TEXT(users), NULL, "jobs of these users"),
    SLURM_ROW(SLURM_SPRIO, "users", 0, "list", TEXT(users), NULL, "jobs of these users"),
    SLURM_NO_EFFECT(SLURM_SPRIO, "verbose", 'v', NULL, NULL, "increase verbosity"),
    SLURM_REFUSE(
        SLURM_SPRIO, "weights", 'w', NULL, "a place in the queue is not a sum of weights: see mgpu why"),
    { 0 },
};

const struct slurm_option slurm_sdiag_options[] = {
    SLURM_NO_EFFECT(SLURM_SDIAG, "all", 'a', NULL, NULL, "all counts"),
    SLURM_ROW(SLURM_SDIAG, "cluster", 'M', "name", slurm_set_clusters, NULL, "cluster: mgpu or all"),
    SLURM_ROW(SLURM_SDIAG, "clusters", 0, "name", slurm_set_clusters, NULL, "the same"),
    SLURM_REFUSE(SLURM_SDIAG, "reset", 'r', NULL, "the counts are those of the current jobs"),
    SLURM_NO_EFFECT(SLURM_SDIAG, "sort-by-id", 'i', NULL, NULL, "order of messages"),
    SLURM_NO_EFFECT(SLURM_SDIAG, "sort-by-time", 't', NULL, NULL, "order of messages"),
    SLURM_NO_EFFECT(SLURM_SDIAG, "sort-by-time2", 'T', NULL, NULL, "order of messages"),
    { 0 },
};

const struct slurm_option slurm_sstat_options[] = {
    SLURM_ROW(
        SLURM_SSTAT, "allsteps", 'a', NULL, FLAG(is_all), NULL, "all steps of the job, not the first alone"),
    SLURM_ROW(SLURM_SSTAT, "fields", 0, "fields", TEXT(format), NULL, "the same as --format"),
    SLURM_ROW(SLURM_SSTAT, "format", 'o', "fields", TEXT(format), NULL, "fields, each with %width"),
    SLURM_ROW(
        SLURM_SSTAT, "helpformat", 'e', NULL, FLAG(is_help_format), NULL, "print the names of all fields"),
    SLURM_ROW(SLURM_SSTAT, "jobs", 'j', "list", TEXT(jobs), NULL, "these jobs or steps"),
    SLURM_NO_EFFECT(SLURM_SSTAT, "noconvert", 0, NULL, NULL, "sizes as they are stored"),
    SLURM_ROW(SLURM_SSTAT, "noheader", 'n', NULL, FLAG(is_headless), NULL, "no header"),
    SLURM_ROW(SLURM_SSTAT, "parsable", 'p', NULL, set_parsable, NULL, "fields, each followed by a |"),
    SLURM_ROW(SLURM_SSTAT, "parsable2", 'P', NULL, FLAG(is_parsable), NULL, "fields separated by a |"),
    SLURM_REFUSE(SLURM_SSTAT, "pidformat", 'i', NULL, "processes are not listed"),
    SLURM_NO_EFFECT(SLURM_SSTAT, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

const struct slurm_option slurm_sattach_options[] = {
    SLURM_REFUSE(SLURM_SATTACH, "error-filter", 0, "task", "the output of the whole job is followed"),
    SLURM_REFUSE(SLURM_SATTACH, "input-filter", 0, "task", "the output alone is followed"),
    SLURM_REFUSE(SLURM_SATTACH, "label", 'l', NULL, "srun --label writes the numbers of tasks"),
    SLURM_REFUSE(SLURM_SATTACH, "layout", 0, NULL, "scontrol show step prints it"),
    SLURM_REFUSE(SLURM_SATTACH, "output-filter", 0, "task", "the output of the whole job is followed"),
    SLURM_REFUSE(SLURM_SATTACH, "pty", 0, NULL, "mgpu attach connects to a terminal"),
    SLURM_NO_EFFECT(SLURM_SATTACH, "quiet", 'Q', NULL, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_SATTACH, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

const struct slurm_option slurm_sbcast_options[] = {
    SLURM_NO_EFFECT(SLURM_SBCAST, "compress", 'C', "[kind]", "COMPRESS", "compress what is copied"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "exclude", 0, "list", "EXCLUDE", "libraries that are left out"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "fanout", 'F', "n", "FANOUT", "how many nodes are written at once"),
    SLURM_ROW(SLURM_SBCAST, "force", 'f', NULL, FLAG(is_forced), "FORCE", "replace an existing file"),
    SLURM_ROW(SLURM_SBCAST, "jobid", 'j', "id", TEXT(jobs), NULL, "job to whose nodes the file is copied"),
    SLURM_ROW(
        SLURM_SBCAST, "preserve", 'p', NULL, FLAG(is_preserving), "PRESERVE", "keep the time of the file"),
    SLURM_REFUSE(SLURM_SBCAST, "send-libs", 0, "[yes|no]", "libraries are not copied"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "size", 's', "size", "SIZE", "size of a block"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "timeout", 't', "seconds", "TIMEOUT", "how long a message may take"),
    SLURM_NO_EFFECT(SLURM_SBCAST, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

/* --- the commands --- */

static bool is_user_wanted(const struct others *others, const char *user)
{
    const char *own = slurm_own_name();
    return others->is_all ||
           (others->users != NULL ? slurm_list_has(others->users, user) : strcmp(user, own) == 0);
}

static const struct report_field share_fields[] = { { "Account", NULL, -20 }, { "Cluster", NULL, 10 },
    { "EffectvUsage", NULL, 13 }, { "FairShare", NULL, 10 }, { "NormShares", NULL, 11 },
    { "NormUsage", NULL, 11 }, { "RawShares", NULL, 10 }, { "RawUsage", NULL, 11 }, { "User", NULL, 10 },
    { 0 } };

/* Usage is in GPU seconds and as a fraction of that of all users; all users have equal shares. */
static void print_share(const struct report *report, const json_t *user, double all, size_t count)
{
    double used = field_number(user, "gpu_seconds", 0);
    const char *name = field_text(user, "user");
    _cleanup_free_ char *usage = xasprintf("%.0f", name != NULL ? used : all);
    _cleanup_free_ char *part = xasprintf("%.6f", all <= 0 ? 0.0 : name != NULL ? used / all : 1.0);
    _cleanup_free_ char *share = xasprintf("%.6f", name != NULL && count > 0 ? 1.0 / (double)count : 1.0);
    _cleanup_free_ char *factor =
        name != NULL ? xasprintf("%.6f", field_number(user, "factor", 0)) : xstrdup("");
    const char *const texts[] = { name != NULL ? " " ACCOUNT : ACCOUNT, "mgpu", part, factor, share, part,
        "1", usage, name != NULL ? name : "" };
    report_print_row(report, texts);
}

/* Prints the account, and of its users the caller, all, or those named. */
static int run_sshare(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    static const char usual[] = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare";
    struct report report = { .fields = share_fields,
        .is_headless = others->is_headless,
        .is_parsable = others->is_parsable,
        .has_last_delimiter = others->has_last_delimiter };
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    json_t *user = NULL;
    double all = 0;
    if (others->is_help_format) {
        report_print_names(share_fields);
        return 0;
    }
    int r = report_read(&report, others->format != NULL ? others->format : usual, err);
    if (r == 0)
        r = client_get(client, API_PATH "/users", &answer, err);
    if (r < 0)
        return r;
    const json_t *users = json_object_get(answer, "users");
    json_array_foreach(users, index, user) all += field_number(user, "gpu_seconds", 0);
    report_print_head(&report);
    if (others->accounts != NULL && !slurm_list_has(others->accounts, ACCOUNT))
        return 0;
    if (!others->is_users_alone)
        print_share(&report, NULL, all, json_array_size(users));
    json_array_foreach(users, index,
        user) if (field_text(user, "user") != NULL && is_user_wanted(others, field_text(user, "user")))
        print_share(&report, user, all, json_array_size(users));
    return 0;
}

static char *text_position(const json_t *job, int64_t now_ms)
{
    return xasprintf("%" PRId64, field_integer(job, "position", 0));
}

/* Letters of sprio -o. Here the position in the queue, %P, decides; there are no weighted factors. */
static const struct slurm_column priority_columns[] = {
    { 'i', "jobid", "JOBID", slurm_text_job_id, 0 },
    { 'r', "partition", "PARTITION", slurm_text_partition, 0 },
    { 'u', "user", "USER", slurm_text_user, 0 },
    { 'o', "account", "ACCOUNT", slurm_text_account, 0 },
    { 'n', "qosname", "QOSNAME", slurm_text_qos, 0 },
    { 'c', "cluster", "CLUSTER", slurm_text_cluster, 0 },
    { 'N', "nice", "NICE", slurm_text_nice, 0 },
    { 'Y', "priority", "PRIORITY", slurm_text_priority, 0 },
    { 'y', "prioritynorm", "PRIORITY", slurm_text_priority, 0 },
    { 'P', "position", "POSITION", text_position, 0 },
    { 0 },
};

/* Waiting jobs, in the order in which they are considered. */
static int run_sprio(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *jobs = NULL, *waiting = json_array();
    _cleanup_slurm_ids_ struct slurm_ids ids = { .refusal = "Invalid job id: " };
    _cleanup_(slurm_table_clear) struct slurm_table table = {
        .columns = priority_columns, .is_headless = others->is_headless, .sort = others->sort
    };
    size_t index = 0;
    json_t *job = NULL;
    const struct slurm_query query = { .ids = &ids, .users = others->users, .has_open_alone = true };
    int r = others->jobs != NULL ? slurm_ids_parse(others->jobs, &ids, err) : 0;
    if (r == 0)
        r = slurm_users_check(others->users, "Invalid user", err);
    if (r == 0)
        r = slurm_table_read_letters(
            &table, others->format != NULL ? others->format : "%.15i %.9r %.8u %.10Y %.10P", err);
    if (r == 0)
        r = slurm_jobs_get(client, &query, &jobs, err);
    json_array_foreach(jobs, index, job)
    {
        _cleanup_free_ char *partition = slurm_text_partition(job, 0);
        if (field_is(job, "state", "queued") &&
            (others->partitions == NULL || slurm_lists_meet(others->partitions, partition)))
            (void)json_array_append(waiting, job);
    }
    if (r == 0)
        slurm_table_print(&table, waiting);
    return r;
}

static int run_sdiag(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    struct slurm_query query = { .is_quick = true, .has_open_alone = true };
    _cleanup_json_ json_t *jobs = NULL;
    size_t index = 0;
    json_t *job = NULL;
    int64_t pending = 0, running = 0;
    int r = slurm_jobs_get(client, &query, &jobs, err);
    if (r < 0)
        return r;
    json_array_foreach(jobs, index, job)
    {
        pending += field_is(job, "state", "queued");
        running += field_is(job, "state", "running");
    }
    static const char stars[] = "*******************************************************";
    _cleanup_free_ char *now = slurm_time_text(clock_wall_ms(), "");
    (void)printf("%s\nsdiag output at %s (%" PRId64 ")\n%s\n\n", stars, now, clock_wall_ms() / 1000, stars);
    (void)printf("Jobs pending:   %" PRId64 "\nJobs running:   %" PRId64 "\n", pending, running);
    return 0;
}

/* Fields of sstat. */
static const struct {
    const char *name;
    slurm_text_fn *text;
} stat_fields[] = { { "JobID", slurm_text_job_id }, { "MaxRSS", slurm_text_max_rss },
    { "AveRSS", slurm_text_ave_rss }, { "AveCPU", slurm_text_ave_cpu }, { "NTasks", slurm_text_step_tasks },
    { "MaxRSSTask", slurm_text_max_rss_task }, { "MaxRSSNode", slurm_text_max_rss_node },
    { "Nodelist", slurm_text_account_nodes } };
enum { FIELDS = sizeof(stat_fields) / sizeof(stat_fields[0]) };

/* Prints a running step. */
static void print_stat(const struct others *others, const char *format, const json_t *step)
{
    struct report_value values[FIELDS + 1] = { 0 };
    char *texts[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        texts[i] = stat_fields[i].text(step, 0);
        values[i] = (struct report_value){ stat_fields[i].name, texts[i] };
    }
    report_print_values(format, values, others->is_parsable, others->has_last_delimiter);
    for (size_t i = 0; i < FIELDS; i++)
        free(texts[i]);
}

/* Prints the named step, the first one, or with --allsteps all steps of a running job. The batch script's
 * memory is that of the job, which includes the steps. */
static int stat_job(struct client *client, const struct others *others, const char *format,
    const struct slurm_id *id, struct error *err)
{
    _cleanup_json_ json_t *job = NULL, *steps = NULL;
    _cleanup_free_ char *path = slurm_id_path(id);
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    size_t index = 0;
    json_t *step = NULL;
    bool is_shown = false;
    int r = client_get(client, request, &job, err);
    if (r == 0)
        r = slurm_steps_get(client, job, true, &steps, err);
    json_array_foreach(steps, index, step)
    {
        double peak = 0;
        if (field_is(step, SLURM_STEP_WORD, "batch") &&
            field_measured(json_object_get(job, "usage"), "memory_peak_bytes", &peak))
            (void)json_object_set_new(step, "max_rss_bytes", json_integer((json_int_t)peak));
        bool is_fitting = slurm_id_fits_step(id, step) && (id->step != NULL || others->is_all || !is_shown);
        if (is_fitting)
            print_stat(others, format, step);
        is_shown |= is_fitting && !field_is(step, SLURM_STEP_WORD, "batch");
    }
    return r;
}

static int run_sstat(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    const char *format = others->format != NULL ? others->format : "JobID,MaxRSS,AveRSS,AveCPU,NTasks";
    _cleanup_slurm_ids_ struct slurm_ids ids = { .refusal = "Bad job/step specified: ",
        .words = SLURM_FATAL };
    for (size_t i = 0; others->is_help_format && i < FIELDS; i++)
        (void)printf("%s%s", stat_fields[i].name, i + 1 < FIELDS ? " " : "\n");
    if (others->is_help_format)
        return 0;
    int r = others->jobs == NULL && argc == 0
                ? error_set(err, -EINVAL, "You didn't give me any jobs to stat.")
                : slurm_ids_parse(others->jobs != NULL ? others->jobs : argv[0], &ids, err);
    if (r == 0 && !others->is_headless)
        report_print_values(format, NULL, others->is_parsable, others->has_last_delimiter);
    for (size_t i = 0; r == 0 && i < ids.count; i++) {
        r = stat_job(client, others, format, &ids.items[i], err);
        if (r == -ENOENT) { // Slurm continues, and its status is 0
            _cleanup_free_ char *path = slurm_id_path(&ids.items[i]);
            (void)fflush(stdout);
            (void)fprintf(stderr, "sstat: error: couldn't get steps for job %s\n", path);
            r = 0;
        }
    }
    return r;
}

static int replace_by(const struct strings *words, struct error *err)
{
    (void)execvp(words->items[0], words->items);
    return error_set_errno(err, -errno, "cannot start %.200s", words->items[0]);
}

static int run_sattach(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *job = NULL;
    int r = argc == 1 ? slurm_ids_parse(argv[0], &ids, NULL) : -E2BIG;
    if (r < 0 || ids.items[0].step == NULL) {
        (void)puts("Usage: sattach [options] <jobid.stepid>");
        (void)fflush(stdout);
        return error_set(err, -EINVAL, "%s",
            r == -E2BIG ? "too many parameters" : "Failed to parse stepid from command line options");
    }
    _cleanup_free_ char *path = slurm_id_path(&ids.items[0]);
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    r = client_get(client, request, &job, err);
    if (r == -ENOENT)
        return error_set(err, r, "Could not get job step info: Invalid job id specified");
    if (r < 0)
        return r;
    strings_take(&words, program_find("mgpu"));
    strings_add(&words, "logs");
    strings_add(&words, "-f");
    strings_add(&words, path);
    return replace_by(&words, err);
}

/* Runs on each node; the file appears under its name when it is complete. */
static const char copy_script[] =
    "[ -n \"$3\" ] || [ ! -e \"$1\" ] || { echo \"sbcast: error: $1: File exists\" >&2; exit 1; }\n"
    "cat > \"$1.$$\" && chmod \"$2\" \"$1.$$\" && { [ -z \"$4\" ] || touch -d \"@$4\" \"$1.$$\"; } && mv -f "
    "\"$1.$$\" "
    "\"$1\" || { rm -f \"$1.$$\"; exit 1; }\n";

/* Runs a step with a task on each node of the job; all tasks read the file from standard input. */
static int run_sbcast(
    struct client *client, const struct others *others, int argc, char **argv, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    const char *nodes = getenv("SLURM_NNODES"), *job = others->jobs;
    struct stat source;
    if (argc != 2) {
        (void)fprintf(stderr, "Need two file names, have %d names\n", argc);
        return error_mark(
            err, SLURM_BARE, error_set(err, -EINVAL, "Try \"sbcast --help\" for more information"));
    }
    if (nodes == NULL && job == NULL)
        return error_set(err, -EINVAL,
            "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.");
    _cleanup_close_ int fd = open(argv[0], O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &source) < 0)
        return error_set_errno(err, -errno, "Can't open `%.200s`", argv[0]);
    if (!S_ISREG(source.st_mode))
        return error_set(err, -EINVAL, "`%.200s` is not a file", argv[0]);
    if (dup2(fd, STDIN_FILENO) < 0)
        return error_set_errno(err, -errno, "cannot read %.200s", argv[0]);
    const char *last = argv[1] + strlen(argv[1]) - (argv[1][0] != '\0'), *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    strings_take(&words, program_find("mgpu-slurm"));
    strings_add(&words, "srun");
    strings_add(&words, "--quiet");
    strings_add(&words, "--overlap");
    strings_add(&words, "--ntasks-per-node=1");
    if (job != NULL)
        strings_take(&words, xasprintf("--jobid=%.*s", (int)strcspn(job, "."), job));
    strings_add(&words, "/bin/sh");
    strings_add(&words, "-c");
    strings_add(&words, copy_script);
    strings_add(&words, "sbcast");
    strings_take(&words, *last == '/' ? xasprintf("%s%s", argv[1], name) : xstrdup(argv[1]));
    strings_take(&words, xasprintf("%04o", source.st_mode & 07777));
    strings_add(&words, others->is_forced ? "force" : "");
    strings_take(&words, others->is_preserving ? xasprintf("%lld", (long long)source.st_mtime) : xstrdup(""));
    return replace_by(&words, err);
}

static const struct {
    const char *name;
    int (*run)(struct client *client, const struct others *others, int argc, char **argv, struct error *err);
} commands[] = {
    { "sshare", run_sshare },
    { "sprio", run_sprio },
    { "sdiag", run_sdiag },
    { "sstat", run_sstat },
    { "sattach", run_sattach },
    { "sbcast", run_sbcast },
};

int slurm_run_other(const struct slurm_program *program, int argc, char **argv)
{
    struct others others = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &others };
    struct error err = { 0 };
    _cleanup_(client_clear) struct client client;
    int first = 0;
    _cleanup_free_ char *prefix = xstrdup(program->name);
    for (char *p = prefix; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    int r = slurm_options_from_environment(&reading, prefix, &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    client_init(&client, NULL, NULL);
    for (size_t i = 0; r == 0 && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, program->name) == 0)
            r = commands[i].run(&client, &others, argc - first, argv + first, &err);
    return r < 0 ? slurm_fail(program, &err) : r;
}
