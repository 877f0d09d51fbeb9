/* SPDX-License-Identifier: MIT */
/* scontrol update: the changes allowed are a table of Slurm's keys, which may be abbreviated. */
#include "compat/slurm/control/scontrol_update.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/utc.h"
#include "cli/options/ask.h"
#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_moment.h"
#include "cli/submit/slurm_values.h"
#include "cli/term/time_text.h"
#include "compat/slurm/slurm.h"
#include "job/slurm.h"

/* Members of a change before it is sent, which are settled for each job. */
#define ADDED_LIMIT  "added_limit" // seconds
#define THROTTLE     "throttle"
#define CPUS         "all_cpus"
#define GRES         "gpus_of_each_node"
#define THROTTLE_MAX 1000000
#define CPUS_MAX     1000000

int scontrol_misuse(struct error *err, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return error_mark(err, SLURM_BARE, error_set(err, -EINVAL, "%s", text));
}

bool scontrol_is_word(const char *word, const char *name, size_t least)
{
    return strlen(word) >= least && strncasecmp(word, name, strlen(word)) == 0;
}

int scontrol_jobs_parse(struct client *client, const char *text, struct slurm_ids *ids, struct error *err)
{
    const char *equals = strchr(text, '=');
    _cleanup_free_ char *word = xstrndup(text, equals != NULL ? (size_t)(equals - text) : 0);
    _cleanup_json_ json_t *jobs = NULL;
    size_t index = 0;
    json_t *job = NULL;
    bool is_name = equals != NULL && (scontrol_is_word(word, "JobName", 4) || strcasecmp(word, "name") == 0);
    if (!is_name)
        return slurm_ids_parse(
            equals != NULL && scontrol_is_word(word, "JobId", 3) ? equals + 1 : text, ids, err);
    const struct slurm_query query = {
        .users = slurm_own_name(), .name = equals + 1, .is_quick = true, .has_open_alone = true
    };
    int r = slurm_jobs_get(client, &query, &jobs, err);
    if (r == 0 && json_array_size(jobs) == 0)
        return error_set(err, -ENOENT, "Invalid job id specified");
    json_array_foreach(jobs, index, job)
    {
        _cleanup_free_ char *id = xasprintf("%" PRId64, field_integer(job, "id", 0));
        if (r == 0)
            r = slurm_ids_parse(id, ids, err);
    }
    return r;
}

/* Changes that are only possible for waiting jobs, or only for running ones, have a message for each other
 * state. */
static const char *describe_late(struct client *client, const char *path)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    if (client_get(client, request, &job, NULL) < 0)
        return "Job has already finished";
    bool has_begun = field_is(job, "state", "running") || field_is(job, "state", "starting");
    return has_begun                          ? "Job is no longer pending execution"
           : field_is(job, "state", "queued") ? "Job is pending execution"
                                              : "Job has already finished";
}

/* The messages that clients search for. */
int scontrol_complain(struct client *client, const char *what, const char *path, const struct error *err)
{
    const char *away = slurm_away_words(err);
    const char *why = away != NULL           ? away
                      : err->code == -ENOENT ? "Invalid job id specified"
                      : strncmp(err->message, "there is no partition ", 22) == 0
                          ? "Invalid partition name specified"
                      : err->code == -EPERM || err->code == -EACCES ? "Access/permission denied"
                      : err->code == -EALREADY                      ? describe_late(client, path)
                                                                    : err->message;
    bool is_ours = why == err->message; // a message of mgpu's own
    _cleanup_free_ char *id = xstrdup(path);
    id[strcspn(id, ".")] = strchr(id, '.') != NULL ? '_' : '\0'; // "12.3" in the API
    if (what[0] == '\0')
        (void)fprintf(stderr, "%s\n", why);
    else
        (void)fprintf(stderr, is_ours ? "%s (job %s)\n" : "%s for job %s\n", why, id);
    return 1;
}

struct change {
    struct client *client;
    json_t *body;         // of the edit
    struct strings notes; // options that are only stored
    const char *value;
    const char *user; // the owner of jobs given by name; NULL: the caller
};

