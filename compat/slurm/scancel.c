/* SPDX-License-Identifier: MIT */
/* scancel: an unknown job is not an error, as in Slurm. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/signals.h"
#include "cli/api/leaving_signals.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/state.h"

struct scancel {
    struct slurm_ids ids;
    const char *users, *name, *states, *signal, *partition, *account, *nodes, *qos, *wckey, *reservation;
    bool is_mine, is_quiet, is_verbose, is_batch, is_full, is_asking;
};

static int set_state(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    ((struct scancel *)target)->states = value;
    if (slurm_state_find(value) == NULL) {
        _cleanup_free_ char *shown = text_escape(value, 60);
        (void)fprintf(stderr, "Invalid job state specified: %s\n", shown);
        return error_mark(
            err, SLURM_BARE, error_set(err, -EINVAL, "Valid job states are PENDING, RUNNING, and SUSPENDED"));
    }
    return 0;
}

#define TEXT(member) SLURM_TEXT_OF(struct scancel, member)
#define FLAG(member) SLURM_FLAG_OF(struct scancel, member)

const struct slurm_option slurm_scancel_options[] = {
    SLURM_ROW(SLURM_SCANCEL, "account", 'A', "name", TEXT(account), "ACCOUNT", "jobs of this account"),
    SLURM_ROW(SLURM_SCANCEL, "batch", 'b', NULL, FLAG(is_batch), "BATCH",
        "end the batch script, and with it the job; with --signal, signal the script alone"),
    SLURM_ROW(SLURM_SCANCEL, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_NO_EFFECT(SLURM_SCANCEL, "ctld", 0, NULL, "CTLD", "through the controller"),
    SLURM_ROW(SLURM_SCANCEL, "full", 'f', NULL, FLAG(is_full), "FULL",
        "with --signal, signal the batch script as well as its steps"),
    SLURM_NO_EFFECT(SLURM_SCANCEL, "hurry", 'H', NULL, "HURRY", "no stage-out"),
    SLURM_ROW(SLURM_SCANCEL, "interactive", 'i', NULL, FLAG(is_asking), "INTERACTIVE", "ask before each job"),
    SLURM_ROW(SLURM_SCANCEL, "jobname", 0, "name", TEXT(name), NULL, "jobs with this name"),
    SLURM_ROW(SLURM_SCANCEL, "me", 0, NULL, FLAG(is_mine), NULL, "your own jobs"),
    SLURM_ROW(SLURM_SCANCEL, "name", 'n', "name", TEXT(name), "NAME", "jobs with this name"),
    SLURM_ROW(SLURM_SCANCEL, "nodelist", 'w', "nodes", TEXT(nodes), NULL, "jobs on these nodes"),
    SLURM_ROW(
        SLURM_SCANCEL, "partition", 'p', "name", TEXT(partition), "PARTITION", "jobs of this partition"),
    SLURM_ROW(SLURM_SCANCEL, "qos", 'q', "name", TEXT(qos), "QOS", "jobs of this QOS"),
    SLURM_ROW(
        SLURM_SCANCEL, "quiet", 'Q', NULL, FLAG(is_quiet), NULL, "no messages about jobs that have ended"),
    SLURM_ROW(SLURM_SCANCEL, "reservation", 'R', "name", TEXT(reservation), NULL,
        "jobs of this reservation, of which there are none"),
    SLURM_NO_EFFECT(SLURM_SCANCEL, "sibling", 0, "name", NULL, "siblings of a federation"),
    SLURM_ROW(SLURM_SCANCEL, "signal", 's', "signal", TEXT(signal), NULL,
        "send this signal instead of ending the job"),
    SLURM_ROW(SLURM_SCANCEL, "state", 't', "state", set_state, "STATE", "jobs in this state"),
    SLURM_ROW(SLURM_SCANCEL, "user", 'u', "name", TEXT(users), "USER", "jobs of this user"),
    SLURM_ROW(SLURM_SCANCEL, "verbose", 'v', NULL, FLAG(is_verbose), "VERBOSE", "increase verbosity"),
    SLURM_ROW(SLURM_SCANCEL, "wckey", 0, "key", TEXT(wckey), "WCKEY", "jobs with this key"),
    { 0 },
};

/* --verbose: prints the action on each job or step. */
static void announce(const struct scancel *scancel, const char *path, const char *step)
{
    const char *what = step != NULL ? "step" : "job", *dot = step != NULL ? "." : "";
    const char *to = scancel->is_full ? "full " : scancel->is_batch ? "batch " : "";
    step = step != NULL ? step : "";
    if (!scancel->is_verbose)
        return;
    if (scancel->signal == NULL || signal_find(scancel->signal) == SIGKILL)
        (void)fprintf(stderr, "scancel: Terminating %s %s%s%s\n", what, path, dot, step);
    else
        (void)fprintf(stderr, "scancel: Signal %d to %s%s %s%s%s\n", signal_find(scancel->signal), to, what,
            path, dot, step);
}

