/* SPDX-License-Identifier: MIT */
/* scontrol: displays objects and changes jobs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/options/ask.h"
#include "cli/slurm/jobs.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/scontrol_show.h"
#include "cli/slurm/slurm.h"
#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_moment.h"
#include "cli/submit/slurm_values.h"
#include "cli/term/field.h"

#define ADDED_LIMIT  "added_limit" // seconds, in a change before it is sent
#define THROTTLE     "throttle"
#define THROTTLE_MAX 1000000

struct scontrol {
    struct scontrol_form form;
    bool is_quiet;
};

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct scontrol *scontrol = target;
    (void)value, (void)err;
    scontrol->form.is_one_line |= option->letter == 'o';
    scontrol->form.has_details |= option->letter == 'd';
    scontrol->is_quiet |= option->letter == 'Q';
    return 0;
}

const struct slurm_option slurm_scontrol_options[] = {
    SLURM_NO_EFFECT(SLURM_SCONTROL, "all", 'a', NULL, NULL, "hidden partitions, too"),
    SLURM_ROW(SLURM_SCONTROL, "clusters", 'M', "list", slurm_set_clusters, NULL, "clusters: mgpu or all"),
    SLURM_ROW(SLURM_SCONTROL, "details", 'd', NULL, set_flag, NULL,
        "the GPUs of jobs by their numbers, and those of nodes that jobs have"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "federation", 0, NULL, NULL, "of the federation"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "future", 'F', NULL, NULL, "nodes of the future"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "hide", 0, NULL, NULL, "no hidden partitions"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "local", 0, NULL, NULL, "of this cluster"),
    SLURM_ROW(SLURM_SCONTROL, "oneliner", 'o', NULL, set_flag, NULL, "each thing on one line"),
    SLURM_ROW(SLURM_SCONTROL, "quiet", 'Q', NULL, set_flag, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "sibling", 0, NULL, NULL, "siblings of a federation"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "uid", 'u', "user", NULL, "as this user"),
    SLURM_NO_EFFECT(SLURM_SCONTROL, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

/* --- jobs --- */

/* Actions on jobs: what they are here. */
static const struct {
    const char *word, *action;
} actions[] = {
    { "hold", "hold" },
    { "uhold", "hold" },
    { "release", "release" },
    { "requeue", "requeue" },
    { "requeuehold", "requeue" },
    { "suspend", "suspend" },
    { "resume", "continue" },
};

static const char *find_action(const char *word)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcasecmp(word, actions[i].word) == 0)
            return actions[i].action;
    return NULL;
}

/* What is possible for waiting jobs alone has another sentence while the job runs than when it has ended. */
static const char *tell_late(struct client *client, const char *path)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    bool is_running =
        client_get(client, request, &job, NULL) == 0 && text_equal(field_text(job, "state"), "running");
    return is_running ? "Job is no longer pending execution" : "Job/step already completing or completed";
}

/* In the words that clients look for. */
static int complain(struct client *client, const char *what, const char *path, const struct error *err)
{
    const char *away = slurm_away_words(err);
    const char *why = away != NULL                                  ? away
                      : err->code == -ENOENT                        ? "Invalid job id specified"
                      : err->code == -EPERM || err->code == -EACCES ? "Access/permission denied"
                      : err->code == -EALREADY                      ? tell_late(client, path)
                                                                    : err->message;
    bool is_ours = why == err->message; // a sentence of its own
    if (what[0] == '\0')
        (void)fprintf(stderr, "%s\n", why);
    else
        (void)fprintf(stderr, is_ours ? "%s (job %s)\n" : "%s for job %s\n", why, path);
    return 1;
}

static int act(struct client *client, const char *word, const char *action, int argc, char **argv)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    struct error err = { 0 };
    int status = 0;
    for (int i = 0; i < argc; i++) {
        const char *text = strncasecmp(argv[i], "jobid=", 6) == 0 ? argv[i] + 6 : argv[i];
        if (slurm_ids_parse(text, &ids, &err) < 0) {
            (void)fprintf(stderr, "Invalid job id specified for job %s\n", text);
            return 1;
        }
    }
    for (size_t i = 0; i < ids.count; i++) {
        _cleanup_json_ json_t *body = json_object();
        _cleanup_free_ char *path = slurm_id_path(&ids.items[i]);
        _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/%s", path, action);
        if (strcasecmp(word, "requeuehold") == 0)
            (void)json_object_set_new(body, "hold", json_true());
        if (client_call(client, "POST", request, body, NULL, &err) < 0)
            status = complain(client, "job", path, &err);
    }
    return status;
}

