/* SPDX-License-Identifier: MIT */
/*
 * sacct: jobs of the store, which has them from their submission on. A job that has started also has a line
 * for its batch script.
 */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/slurm_moment.h"
#include "cli/term/when.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/json_form.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/sacct_choice.h"
#include "compat/slurm/sacct_columns.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/steps.h"
#include "compat/slurm/table.h"
#include "job/slurm.h"

#define FORMAT_USUAL "jobid,jobname,partition,account,alloccpus,state,exitcode"
#define VALUE_MAX    4096U // maximum length of a variable in the output
#define FRAME_WIDTH  80
#define SECOND_MS    1000
#define FORMAT_BRIEF "jobid,state,exitcode"
#define FORMAT_LONG                                                                                          \
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,"    \
    "maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,"     \
    "ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,"   \
    "consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,"  \
    "maxdiskwritetask,avediskwrite,reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,"      \
    "tresusageinmaxtask,tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,"                \
    "tresusageoutmax,"                                                                                       \
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"

struct sacct {
    const char *format, *users, *name, *start, *end, *delimiter;
    struct sacct_choice choice;
    struct slurm_ids ids;
    char unit; // unit of sizes; 0: unchanged
    bool is_headless, is_parsable, has_last_delimiter, is_job_alone, is_all_users, is_brief, is_long, is_json;
    bool is_help_format, is_script, is_environment, has_attempts;
};

static int set_ids(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct slurm_ids *ids = &((struct sacct *)target)->ids;
    ids->refusal = "Bad job/step specified: ";
    ids->words = SLURM_FATAL;
    return slurm_ids_parse(value, ids, err);
}

static int set_parsable(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sacct *sacct = target;
    sacct->is_parsable = sacct->has_last_delimiter = true;
    return 0;
}

static int set_unit(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    if (value[0] == '\0' || strchr("KMGTP", toupper((unsigned char)value[0])) == NULL) {
        _cleanup_free_ char *first = xstrndup(value, 1), *shown = text_escape(first, 1);
        (void)fprintf(stderr, "sacct: error: Invalid unit type '%s'. Possible options are 'KMGTP'\n", shown);
        return error_mark(err, SLURM_FATAL, error_set(err, -EINVAL, "Invalid unit type"));
    }
    ((struct sacct *)target)->unit = (char)toupper((unsigned char)value[0]);
    return 0;
}

#define TEXT(member) SLURM_TEXT_OF(struct sacct, member)
#define FLAG(member) SLURM_FLAG_OF(struct sacct, member)