static bool is_signal(const struct scancel *scancel)
{
    return scancel->signal != NULL && signal_find(scancel->signal) != SIGKILL;
}

/* It is not an error if a job has ended or never existed; a signal requires a job. */
static int end_one(struct client *client, const struct scancel *scancel, const char *path, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    announce(scancel, path, NULL);
    bool has_signal = is_signal(scancel);
    const char *action = has_signal ? "signal" : "cancel";
    /* With both options: all processes, including the script. */
    const char *to = scancel->is_full ? "all" : scancel->is_batch ? "script" : "steps";
    if (has_signal) {
        (void)json_object_set_new(body, "signal",
            json_string(strncmp(scancel->signal, "SIG", 3) == 0 ? scancel->signal + 3 : scancel->signal));
        (void)json_object_set_new(body, "to", json_string(to));
    } else if (scancel->signal != NULL)
        (void)json_object_set_new(body, "grace_s", json_integer(0));
    if (!has_signal && scancel->states != NULL &&
        strcmp(slurm_state_find(scancel->states)->compact, "PD") == 0)
        (void)json_object_set_new(body, "waiting", json_true()); // spares the elements of an array that run
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/%s", path, action);
    int r = client_call(client, "POST", request, body, NULL, err);
    if (r == -ENOENT && (has_signal || scancel->is_verbose || scancel->is_batch))
        return error_set(err, r, "Invalid job id specified");
    bool is_over = r == -ENOENT || r == -EALREADY;
    if (is_over && scancel->is_verbose && !has_signal && !scancel->is_quiet)
        (void)fprintf(stderr,
            "scancel: error: Kill job error on job id %s: Job/step already completing or completed\n", path);
    return is_over || (has_signal && r == -ESRCH) ? 0 : r;
}

/* "42.0": only the step. */
static int end_step(struct client *client, const struct scancel *scancel, const struct slurm_id *id,
    const char *path, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/steps/signal", path);
    announce(scancel, path, id->step);
    (void)json_object_set_new(body, "step", json_integer(strtoll(id->step, NULL, 10)));
    if (scancel->signal != NULL)
        (void)json_object_set_new(body, "signal",
            json_string(strncmp(scancel->signal, "SIG", 3) == 0 ? scancel->signal + 3 : scancel->signal));
    int r = client_call(client, "POST", request, body, NULL, err);
    if (r == -ENOENT)
        return error_set(err, -ESRCH, "Invalid job id specified");
    return r == -EALREADY ? 0 : r;
}

/* Slurm's messages for errors that a client may search for. */
static int complain(const struct slurm_program *program, const struct scancel *scancel, const char *path,
    const char *step, const struct error *err)
{
    const char *elements = strchr(path, '.'); // "12.3" in the API
    int length = elements != NULL ? (int)(elements - path) : (int)strlen(path);
    if (slurm_away_words(err) != NULL)
        return slurm_fail_load("slurm_kill_job2", err);
    bool is_denied = err->code == -EPERM || err->code == -EACCES;
    (void)fprintf(stderr, "%s: error: Kill job error on job %sid %.*s%s%s%s%s: %s\n", program->name,
        step != NULL ? "step " : "", length, path, elements != NULL ? "_" : "",
        elements != NULL ? elements + 1 : "", step != NULL ? "." : "", step != NULL ? step : "",
        is_denied ? "Access/permission denied" : err->message);
    return err->code == -ENOENT && scancel->signal == NULL && !scancel->is_batch ? 0 : 1;
}