struct key {
    const char *name;
    size_t least; // minimum length of an abbreviation
    int (*set)(struct change *change, const struct key *key, struct error *err);
    const char *to; // key of the API, or name of the stored option
};

/* "+30" is added to what the job has. */
static int set_limit(struct change *change, const struct key *key, struct error *err)
{
    json_t *body = change->body;
    const char *value = change->value;
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

/* Displayed only; without effect on a job that has been submitted. */
static int set_least(struct change *change, const struct key *key, struct error *err)
{
    int64_t seconds = 0;
    int r = slurm_parse_time(key->name, change->value, &seconds, err);
    _cleanup_free_ char *text = xasprintf("%" PRId64, seconds);
    strings_set_env(&change->notes, SLURM_NOTE_TIME_MIN, text);
    return r;
}

static int set_text(struct change *change, const struct key *key, struct error *err)
{
    return ask_set(change->body, change->client, key->to, key->name, change->value, err);
}

static int set_note(struct change *change, const struct key *key, struct error *err)
{
    strings_set_env(&change->notes, key->to, change->value);
    return 0;
}

/* Without a value it is 100. */
static int set_nice(struct change *change, const struct key *key, struct error *err)
{
    int64_t number = 0;
    int r = parse_integer(change->value, key->name, -1000, 1000, &number, err);
    (void)json_object_set_new(change->body, "priority", json_integer(-number));
    return r;
}

static int set_moment(struct change *change, const struct key *key, struct error *err)
{
    char utc[32];
    int64_t ms = 0;
    int r = slurm_parse_moment(key->name, change->value, SLURM_AHEAD, clock_wall_ms(), &when_local, &ms, err);
    utc_format(ms, utc, sizeof(utc));
    return r < 0 ? r : ask_set(change->body, change->client, key->to, key->name, utc, err);
}

static int set_dependency(struct change *change, const struct key *key, struct error *err)
{
    _cleanup_free_ char *after = NULL;
    int r = slurm_parse_dependency(change->value, &after, err);
    if (r == 0)
        (void)json_object_set_new(change->body, "after", after != NULL ? json_string(after) : json_null());
    return r;
}

/* Values that depend on the job are settled for each job. */
static int set_later(struct change *change, const struct key *key, struct error *err)
{
    int64_t number = 0, most = strcmp(key->to, THROTTLE) == 0 ? THROTTLE_MAX : CPUS_MAX;
    _cleanup_free_ char *least = xstrndup(change->value, strcspn(change->value, "-"));
    int r = parse_integer(least, key->name, strcmp(key->to, THROTTLE) == 0 ? 0 : 1, most, &number, err);
    (void)json_object_set_new(change->body, key->to, json_integer(number));
    return r;
}

/* "2", or "2-4", of which the lower number is used. */
static int set_nodes(struct change *change, const struct key *key, struct error *err)
{
    _cleanup_free_ char *least = xstrndup(change->value, strcspn(change->value, "-"));
    return ask_set(change->body, change->client, "nodes", key->name, least, err);
}

static int set_requeue(struct change *change, const struct key *key, struct error *err)
{
    bool is_on = strcmp(change->value, "0") != 0;
    (void)json_object_set_new(change->body, "requeue_on_node_lost", json_boolean(is_on));
    (void)json_object_set_new(change->body, "no_restart", json_boolean(!is_on));
    return 0;
}

static int set_memory(struct change *change, const struct key *key, struct error *err)
{
    uint64_t bytes = 0;
    int r = slurm_parse_memory(key->name, change->value, &bytes, err);
    _cleanup_free_ char *mib = xasprintf("%" PRIu64, bytes >> 20);
    strings_set_env(&change->notes, SLURM_NOTE_MEM, mib);
    (void)json_object_set_new(
        change->body, "memory", bytes > 0 ? json_integer((json_int_t)bytes) : json_null());
    return r;
}

/* GPUs per node. */
static int set_gres(struct change *change, const struct key *key, struct error *err)
{
    _cleanup_free_ char *model = NULL;
    const char *value = change->value + (strncmp(change->value, "gres/", 5) == 0 ? 5 : 0);
    int64_t number = 0;
    int r = slurm_parse_gres(value, &number, &model, err);
    (void)json_object_set_new(change->body, GRES, json_integer(number));
    _cleanup_free_ char *each =
        xasprintf("%s%s%" PRId64, model != NULL ? model : "", model != NULL ? ":" : "", number);
    strings_set_env(&change->notes, SLURM_NOTE_GPUS_PER_NODE, each);
    strings_set_env(&change->notes, SLURM_NOTE_GPUS, "");
    strings_set_env(&change->notes, SLURM_NOTE_GPUS_PER_TASK, "");
    strings_set_env(&change->notes, SLURM_NOTE_GPUS_PER_SOCKET, "");
    if (model != NULL)
        (void)json_object_set_new(change->body, "gpu_model", json_string(model));
    return r;
}

/* "UserID=1001" or "UserID=ana". */
static int set_user(struct change *change, const struct key *key, struct error *err)
{
    if (slurm_users_check(change->value, "Invalid UserID", err) == 0) {
        change->user = change->value;
        return 0;
    }
    (void)fprintf(stderr, "%s\n", err->message);
    return scontrol_misuse(err, "Request aborted");
}

/* In the order of Slurm, which uses the first key that an abbreviation matches. */
static const struct key keys[] = {
    { "Comment", 3, set_note, "comment" },
    { "ArrayTaskThrottle", 10, set_later, THROTTLE },
    { "TimeLimit", 5, set_limit, NULL },
    { "Priority", 2, set_text, "priority" },
    { "Nice", 2, set_nice, NULL },
    { "NumCPUs", 6, set_later, CPUS },
    { "ReqCPUs", 8, set_later, CPUS },
    { "Requeue", 4, set_requeue, NULL },
    { "ReqNodes", 8, set_nodes, NULL },
    { "NumNodes", 8, set_nodes, NULL },
    { "MinNodes", 4, set_nodes, NULL },
    { "ExcNodeList", 3, set_text, "exclude" },
    { "NodeList", 8, set_text, "nodelist" },
    { "ReqNodeList", 8, set_text, "nodelist" },
    { "Gres", 2, set_gres, NULL },
    { "TresPerNode", 11, set_gres, NULL },
    { "Account", 1, set_note, "account" },
    { "Dependency", 1, set_dependency, NULL },
    { "EligibleTime", 2, set_moment, "begin" },
    { "StartTime", 2, set_moment, "begin" },
    { "JobName", 4, set_text, "name" },
    { "Name", 2, set_text, "name" },
    { "QOS", 3, set_note, "qos" },
    { "WCKey", 1, set_note, "wckey" },
    { "Licenses", 1, set_note, "licenses" },
    { "Partition", 2, set_text, "partition" },
    { "MinMemoryNode", 10, set_memory, NULL },
    { "Deadline", 3, set_moment, "deadline" },
    { "TimeMin", 5, set_least, NULL },
    { "UserID", 3, set_user, NULL },
};

static const struct key *find_key(const char *word)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (scontrol_is_word(word, keys[i].name, keys[i].least))
            return &keys[i];
    return NULL;
}