const struct slurm_option slurm_sacct_options[] = {
    SLURM_ROW(SLURM_SACCT, "accounts", 'A', "list", TEXT(choice.accounts), NULL, "jobs of these accounts"),
    SLURM_ROW(SLURM_SACCT, "allocations", 'X', NULL, FLAG(is_job_alone), NULL, "no lines for steps"),
    SLURM_NO_EFFECT(SLURM_SACCT, "allclusters", 'L', NULL, NULL, "jobs of all clusters"),
    SLURM_ROW(SLURM_SACCT, "allusers", 'a', NULL, FLAG(is_all_users), NULL, "jobs of all users"),
    SLURM_NO_EFFECT(SLURM_SACCT, "array", 0, NULL, NULL, "one line for each element of an array"),
    SLURM_REFUSE(SLURM_SACCT, "associations", 'x', "list", "there are no associations"),
    SLURM_ROW(SLURM_SACCT, "batch-script", 'B', NULL, FLAG(is_script), NULL, "print the script of each job"),
    SLURM_ROW(SLURM_SACCT, "brief", 'b', NULL, FLAG(is_brief), NULL, "JobID, State and ExitCode"),
    SLURM_ROW(SLURM_SACCT, "clusters", 'M', "list", TEXT(choice.clusters), NULL, "clusters: mgpu or all"),
    SLURM_REFUSE(SLURM_SACCT, "completion", 'c', NULL, "there is no log of completions beside the jobs"),
    SLURM_ROW(SLURM_SACCT, "constraints", 'C', "list", TEXT(choice.constraints), NULL,
        "jobs with these constraints"),
    SLURM_ROW(
        SLURM_SACCT, "delimiter", 0, "text", TEXT(delimiter), NULL, "separator of fields with -p and -P"),
    SLURM_ROW(SLURM_SACCT, "duplicates", 'D', NULL, FLAG(has_attempts), NULL,
        "a line for each time that a job ran before it was requeued"),
    SLURM_ROW(SLURM_SACCT, "endtime", 'E', "time", TEXT(end), NULL, "jobs that existed before this time"),
    SLURM_ROW(
        SLURM_SACCT, "env-vars", 0, NULL, FLAG(is_environment), NULL, "print the variables of each job"),
    SLURM_NO_EFFECT(SLURM_SACCT, "federation", 0, NULL, "FEDERATION", "jobs of the federation"),
    SLURM_REFUSE(SLURM_SACCT, "file", 'f', "file", "there is no log of completions beside the jobs"),
    SLURM_REFUSE(
        SLURM_SACCT, "flags", 'F', "list", "which part of the scheduler started a job is not recorded"),
    SLURM_ROW(SLURM_SACCT, "fields", 0, "fields", TEXT(format), NULL, "the same as --format"),
    SLURM_ROW(
        SLURM_SACCT, "help-fields", 0, NULL, FLAG(is_help_format), NULL, "print the names of all fields"),
    SLURM_ROW(SLURM_SACCT, "format", 'o', "fields", TEXT(format), "FORMAT", "fields, each with %width"),
    SLURM_ROW(SLURM_SACCT, "gid", 'g', "list", TEXT(choice.groups), NULL, "jobs of these groups"),
    SLURM_ROW(SLURM_SACCT, "group", 0, "list", TEXT(choice.groups), NULL, "the same"),
    SLURM_ROW(
        SLURM_SACCT, "helpformat", 'e', NULL, FLAG(is_help_format), NULL, "print the names of all fields"),
    SLURM_ROW(SLURM_SACCT, "jobs", 'j', "list", set_ids, NULL, "these jobs"),
    SLURM_ROW(SLURM_SACCT, "json", 0, NULL, FLAG(is_json), NULL, "print JSON, as openapi v0.0.38 of Slurm"),
    SLURM_NO_EFFECT(SLURM_SACCT, "local", 0, NULL, "LOCAL", "jobs of this cluster"),
    SLURM_ROW(SLURM_SACCT, "long", 'l', NULL, FLAG(is_long), NULL, "more fields"),
    SLURM_ROW(SLURM_SACCT, "name", 0, "list", TEXT(name), NULL, "jobs with these names"),
    SLURM_ROW(
        SLURM_SACCT, "ncpus", 'I', "n[-m]", TEXT(choice.cpu_range), NULL, "jobs with this number of CPUs"),
    SLURM_ROW(
        SLURM_SACCT, "nnodes", 'i', "n[-m]", TEXT(choice.node_range), NULL, "jobs on this number of nodes"),
    SLURM_NO_EFFECT(SLURM_SACCT, "noconvert", 0, NULL, NULL, "sizes as they are stored"),
    SLURM_ROW(SLURM_SACCT, "nodelist", 'N', "list", TEXT(choice.nodes), NULL, "jobs on these nodes"),
    SLURM_ROW(SLURM_SACCT, "noheader", 'n', NULL, FLAG(is_headless), NULL, "no header"),
    SLURM_ROW(SLURM_SACCT, "parsable", 'p', NULL, set_parsable, NULL, "fields, each followed by a |"),
    SLURM_ROW(SLURM_SACCT, "parsable2", 'P', NULL, FLAG(is_parsable), NULL, "fields separated by a |"),
    SLURM_ROW(
        SLURM_SACCT, "partition", 'r', "list", TEXT(choice.partitions), NULL, "jobs of these partitions"),
    SLURM_ROW(SLURM_SACCT, "qos", 'q', "list", TEXT(choice.qos), NULL, "jobs of these QOS"),
    SLURM_ROW(SLURM_SACCT, "reason", 'R', "list", TEXT(choice.reasons), NULL, "jobs with these reasons"),
    SLURM_ROW(SLURM_SACCT, "starttime", 'S', "time", TEXT(start), NULL,
        "jobs that existed after this time (midnight)"),
    SLURM_ROW(SLURM_SACCT, "state", 's', "list", TEXT(choice.states), NULL, "jobs in these states"),
    SLURM_ROW(SLURM_SACCT, "timelimit-max", 'K', "time", TEXT(choice.most_limit), NULL,
        "jobs with at most this time limit"),
    SLURM_ROW(SLURM_SACCT, "timelimit-min", 'k', "time", TEXT(choice.least_limit), NULL,
        "jobs with this time limit, or with -K at least"),
    SLURM_REFUSE(SLURM_SACCT, "truncate", 'T', NULL, "times are printed as they were"),
    SLURM_ROW(SLURM_SACCT, "units", 0, "K|M|G|T|P", set_unit, NULL, "unit of sizes"),
    SLURM_NO_EFFECT(SLURM_SACCT, "use-local-uid", 0, NULL, NULL, "names of users from this machine"),
    SLURM_ROW(SLURM_SACCT, "uid", 'u', "list", TEXT(users), NULL, "jobs of these users (you)"),
    SLURM_ROW(SLURM_SACCT, "user", 0, "list", TEXT(users), NULL, "jobs of these users (you)"),
    SLURM_NO_EFFECT(SLURM_SACCT, "verbose", 'v', NULL, NULL, "increase verbosity"),
    SLURM_ROW(SLURM_SACCT, "wckeys", 'W', "list", TEXT(choice.keys), NULL, "jobs with these keys"),
    SLURM_NO_EFFECT(
        SLURM_SACCT, "whole-hetjob", 0, "[yes|no]", NULL, "all components of a heterogeneous job"),
    SLURM_REFUSE(SLURM_SACCT, "yaml", 0, NULL, SLURM_NO_YAML),
    { 0 },
};