/* --- update --- */

/* "+30" is added to what the job has. */
static int change_limit(json_t *body, const char *value, struct error *err)
{
    int64_t number = 0;
    if (value[0] == '+' || value[0] == '-') {
        int r = slurm_parse_time("TimeLimit", value + 1, &number, err);
        (void)json_object_set_new(body, ADDED_LIMIT, json_integer(value[0] == '-' ? -number : number));
        return r;
    }
    int r = slurm_parse_time("TimeLimit", value, &number, err);
    bool is_unlimited = number == SLURM_NO_LIMIT;
    if (r == 0)
        (void)json_object_set_new(body, "time_limit", is_unlimited ? json_null() : json_integer(number));
    if (r == 0 && is_unlimited)
        (void)json_object_set_new(body, "no_time_limit", json_true());
    return r;
}

/* Changes of options that are only kept go to `notes`. */
static int add_change(json_t *body, struct client *client, const char *key, const char *value,
    struct strings *notes, struct error *err)
{
    static const struct {
        const char *slurm, *key;
    } texts[] = { { "NumNodes", "nodes" }, { "Partition", "partition" }, { "ReqNodeList", "nodelist" },
        { "NodeList", "nodelist" }, { "ExcNodeList", "exclude" } };
    static const char *const kept[] = { "account", "qos", "comment", "wckey", "licenses" };
    int64_t number = 0;
    if (strcasecmp(key, "timelimit") == 0)
        return change_limit(body, value, err);
    if (strcasecmp(key, "name") == 0 || strcasecmp(key, "jobname") == 0)
        return ask_set(body, client, "name", "JobName", value, err);
    if (strcasecmp(key, "nice") == 0) {
        int r = parse_integer(value, "Nice", -1000, 1000, &number, err);
        (void)json_object_set_new(body, "priority", json_integer(-number));
        return r;
    }
    if (strcasecmp(key, "priority") == 0)
        return ask_set(body, client, "priority", "Priority", value, err);
    if (strcasecmp(key, "starttime") == 0 || strcasecmp(key, "deadline") == 0) {
        char utc[32];
        int64_t ms = 0;
        int r = slurm_parse_moment(key, value, SLURM_AHEAD, clock_wall_ms(), &when_local, &ms, err);
        utc_format(ms, utc, sizeof(utc));
        return r < 0 ? r
                     : ask_set(body, client, strcasecmp(key, "deadline") == 0 ? "deadline" : "begin", key,
                           utc, err);
    }
    if (strcasecmp(key, "dependency") == 0) {
        _cleanup_free_ char *after = NULL;
        int r = slurm_parse_dependency(value, &after, err);
        if (r == 0)
            (void)json_object_set_new(body, "after", after != NULL ? json_string(after) : json_null());
        return r;
    }
    if (strcasecmp(key, "arraytaskthrottle") == 0) {
        int r = parse_integer(value, "ArrayTaskThrottle", 0, THROTTLE_MAX, &number, err);
        (void)json_object_set_new(body, THROTTLE, json_integer(number));
        return r;
    }
    if (strcasecmp(key, "requeue") == 0) {
        (void)json_object_set_new(body, "requeue_on_node_lost", json_boolean(strcmp(value, "0") != 0));
        return 0;
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcasecmp(key, texts[i].slurm) == 0)
            return ask_set(body, client, texts[i].key, texts[i].slurm, value, err);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (strcasecmp(key, kept[i]) == 0) {
            strings_set_env(notes, kept[i], value);
            return 0;
        }
    return error_set(err, -EINVAL, "Update of this parameter is not supported: %.60s=%.60s", key, value);
}

/* "TimeLimit=+30": the limit that results for this job. */
static int settle_limit(struct client *client, const char *path, json_t *body, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    const json_t *added = json_object_get(body, ADDED_LIMIT);
    if (added == NULL)
        return 0;
    int r = client_get(client, request, &job, err);
    int64_t limit = (int64_t)field_number(job, "time_limit", 0);
    if (r == 0 && (limit == 0 || limit + json_integer_value(added) <= 0))
        return error_set(err, -EINVAL, "Invalid time limit specification");
    (void)json_object_set_new(body, "time_limit", json_integer(limit + json_integer_value(added)));
    (void)json_object_del(body, ADDED_LIMIT);
    return r;
}