/* With --interactive; `step` is NULL for the whole job. `job` may be NULL and is then requested. */
static bool is_confirmed(struct client *client, const struct scancel *scancel, const char *path,
    const char *step, const json_t *job, struct error *err)
{
    _cleanup_json_ json_t *found = NULL;
    char answer[16] = "";
    if (!scancel->is_asking)
        return true;
    if (job == NULL) {
        _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
        if (client_get(client, request, &found, NULL) < 0)
            return true; // it is refused below
        job = found;
    }
    if (slurm_state_of(job)->is_over) {                              // there is nothing to confirm
        (void)error_set(err, -EALREADY, "Invalid job id specified"); // Slurm's words for an ended job
        return false;
    }
    _cleanup_free_ char *partition = slurm_text_partition(job, 0), *name = slurm_text_name(job, 0);
    (void)printf("Cancel %s=%s%s%s name=%s partition=%s [y/n]? ", step != NULL ? "step_id" : "job_id", path,
        step != NULL ? "." : "", step != NULL ? step : "", name, partition);
    (void)fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

/* A job or an element, or the step that `id` names. `job` as for is_confirmed(). */
static int end_target(struct client *client, const struct slurm_program *program,
    const struct scancel *scancel, const char *path, const struct slurm_id *id, const json_t *job)
{
    struct error err = { 0 };
    const char *step = id != NULL ? id->step : NULL;
    if (!is_confirmed(client, scancel, path, step, job, &err))
        return err.code != 0 ? complain(program, scancel, path, NULL, &err) : 0;
    int r = step != NULL ? end_step(client, scancel, id, path, &err) : end_one(client, scancel, path, &err);
    if (r < 0)
        return complain(program, scancel, path, step != NULL && step[0] == '\0' ? "0" : step, &err);
    return 0;
}

static int end_listed(
    struct client *client, const struct slurm_program *program, const struct scancel *scancel)
{
    int status = 0;
    for (size_t i = 0; i < scancel->ids.count; i++) {
        _cleanup_free_ char *path = slurm_id_path(&scancel->ids.items[i]);
        if (end_target(client, program, scancel, path, &scancel->ids.items[i], NULL) != 0)
            status = 1;
    }
    return status;
}

static bool has_filter(const struct scancel *scancel)
{
    return scancel->is_mine || scancel->users != NULL || scancel->name != NULL || scancel->states != NULL ||
           scancel->partition != NULL || scancel->account != NULL || scancel->nodes != NULL ||
           scancel->qos != NULL || scancel->wckey != NULL || scancel->reservation != NULL;
}

static bool is_wanted(const struct scancel *scancel, const json_t *job)
{
    _cleanup_free_ char *partition = slurm_text_partition(job, 0), *account = slurm_text_account(job, 0);
    _cleanup_free_ char *qos = slurm_text_qos(job, 0), *wckey = slurm_text_wckey(job, 0);
    return (scancel->states == NULL || slurm_state_find(scancel->states) == slurm_state_of(job)) &&
           scancel->reservation == NULL && // there are none
           (scancel->account == NULL || strcmp(account, scancel->account) == 0) &&
           (scancel->qos == NULL || strcmp(qos, scancel->qos) == 0) &&
           (scancel->wckey == NULL || strcmp(wckey, scancel->wckey) == 0) &&
           (scancel->partition == NULL || slurm_list_has(partition, scancel->partition)) &&
           (scancel->nodes == NULL || slurm_job_is_on(job, scancel->nodes));
}

/* In Slurm's words: no job matches these options. */
static void print_filters(const struct scancel *scancel)
{
    const struct {
        const char *name, *value;
    } filters[] = { { "account", scancel->account }, { "job_name", scancel->name },
        { "nodelist", scancel->nodes }, { "partition", scancel->partition }, { "qos", scancel->qos },
        { "reservation", scancel->reservation }, { "state", scancel->states },
        { "user_name", scancel->users }, { "wckey", scancel->wckey } };
    (void)fputs("scancel: error: No active jobs match ALL job filters, including: ", stderr);
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        _cleanup_free_ char *value = filters[i].value != NULL ? text_escape(filters[i].value, 200) : NULL;
        if (value != NULL)
            (void)fprintf(stderr, "%s=%s ", filters[i].name, value);
    }
    (void)fputc('\n', stderr);
}