/* --- which --- */

/* In Slurm's accounting a job is running from the time at which it got its resources until its end: programs
 * that poll sacct take CONFIGURING for an unknown end. */
static void normalize_state(json_t *job)
{
    if (field_is(job, "state", "starting") || field_is(job, "state", "stopping"))
        (void)json_object_set_new(job, "state", json_string("running"));
}

/* Defaults of -S and -E: for named jobs all time, else today; with states the present time, or that of -S.
 * The end belongs to the window if it is now or equals the start. -EINVAL for a window that ends before it
 * begins, which would be an empty list without any message. */
static int resolve_window(
    const struct sacct *sacct, int64_t now_ms, struct sacct_choice *choice, struct error *err)
{
    bool has_states = choice->wanted_count > 0;
    if (sacct->start == NULL && sacct->ids.count == 0)
        choice->start_ms = has_states ? now_ms : slurm_midnight_ms();
    if (sacct->end == NULL)
        choice->end_ms = has_states && sacct->start != NULL ? choice->start_ms : now_ms;
    if (sacct->end == NULL && choice->start_ms > now_ms)
        choice->end_ms = now_ms;
    if (choice->start_ms > choice->end_ms) {
        _cleanup_free_ char *start = slurm_time_text(choice->start_ms, ""),
                            *end = slurm_time_text(choice->end_ms, "");
        return error_set(err, -EINVAL, "Start time (%s) requested is after end time (%s).", start, end);
    }
    if (choice->end_ms == choice->start_ms || choice->end_ms / SECOND_MS == now_ms / SECOND_MS)
        choice->end_ms += SECOND_MS;
    return 0;
}

static int load(struct sacct *sacct, json_t **ret, struct error *err)
{
    struct client client;
    _cleanup_json_ json_t *found = NULL, *jobs = json_array();
    size_t index = 0;
    json_t *job = NULL;
    const int64_t now_ms = clock_wall_ms();
    bool is_everybody = sacct->is_all_users || sacct->ids.count > 0;
    const struct slurm_query query = { .ids = &sacct->ids,
        .users = sacct->users != NULL ? sacct->users
                 : is_everybody       ? NULL
                                      : slurm_own_name(),
        .names = sacct->name,
        .is_quick = sacct->choice.states == NULL, // reasons show which jobs could have started
        .has_ended = true };
    int r = sacct_choice_check(&sacct->choice, err);
    if (r == 0)
        r = slurm_users_check(sacct->users, "Invalid user id", err);
    if (r < 0)
        return r;
    if (sacct->start != NULL)
        r = slurm_parse_moment(
            "--starttime", sacct->start, SLURM_PAST, now_ms, &when_local, &sacct->choice.start_ms, err);
    if (r == 0 && sacct->end != NULL)
        r = slurm_parse_moment(
            "--endtime", sacct->end, SLURM_PAST, now_ms, &when_local, &sacct->choice.end_ms, err);
    if (r == 0)
        r = resolve_window(sacct, now_ms, &sacct->choice, err);
    if (r < 0)
        return r;
    client_init(&client, NULL, NULL);
    r = slurm_jobs_get(&client, &query, &found, err);
    client_clear(&client);
    if (r < 0)
        return r;
    json_array_foreach(found, index, job)
    {
        normalize_state(job);
        if (sacct_choice_has(&sacct->choice, job))
            (void)json_array_append(jobs, job);
    }
    *ret = take_ptr(jobs);
    return 0;
}