/* "TimeLimit=+30": the resulting limit for this job. */
static int resolve_limit(struct client *client, const char *path, json_t *body, struct error *err)
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

/* "ArrayTaskThrottle=2": the resulting array, with the same indexes. 0: all tasks at a time. */
static int resolve_throttle(struct client *client, const char *path, json_t *body, struct error *err)
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

/* The options stored with the job, with these replacing those of the same names. */
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

/* "NumCPUs=8" and "Gres=gpu:2": CPUs per node, and GPUs of all nodes. */
static int resolve_counts(struct client *client, const char *path, json_t *body, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    int64_t cpus = field_integer(body, CPUS, 0), gpus = field_integer(body, GRES, -1);
    if (cpus == 0 && gpus < 0)
        return 0;
    int r = client_get(client, request, &job, err);
    int64_t nodes = field_integer(body, "nodes", field_integer(job, "nodes", 1));
    if (cpus > 0)
        (void)json_object_set_new(body, "cpus", json_integer((cpus + nodes - 1) / nodes));
    if (gpus >= 0)
        (void)json_object_set_new(body, "gpus", json_integer(gpus * nodes));
    if (gpus >= 0 && field_integer(job, "gpus_per_node", 0) > 0)
        (void)json_object_set_new(body, "gpus_per_node", gpus > 0 ? json_integer(gpus) : json_null());
    (void)json_object_del(body, CPUS);
    (void)json_object_del(body, GRES);
    return r;
}