/* A waiting element is named by its array. */
static char *path_of(const json_t *job)
{
    int64_t id = field_integer(job, "id", 0);
    bool is_element = field_integer(job, "array_job", 0) == id;
    return is_element ? xasprintf("%" PRId64 ".%" PRId64, id, field_integer(job, "array_index", 0))
                      : xasprintf("%" PRId64, id);
}

/* The whole job, or the steps of it that were named. */
static int end_job(struct client *client, const struct slurm_program *program, const struct scancel *scancel,
    const json_t *job)
{
    _cleanup_free_ char *path = path_of(job);
    bool is_whole = scancel->ids.count == 0;
    int status = 0;
    for (size_t i = 0; i < scancel->ids.count; i++)
        is_whole |= scancel->ids.items[i].step == NULL && slurm_id_fits(&scancel->ids.items[i], job);
    if (is_whole)
        return end_target(client, program, scancel, path, NULL, job);
    for (size_t i = 0; i < scancel->ids.count; i++)
        if (slurm_id_fits(&scancel->ids.items[i], job) &&
            end_target(client, program, scancel, path, &scancel->ids.items[i], job) != 0)
            status = 1;
    return status;
}

static int end_found(
    struct client *client, const struct slurm_program *program, const struct scancel *scancel)
{
    _cleanup_json_ json_t *jobs = NULL;
    struct error err = { 0 };
    size_t index = 0;
    json_t *job = NULL;
    int status = 0;
    size_t found = 0;
    const char *users = scancel->users != NULL               ? scancel->users
                        : scancel->is_mine || geteuid() != 0 ? slurm_own_name()
                                                             : NULL;
    const struct slurm_query query = { .ids = &scancel->ids,
        .users = users,
        .name = scancel->name,
        .is_quick = true,
        .has_open_alone = scancel->ids.count == 0 };
    if (slurm_jobs_get(client, &query, &jobs, &err) < 0)
        return slurm_fail_load("slurm_load_jobs", &err);
    slurm_jobs_narrow(&scancel->ids, &jobs);
    json_array_foreach(jobs, index, job)
    {
        bool is_one = !slurm_state_of(job)->is_over && is_wanted(scancel, job);
        bool is_array = field_is_known(job, "array_left"); // its elements that run are listed as well
        found += is_one;
        if (is_one && !(is_array && is_signal(scancel)) && end_job(client, program, scancel, job) != 0)
            status = 1;
    }
    if (found == 0 && scancel->is_verbose)
        print_filters(scancel);
    return status;
}

int slurm_run_scancel(const struct slurm_program *program, int argc, char **argv)
{
    struct scancel scancel = { .ids = { .refusal = "Invalid job id ", .has_numbers = true } };
    const struct slurm_reading reading = { .program = program, .target = &scancel };
    struct error err = { 0 };
    struct client client;
    int first = 0;
    int r = slurm_options_from_environment(&reading, "SCANCEL", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    for (int i = first; r == 0 && i < argc; i++)
        r = slurm_ids_parse(argv[i], &scancel.ids, &err);
    for (size_t i = 0; r == 0 && i < scancel.ids.count; i++)
        if (scancel.ids.items[i].job == 0)
            r = error_set(&err, -EINVAL, "Invalid job id 0");
    if (r == 0 && scancel.ids.count == 0 && !has_filter(&scancel))
        r = error_set(&err, -EINVAL, "No job identification provided");
    if (r == 0)
        r = slurm_users_check(scancel.users, "Invalid user name", &err);
    if (r == 0 && scancel.signal != NULL && signal_find(scancel.signal) == 0)
        r = error_mark(
            &err, SLURM_BARE, error_set(&err, -EINVAL, "Unknown job signal: %.60s", scancel.signal));
    if (r < 0) {
        slurm_ids_clear(&scancel.ids);
        return slurm_fail(program, &err);
    }
    leaving_outlive_own_end();
    client_init(&client, NULL, NULL);
    int status =
        has_filter(&scancel) ? end_found(&client, program, &scancel) : end_listed(&client, program, &scancel);
    client_clear(&client);
    slurm_ids_clear(&scancel.ids);
    return status;
}