/* --- print --- */

/* The first field that begins with the word; the word itself if there is none. */
static const char *whole_name(const char *word)
{
    const struct slurm_column *found = NULL;
    for (const struct slurm_column *column = slurm_sacct_columns; column->name != NULL; column++) {
        if (strcasecmp(column->name, word) == 0)
            return column->name;
        if (found == NULL && strncasecmp(column->name, word, strlen(word)) == 0)
            found = column;
    }
    return found != NULL ? found->name : word;
}

/* "JobID,State%20": fields and their widths; names may be abbreviated, as in "job,elap,stat". */
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
        buffer_printf(&name, "%s:0", whole_name(word));
        if (slurm_table_read_names(table, buffer_text(&name), NULL) < 0)
            return error_set(err, -EINVAL, "Invalid field requested: \"%.60s\"", word);
        struct slurm_cell *cell = &table->cells[table->count - 1];
        long width = percent != NULL ? strtol(percent, NULL, 10) : 0;
        /* There, a positive width means right-aligned, unlike in squeue. */
        cell->width = percent != NULL && width != 0 ? -(int)width : cell->column->width;
    }
    return 0;
}

/* The text of a field in a step's line. */
static char *step_text(const struct slurm_column *column, const json_t *step, int64_t now_ms)
{
    if (strcmp(column->name, "Partition") == 0 || strcmp(column->name, "User") == 0)
        return xstrdup("");
    return column->text(step, now_ms);
}