/* "Deadline=": sets the latest start, which precedes it by the same time as before. */
static int resolve_deadline(struct client *client, const char *path, json_t *body, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    const char *deadline = field_text(body, "deadline");
    char utc[32];
    if (deadline == NULL)
        return 0;
    int r = client_get(client, request, &job, err);
    const char *left = slurm_job_note(job, SLURM_NOTE_LEFT_AT_DEADLINE);
    if (r < 0 || left == NULL)
        return r;
    utc_format(time_parse(deadline) - strtoll(left, NULL, 10) * 1000, utc, sizeof(utc));
    (void)json_object_set_new(body, "deadline", json_string(utc));
    return 0;
}

static int refuse_key(const char *text, struct error *err)
{
    _cleanup_free_ char *shown = text_escape(text, 120);
    (void)fprintf(stderr, "Update of this parameter is not supported: %s\n", shown);
    return scontrol_misuse(err, "Request aborted");
}

/* "NodeName=n1 State=DRAIN Reason=disk". */
static int update_nodes(struct client *client, int argc, char **argv, struct error *err)
{
    const char *nodes = NULL, *state = "", *reason = NULL;
    for (int i = 0; i < argc; i++) {
        const struct {
            const char *name, **value;
        } names[] = { { "NodeName", &nodes }, { "State", &state }, { "Reason", &reason } };
        const char *equals = strchr(argv[i], '=');
        _cleanup_free_ char *word = xstrndup(argv[i], equals != NULL ? (size_t)(equals - argv[i]) : 0);
        size_t k = 0;
        while (k < sizeof(names) / sizeof(names[0]) && !scontrol_is_word(word, names[k].name, 3))
            k++;
        if (k == sizeof(names) / sizeof(names[0]))
            return refuse_key(argv[i], err);
        *names[k].value = equals + 1;
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
        (void)fprintf(stderr, "slurm_update error: %s\n",
            r == -ENOENT  ? "Invalid node name specified"
            : r == -EPERM ? "Invalid user id"
                          : err->message);
    return r < 0 ? 1 : 0;
}

static int parse_jobs(const struct change *change, struct slurm_ids *ids, struct error *err)
{
    int r = scontrol_jobs_parse(change->client, change->value, ids, err);
    return r == -EINVAL ? scontrol_misuse(err, "Invalid job id specified for job %.60s", change->value) : r;
}

/* Reads "KEY=VALUE", "KEY+=VALUE" and "KEY VALUE" into the change and the jobs. */
static int read_changes(
    struct change *change, int argc, char **argv, struct slurm_ids *ids, struct error *err)
{
    int r = 0;
    for (int i = 0; r == 0 && i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        size_t length = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        _cleanup_free_ char *word =
            xstrndup(argv[i], length - (length > 0 && equals != NULL && equals[-1] == '+'));
        const struct key *key = find_key(word);
        bool is_job = scontrol_is_word(word, "JobId", 3);
        bool is_bare = equals == NULL && key != NULL && key->set == set_nice &&
                       (i + 1 == argc || strchr(argv[i + 1], '=') != NULL);
        if (equals == NULL && !is_bare && (i + 1 == argc || (key == NULL && !is_job)))
            return error_set(err, -EINVAL, "Invalid input: %.60s  Request aborted", argv[i]);
        change->value = equals != NULL ? equals + 1 : is_bare ? "100" : argv[++i];
        if (is_job)
            r = parse_jobs(change, ids, err);
        else if (key != NULL)
            r = key->set(change, key, err);
        else
            r = refuse_key(argv[i], err);
    }
    return r;
}

static int refuse_name(const struct change *change, const char *name, struct error *err)
{
    const struct passwd *user = change->user != NULL ? getpwnam(change->user) : NULL;
    _cleanup_free_ char *uid =
        user != NULL ? xasprintf("%u", user->pw_uid) : xstrdup(change->user != NULL ? change->user : "");
    return change->user != NULL
               ? error_set(err, -EINVAL, "No jobs with user ID %.60s and name '%.120s'", uid, name)
               : error_set(err, -EINVAL, "No jobs with name '%.120s'", name);
}

/* Without JobId, JobName names the jobs. */
static int find_by_name(struct change *change, struct slurm_ids *ids, struct error *err)
{
    const char *name = field_text(change->body, "name");
    _cleanup_json_ json_t *jobs = NULL;
    size_t index = 0;
    json_t *job = NULL;
    if (ids->count > 0)
        return 0;
    if (name == NULL)
        return scontrol_misuse(
            err, "No valid entity in update command; jobs and nodes are changed here: JobId=12");
    const struct slurm_query query = { .users = change->user != NULL ? change->user : slurm_own_name(),
        .name = name,
        .is_quick = true,
        .has_open_alone = true };
    int r = slurm_jobs_get(change->client, &query, &jobs, err);
    if (r == 0 && json_array_size(jobs) == 0)
        r = refuse_name(change, name, err);
    json_array_foreach(jobs, index, job)
    {
        _cleanup_free_ char *id = xasprintf("%" PRId64, field_integer(job, "id", 0));
        if (r == 0)
            r = slurm_ids_parse(id, ids, err);
    }
    (void)json_object_del(change->body, "name");
    return r;
}

static int change_jobs(struct change *change, const struct slurm_ids *ids, struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < ids->count; i++) {
        _cleanup_free_ char *path = slurm_id_path(&ids->items[i]);
        _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/edit", path);
        _cleanup_json_ json_t *changes = json_copy(change->body);
        int r = resolve_limit(change->client, path, changes, err);
        if (r == 0)
            r = resolve_throttle(change->client, path, changes, err);
        if (r == 0)
            r = resolve_counts(change->client, path, changes, err);
        if (r == 0)
            r = resolve_deadline(change->client, path, changes, err);
        if (r == 0)
            r = add_notes(change->client, path, &change->notes, changes, err);
        if (r == 0)
            r = client_call(change->client, "POST", request, changes, NULL, err);
        if (r < 0)
            status = scontrol_complain(change->client, "job", path, err);
    }
    return status;
}

int scontrol_update(struct client *client, int argc, char **argv, struct error *err)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    struct change change = { .client = client, .body = json_object() };
    const char *equals = argc > 0 ? strchr(argv[0], '=') : NULL;
    _cleanup_free_ char *word =
        argc > 0 ? xstrndup(argv[0], equals != NULL ? (size_t)(equals - argv[0]) : strlen(argv[0])) : NULL;
    int r = 0;
    if (word == NULL) {
        r = scontrol_misuse(err, "too few arguments for update keyword");
    } else if (scontrol_is_word(word, "NodeName", 3)) {
        r = update_nodes(client, argc, argv, err);
    } else if (scontrol_is_word(word, "PartitionName", 3)) {
        r = error_set(err, -ENOTSUP, "partitions are those of mgpud's configuration file (mgpud(8))");
    } else {
        r = read_changes(&change, argc, argv, &ids, err);
        if (r == 0)
            r = find_by_name(&change, &ids, err);
        if (r == 0)
            r = change_jobs(&change, &ids, err);
    }
    json_decref(change.body);
    strings_clear(&change.notes);
    return r;
}
