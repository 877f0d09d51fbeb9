/* SPDX-License-Identifier: MIT */
#include "compat/slurm/control/scontrol_jobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/leaving_signals.h"
#include "cli/term/time_text.h"
#include "compat/slurm/control/scontrol_update.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/slurm.h"

static int parse_all(
    struct client *client, int argc, char **argv, struct slurm_ids *ids, const char **ret_wrong)
{
    struct error err = { 0 };
    for (int i = 0; i < argc; i++)
        if (scontrol_jobs_parse(client, argv[i], ids, &err) < 0) {
            *ret_wrong = argv[i];
            return client_is_away(&err) ? err.code : -ENOENT;
        }
    return 0;
}

/* For holds and releases, Slurm prints a second message about the operation that failed. Returns 1. */
static int end_hold(const char *word, const char *why)
{
    if (strstr(word, "hold") == word || strcmp(word, "uhold") == 0 || strcmp(word, "release") == 0)
        (void)fprintf(stderr, "slurm_suspend error: %s\n", why);
    return 1;
}

/* slurmctld has another message for suspending a job that it does not have. */
static int complain(struct client *client, const char *word, const char *path, const struct error *err)
{
    bool is_missing = err->code == -ENOENT;
    if (is_missing && (strcmp(word, "suspend") == 0 || strcmp(word, "resume") == 0)) {
        (void)fprintf(stderr, "Unexpected message received for job %s\n", path);
        return 1;
    }
    (void)scontrol_complain(client, "job", path, err);
    return is_missing               ? end_hold(word, "Invalid job id specified")
           : err->code == -EALREADY ? end_hold(word, "Job has already finished")
                                    : 1;
}

int scontrol_act(
    struct client *client, const char *word, const char *action, int argc, char **argv, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    const char *wrong = NULL;
    bool is_requeue = strncasecmp(word, "requeue", 7) == 0;
    bool is_rest = is_requeue && argc > 0 && scontrol_is_word(argv[0], "incomplete", 10);
    leaving_outlive_own_end();
    int status = 0, r = parse_all(client, argc - is_rest, argv + is_rest, &ids, &wrong);
    if (r == -ENOENT) {
        (void)fprintf(stderr, "Invalid job id specified for job %s\n", wrong);
        return end_hold(word, "Invalid job id specified");
    }
    if (r < 0)
        return error_set(err, r, "cannot look for %.60s", wrong);
    for (size_t i = 0; i < ids.count; i++) {
        _cleanup_json_ json_t *body = json_object();
        _cleanup_free_ char *path = slurm_id_path(&ids.items[i]);
        _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/%s", path, action);
        if (strcasecmp(word, "requeuehold") == 0)
            (void)json_object_set_new(body, "hold", json_true());
        r = client_call(client, "POST", request, body, NULL, err);
        if (r < 0 && !(is_rest && r == -EALREADY)) // an element that has ended is left unchanged
            status = complain(client, word, path, err);
    }
    return status;
}

int scontrol_top(struct client *client, int argc, char **argv, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *jobs = NULL;
    const struct slurm_query query = { .users = slurm_own_name(), .is_quick = true, .has_open_alone = true };
    const char *wrong = NULL;
    size_t index = 0;
    json_t *job = NULL;
    int64_t most = 0;
    int status = 0, r = parse_all(client, argc, argv, &ids, &wrong);
    if (r == -ENOENT) {
        (void)fprintf(stderr, "slurm_top_job error: Invalid job id specified\n");
        return 1;
    }
    if (r == 0)
        r = slurm_jobs_get(client, &query, &jobs, err);
    if (r < 0)
        return r;
    json_array_foreach(jobs, index, job)
    {
        int64_t priority = field_integer(job, "priority", 0);
        most = field_is(job, "state", "queued") && priority > most ? priority : most;
    }
    for (size_t i = ids.count; i > 0; i--) { // the first one gets the highest priority
        _cleanup_json_ json_t *body = json_pack("{s:I}", "priority", (json_int_t)++most);
        _cleanup_free_ char *path = slurm_id_path(&ids.items[i - 1]);
        _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/edit", path);
        if (client_call(client, "POST", request, body, NULL, err) < 0)
            status = scontrol_complain(client, "job", path, err);
    }
    return status;
}

int scontrol_wait(struct client *client, int argc, char **argv, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *job = NULL;
    if (argc != 1)
        return scontrol_misuse(err, "too %s arguments for keyword:wait_job", argc < 1 ? "few" : "many");
    int r = slurm_ids_parse(argv[0], &ids, err);
    if (r < 0)
        return scontrol_misuse(err, "Invalid job_id %.60s", argv[0]);
    _cleanup_free_ char *path = slurm_id_path(&ids.items[0]);
    _cleanup_free_ char *request =
        xasprintf(API_PATH "/jobs/%s/wait?states=running,stopping,done,failed,cancelled", path);
    client->timeout_ms = CLIENT_PATIENT_MS;
    client->answer_ms = CLIENT_WAITS_FOR_EVER;
    r = client_get(client, request, &job, err);
    client->answer_ms = 0;
    if (r == -ENOENT)
        return error_mark(err, SLURM_NAMED, error_set(err, -EINVAL, "Problem running job %s", path));
    if (r < 0)
        return r;
    if (!field_is(job, "state", "running"))
        return error_mark(err, SLURM_NAMED, error_set(err, -EINVAL, "Job %s no longer running", path));
    _cleanup_free_ char *nodes = slurm_text_nodes(job, 0);
    (void)printf("Nodes %s are ready for use\n", nodes);
    return 0;
}

int scontrol_completing(struct client *client, struct error *err)
{
    _cleanup_json_ json_t *jobs = NULL;
    const struct slurm_query query = { .is_quick = true, .has_open_alone = true };
    int64_t now_ms = clock_wall_ms();
    size_t index = 0;
    json_t *job = NULL;
    int r = slurm_jobs_get(client, &query, &jobs, err);
    json_array_foreach(jobs, index, job)
    {
        if (!field_is(job, "state", "stopping"))
            continue;
        const char *at = field_text(job, "ended_at");
        int64_t ended_ms = at != NULL ? time_parse(at) : now_ms;
        _cleanup_free_ char *id = slurm_text_raw_id(job, now_ms), *nodes = slurm_text_nodes(job, now_ms);
        _cleanup_free_ char *ended = slurm_time_shown(ended_ms, "Unknown");
        _cleanup_free_ char *passed = slurm_duration_text((now_ms - ended_ms) / 1000, true);
        (void)printf(
            "JobId=%s EndTime=%s CompletingTime=%s Nodes(COMPLETING)=%s \n", id, ended, passed, nodes);
    }
    return r;
}