/* "2048K" as "2M" or "0.50M", for fields that are sizes. */
static char *in_unit(char unit, char *text)
{
    static const char units[] = "KMGTP";
    _cleanup_free_ char *owned = text;
    char *end = NULL;
    double value = strtod(text, &end);
    const char *from = end != text && end[0] != '\0' && end[1] == '\0' ? strchr(units, end[0]) : NULL;
    if (unit == 0 || from == NULL)
        return take_ptr(owned);
    for (ptrdiff_t i = from - units, to = strchr(units, unit) - units; i != to; i += i < to ? 1 : -1)
        value = i < to ? value / 1024 : value * 1024;
    bool is_whole = value == (double)(int64_t)value;
    return is_whole ? xasprintf("%.0f%c", value, unit) : xasprintf("%.2f%c", value, unit);
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
        text = job == NULL ? take_ptr(text) : in_unit(sacct->unit, take_ptr(text));
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

/* "12.0" means only that step, "12" the job with all its steps. */
static bool is_step_wanted(const struct sacct *sacct, const json_t *step)
{
    bool is_listed = sacct->ids.count == 0;
    for (size_t i = 0; !is_listed && i < sacct->ids.count; i++)
        is_listed = slurm_id_fits_step(&sacct->ids.items[i], step);
    return is_listed;
}

static bool is_job_wanted(const struct sacct *sacct, const json_t *job)
{
    bool is_listed = sacct->ids.count == 0;
    for (size_t i = 0; !is_listed && i < sacct->ids.count; i++)
        is_listed = sacct->ids.items[i].step == NULL && slurm_id_fits(&sacct->ids.items[i], job);
    return is_listed;
}

static int print_steps(const struct sacct *sacct, const struct slurm_table *table, struct client *client,
    const json_t *job, int64_t now_ms, struct error *err)
{
    _cleanup_json_ json_t *steps = NULL;
    size_t index = 0;
    json_t *step = NULL;
    int r = slurm_steps_get(client, job, false, &steps, err);
    json_array_foreach(steps, index, step) if (is_step_wanted(sacct, step))
        print_line(sacct, table, step, true, now_ms);
    return r;
}

static int print_attempts(const struct sacct *sacct, const struct slurm_table *table, struct client *client,
    const json_t *job, int64_t now_ms, struct error *err)
{
    _cleanup_json_ json_t *attempts = NULL;
    size_t index = 0;
    const json_t *attempt = NULL;
    int r = slurm_attempts_get(client, job, &attempts, err);
    json_array_foreach(attempts, index, attempt) print_line(sacct, table, attempt, false, now_ms);
    return r;
}

static int print_jobs(
    const struct sacct *sacct, const struct slurm_table *table, json_t *jobs, struct error *err)
{
    _cleanup_(client_clear) struct client client;
    size_t index = 0;
    json_t *job = NULL;
    int64_t now_ms = clock_wall_ms();
    client_init(&client, NULL, NULL);
    bool has_details = slurm_table_has(table, "WorkDir") || slurm_table_has(table, "Suspended");
    int r = has_details ? slurm_details_add(&client, jobs, err) : 0;
    if (!sacct->is_headless)
        print_line(sacct, table, NULL, false, now_ms);
    if (!sacct->is_headless && !sacct->is_parsable)
        print_rule(table);
    json_array_foreach(jobs, index, job)
    {
        if (r < 0)
            break;
        if (is_job_wanted(sacct, job) && sacct->has_attempts)
            r = print_attempts(sacct, table, &client, job, now_ms, err);
        bool is_listed = is_job_wanted(sacct, job);
        if (is_listed)
            slurm_steps_settle_end(&client, job);
        if (is_listed && slurm_table_has(table, "DerivedExitCode"))
            slurm_steps_derive(&client, job);
        if (is_listed)
            print_line(sacct, table, job, false, now_ms);
        if (r == 0 && !sacct->is_job_alone)
            r = print_steps(sacct, table, &client, job, now_ms, err);
    }
    return r;
}

static void print_frame(const char *title, const json_t *job)
{
    _cleanup_free_ char *id = slurm_text_job_id(job, 0);
    (void)printf("%s %s\n", title, id);
    for (int i = 0; i < FRAME_WIDTH; i++)
        (void)putchar('-');
    (void)putchar('\n');
}

/* --batch-script and --env-vars: data submitted with a job, which only its owner may read. */
static int print_submission(const struct sacct *sacct, const json_t *jobs, struct error *err)
{
    _cleanup_(client_clear) struct client client;
    size_t index = 0;
    json_t *job = NULL, *value = NULL;
    const char *name = NULL;
    int r = 0;
    client_init(&client, NULL, NULL);
    json_array_foreach(jobs, index, job)
    {
        _cleanup_json_ json_t *whole = NULL;
        _cleanup_free_ char *path =
            xasprintf(API_PATH "/jobs/%lld?script=1", (long long)field_integer(job, "id", 0));
        if (r == 0)
            r = client_get(&client, path, &whole, err);
        const char *script = field_text(whole, "script");
        if (r == 0 && sacct->is_script) {
            print_frame("Batch Script for", job);
            (void)puts(script != NULL ? script : "NONE");
        }
        if (r < 0 || !sacct->is_environment)
            continue;
        print_frame("Environment used for", job);
        json_object_foreach(json_object_get(whole, "env"), name, value)
        {
            _cleanup_free_ char *shown = text_escape(json_string_value(value), VALUE_MAX);
            (void)printf("%s=%s\n", name, shown);
        }
    }
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
    _cleanup_(slurm_table_clear) struct slurm_table table = { .columns = slurm_sacct_columns };
    const char *format = sacct->format != NULL ? sacct->format
                         : sacct->is_brief     ? FORMAT_BRIEF
                         : sacct->is_long      ? FORMAT_LONG
                                               : FORMAT_USUAL;
    int r = read_format(&table, format, err);
    if (r == 0)
        r = load(sacct, &jobs, err);
    if (r == 0 && (sacct->is_script || sacct->is_environment))
        r = print_submission(sacct, jobs, err);
    else if (r == 0 && sacct->is_json)
        r = print_json(sacct, jobs, err);
    else if (r == 0)
        r = print_jobs(sacct, &table, jobs, err);
    return r;
}

/* Names of other versions that are also accepted here. */
static bool is_of_another(const char *name)
{
    return strcmp(name, "FailedNode") == 0 || strncmp(name, "Planned", 7) == 0;
}

static int print_fields(void)
{
    size_t count = 0;
    for (const struct slurm_column *column = slurm_sacct_columns; column->name != NULL; column++)
        if (!is_of_another(column->name))
            (void)printf("%-19s%s", column->name, count++ % 4 == 3 ? "\n" : " ");
    if (count % 4 != 0)
        (void)putchar('\n');
    return 0;
}

int slurm_run_sacct(const struct slurm_program *program, int argc, char **argv)
{
    struct sacct sacct = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &sacct };
    struct error err = { 0 };
    int first = 0;
    int r = slurm_options_from_environment(&reading, "SACCT", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    r = r == 0 ? slurm_check_operands(argc, argv, first, &err) : r;
    if (r == 0 && sacct.is_help_format)
        r = print_fields();
    else if (r == 0)
        r = print(&sacct, &err);
    slurm_ids_clear(&sacct.ids);
    return r < 0 ? slurm_fail(program, &err) : 0;
}