/* "ArrayTaskThrottle=2": the array that results, of the same indexes. 0: all of its tasks at a time. */
static int settle_throttle(struct client *client, const char *path, json_t *body, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    int64_t wanted = field_integer(body, THROTTLE, -1);
    if (json_object_del(body, THROTTLE) < 0)
        return 0;
    int r = client_get(client, request, &job, err);
    const char *array = field_text(job, "array");
    if (r == 0 && array == NULL)
        return error_set(err, -EINVAL, "Job %s is not an array", path);
    if (r < 0)
        return r;
    int length = (int)strcspn(array, "%");
    _cleanup_free_ char *text =
        wanted > 0 ? xasprintf("%.*s%%%" PRId64, length, array, wanted) : xstrndup(array, (size_t)length);
    (void)json_object_set_new(body, "array", json_string(text));
    return 0;
}

/* The options kept with the job, with these in place of those of the same names. */
static int add_notes(
    struct client *client, const char *path, const struct strings *notes, json_t *body, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_strings_ struct strings all = { 0 };
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    json_t *list = json_array(), *note = NULL;
    size_t index = 0;
    int r = notes->count > 0 ? client_get(client, request, &job, err) : 0;
    json_array_foreach(json_object_get(job, "slurm"), index, note) strings_add(&all, json_string_value(note));
    for (size_t i = 0; i < notes->count; i++) {
        const char *equals = strchr(notes->items[i], '=');
        _cleanup_free_ char *name = xstrndup(notes->items[i], (size_t)(equals - notes->items[i]));
        strings_set_env(&all, name, equals + 1);
    }
    for (size_t i = 0; i < all.count; i++)
        (void)json_array_append_new(list, json_string(all.items[i]));
    if (notes->count > 0 && r == 0)
        (void)json_object_set(body, "slurm", list);
    json_decref(list);
    return r;
}

/* "NodeName=n1 State=DRAIN Reason=disk". */
static int update_nodes(struct client *client, int argc, char **argv, struct error *err)
{
    const char *nodes = NULL, *state = "", *reason = NULL;
    for (int i = 0; i < argc; i++) {
        const struct {
            const char *name, **value;
        } keys[] = { { "NodeName=", &nodes }, { "State=", &state }, { "Reason=", &reason } };
        size_t k = 0;
        while (k < sizeof(keys) / sizeof(keys[0]) &&
               strncasecmp(argv[i], keys[k].name, strlen(keys[k].name)) != 0)
            k++;
        if (k == sizeof(keys) / sizeof(keys[0]))
            return error_set(err, -EINVAL, "Update of this parameter is not supported: %.120s", argv[i]);
        *keys[k].value = argv[i] + strlen(keys[k].name);
    }
    bool is_drain = strcasecmp(state, "drain") == 0 || strcasecmp(state, "down") == 0;
    if (!is_drain && strcasecmp(state, "resume") != 0 && strcasecmp(state, "undrain") != 0 &&
        strcasecmp(state, "idle") != 0)
        return error_set(err, -EINVAL, "Invalid node state specified: %.60s", state);
    if (is_drain && reason == NULL)
        return error_set(err, -EINVAL, "You must specify a reason when DRAINING a node.");
    _cleanup_strings_ struct strings names = { 0 };
    int r = hostlist_expand(nodes, &names, err);
    for (size_t i = 0; r >= 0 && i < names.count; i++) {
        _cleanup_json_ json_t *body = json_object();
        _cleanup_free_ char *path =
            xasprintf(API_PATH "/nodes/%s/%s", names.items[i], is_drain ? "drain" : "resume");
        if (is_drain)
            (void)json_object_set_new(body, "reason", json_string(reason));
        r = client_call(client, "POST", path, body, NULL, err);
    }
    if (r < 0)
        (void)fprintf(
            stderr, "slurm_update error: %s\n", r == -ENOENT ? "Invalid node name specified" : err->message);
    return r < 0 ? 1 : 0;
}

static int update(struct client *client, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    _cleanup_strings_ struct strings notes = { 0 };
    const char *job = NULL;
    int r = 0;
    for (int i = 0; r == 0 && i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (equals == NULL)
            return error_set(err, -EINVAL, "Invalid input: %.60s", argv[i]);
        _cleanup_free_ char *key =
            xstrndup(argv[i], (size_t)(equals - argv[i]) - (equals > argv[i] && equals[-1] == '+'));
        if (strcasecmp(key, "jobid") == 0)
            job = equals + 1;
        else
            r = add_change(body, client, key, equals + 1, &notes, err);
    }
    if (r < 0)
        return r;
    if (job == NULL)
        return error_set(err, -EINVAL, "No valid entity in update command; jobs are changed here: JobId=12");
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    r = slurm_ids_parse(job, &ids, err);
    for (size_t i = 0; r == 0 && i < ids.count; i++) {
        _cleanup_free_ char *path = slurm_id_path(&ids.items[i]);
        _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/edit", path);
        _cleanup_json_ json_t *changes = json_copy(body);
        r = settle_limit(client, path, changes, err);
        if (r == 0)
            r = settle_throttle(client, path, changes, err);
        if (r == 0)
            r = add_notes(client, path, &notes, changes, err);
        if (r == 0)
            r = client_call(client, "POST", request, changes, NULL, err);
        if (r < 0)
            return complain(client, "job", path, err);
    }
    return r;
}

/* --- the rest --- */

static int ping(struct client *client)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *version = NULL;
    client_hurry(client);
    bool is_up = client_get(client, API_PATH "/version", &version, &err) == 0;
    (void)printf("Slurmctld(primary) at %s is %s\n", client->host != NULL ? client->host : "localhost",
        is_up ? "UP" : "DOWN");
    return is_up ? 0 : 1;
}

/* "write batch_script 12 [FILE]". */
static int write_script(struct client *client, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    if (argc < 2 || strcasecmp(argv[0], "batch_script") != 0)
        return error_set(err, -EINVAL, "invalid keyword: write %.60s", argc > 0 ? argv[0] : "");
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s?script=1", argv[1]);
    _cleanup_free_ char *usual = xasprintf("slurm-%s.sh", argv[1]);
    const char *name = argc > 2 ? argv[2] : usual;
    int r = client_get(client, path, &job, err);
    if (r < 0)
        return complain(client, "job", argv[1], err);
    if (field_text(job, "script") == NULL)
        return error_set(err, -ENOENT, "job script retrieval failed: Invalid job id specified");
    FILE *file = strcmp(name, "-") == 0 ? stdout : fopen(name, "we");
    if (file == NULL)
        return error_set(err, -errno, "failed to open file `%.200s`", name);
    r = fputs(field_text(job, "script"), file) < 0 || fflush(file) != 0 ? -errno : 0;
    if (file != stdout && fclose(file) != 0 && r == 0)
        r = -errno;
    if (r < 0)
        return error_set_errno(err, r, "failed to write file `%.200s`", name);
    if (file == stdout)
        return 0;
    (void)printf("batch script for job %s written to %s\n", argv[1], name);
    return 0;
}

static int run(
    const struct scontrol *scontrol, struct client *client, int argc, char **argv, struct error *err)
{
    if (argc == 0)
        return error_set(err, -EINVAL, "too few arguments; a command is required, such as show job");
    const char *action = find_action(argv[0]);
    if (action != NULL && argc < 2)
        return error_set(err, -EINVAL, "too few arguments for keyword:%s", argv[0]);
    if (action != NULL)
        return act(client, argv[0], action, argc - 1, argv + 1);
    if (strcasecmp(argv[0], "show") == 0 && argc > 1)
        return scontrol_show(client, argv[1], argc > 2 ? argv[2] : NULL, &scontrol->form, err);
    bool is_node = argc > 1 && strncasecmp(argv[1], "NodeName=", strlen("NodeName=")) == 0;
    if (strcasecmp(argv[0], "update") == 0 && is_node)
        return update_nodes(client, argc - 1, argv + 1, err);
    if (strcasecmp(argv[0], "update") == 0)
        return update(client, argc - 1, argv + 1, err);
    if (strcasecmp(argv[0], "write") == 0)
        return write_script(client, argc - 1, argv + 1, err);
    if (strcasecmp(argv[0], "ping") == 0)
        return ping(client);
    if (strcasecmp(argv[0], "version") == 0)
        return puts("slurm " SLURM_VERSION) < 0;
    return error_set(err, -EINVAL, "invalid keyword: %.60s", argv[0]);
}

int slurm_run_scontrol(const struct slurm_program *program, int argc, char **argv)
{
    struct scontrol scontrol = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &scontrol };
    struct error err = { 0 };
    struct client client;
    int first = 0;
    if (slurm_options_answer(program, argc, argv))
        return 0;
    int r = slurm_options_from_environment(&reading, "SCONTROL", &err);
    if (r == 0)
        r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r < 0)
        return slurm_fail(program, &err);
    client_init(&client, NULL, NULL);
    r = run(&scontrol, &client, argc - first, argv + first, &err);
    client_clear(&client);
    if (r >= 0)
        return r;
    bool is_load = err.code == -ENOENT || slurm_away_words(&err) != NULL;
    return is_load ? slurm_fail_load("slurm_load_jobs", &err) : slurm_fail(program, &err);
}
