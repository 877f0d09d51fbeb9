/* SPDX-License-Identifier: MIT */
/*
 * mgpu gpu test --park: on one GPU of each model of a node, jobs that fill memory with a pattern are parked
 * and return, with 1, 8 and 40 GiB as far as they fit. Each is preceded by a control with the same memory and
 * without parking, which distinguishes a faulty GPU from memory changed by parking. If the node has another
 * GPU of the model, one more job must return there, because a third job has its own.
 *
 *   submit ──status "ready"──> park ──parked──> unpark ──it runs──> it compares its memory and ends
 *
 * The times are those of the job's events. The results are sent to mgpud, which stores them. The daemons are
 * not killed meanwhile, because a job must not do that on a machine that others use.
 */
#include "cli/cluster/gpu_test_park.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/programs.h"
#include "cli/show/job_end.h"
#include "cli/submit/submit.h"

#define JOB_NAME   "gpu-test"
#define PROGRAM    "mgpu-gpu-test"
#define READY      "ready" // lab/cuda/probes.h
#define GIB        (UINT64_C(1) << 30)
#define MIB        (UINT64_C(1) << 20)
#define MOST_BYTES (40 * GIB)
#define USABLE     90U // percent of a GPU's memory that is free if no job uses it
#define TIME_LIMIT "20m"
#define TRY_MS     (15 * 60 * 1000) // a job that has not ended by then is cancelled
#define LOOK_MS    100              // between two checks of a job that is to be parked
#define RETURN_S   600              // a parked job returns by itself if this program ends
#define SIZES      3U
#define REFUSED    1 // it was not parked, and everything else is correct

/* --- one job --- */

enum step { BEGINNING, PARKING, RETURNING, BACK };

/* The owner of the jobs: mgpud accepts none of root. */
struct submitter {
    struct client client;
    uid_t uid;
    gid_t gid;
    bool is_other; // than the caller
};

struct trial {
    struct call *call;
    struct submitter *submitter;
    const json_t *node;
    json_t *row;   // its result
    char *own_gpu; // "node:3"
    uint64_t bytes;
    bool is_elsewhere; // its own GPU is given to another job while it is parked
    enum step step;
    int64_t look_ms;      // boot clock: time of the next check
    int64_t job, blocker; // 0: none
    char *why;            // why it was not parked; NULL: no reason so far
};

static void trial_clear(struct trial *trial)
{
    free(trial->own_gpu);
    free(trial->why);
}

static void fail(struct trial *trial, const char *result, char *text)
{
    (void)json_object_set_new(trial->row, "result", json_string(result));
    (void)json_object_set_new(trial->row, "text", json_string(text));
    free(text);
}

/* mgpud identifies the process that connects. */
static int enter_submitter(const struct submitter *submitter, struct error *err)
{
    if (submitter->is_other && (setegid(submitter->gid) < 0 || seteuid(submitter->uid) < 0))
        return error_set_errno(err, -errno, "cannot submit as uid %u", submitter->uid);
    return 0;
}

static void leave_submitter(const struct submitter *submitter)
{
    if (submitter->is_other && (seteuid(0) < 0 || setegid(0) < 0))
        abort();
}

static void submitter_clear(struct submitter *submitter)
{
    client_clear(&submitter->client);
}

/* `name` NULL: the caller, or the user behind sudo. */
static int find_submitter(struct call *call, const char *name, struct submitter *ret, struct error *err)
{
    const char *user = name != NULL || geteuid() != 0 ? name : getenv("SUDO_USER");
    const struct passwd *entry = user != NULL ? getpwnam(user) : NULL;
    client_init(&ret->client, call->socket, call->host);
    if (user != NULL && entry == NULL)
        return error_set(err, -ENOENT, "there is no user '%.64s'", user);
    if (entry == NULL || entry->pw_uid == geteuid())
        return 0;
    if (geteuid() != 0)
        return error_set(err, -EPERM, "only root can submit the jobs of the test as %s", user);
    ret->uid = entry->pw_uid;
    ret->gid = entry->pw_gid;
    ret->is_other = true;
    return 0;
}

/* A job that uses this much memory on `gpu_ids`, or (NULL) on any GPU of the model on the node. */
static int submit(const struct trial *trial, const char *gpu_ids, const char *seconds, bool is_parked,
    int64_t *ret_job, struct error *err)
{
    _cleanup_free_ char *program = program_find(PROGRAM);
    _cleanup_free_ char *memory = xasprintf("%" PRIu64 "M", trial->bytes / MIB);
    const char *libraries = getenv("LD_LIBRARY_PATH");
    _cleanup_json_ json_t *job = NULL;
    _cleanup_json_ json_t *request = json_pack("{s:[s,s,s,s,s,s], s:s, s:s, s:s, s:{s:s*}}", "command",
        program, "hold", "-m", memory, "-s", seconds, "name", JOB_NAME, "cwd", "/", "time_limit", TIME_LIMIT,
        "env", "LD_LIBRARY_PATH", libraries);
    if (request == NULL)
        return error_set(err, -EINVAL, "LD_LIBRARY_PATH is not UTF-8 text");
    if (is_parked)
        (void)json_array_append_new(json_object_get(request, "command"), json_string("-c"));
    if (gpu_ids != NULL) {
        (void)json_object_set_new(request, "gpu_ids", json_string(gpu_ids));
    } else {
        (void)json_object_set_new(request, "gpus", json_integer(1));
        (void)json_object_set(request, "nodelist", json_object_get(trial->node, "name"));
        (void)json_object_set_new(request, "gpu_model", json_string(field_text(trial->row, "model")));
        (void)json_object_set_new(request, "park_anywhere", json_true());
    }
    int r = submit_renew_key(request, err);
    if (r == 0)
        r = enter_submitter(trial->submitter, err);
    if (r == 0)
        r = client_call(&trial->submitter->client, "POST", API_PATH "/jobs", request, &job, err);
    leave_submitter(trial->submitter);
    if (r == 0)
        *ret_job = field_integer(job, "id", 0);
    return r;
}

static int post(const struct trial *trial, int64_t job, const char *deed, json_t *body, struct error *err)
{
    _cleanup_json_ json_t *owned = body;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64 "/%s", job, deed);
    return client_call(&trial->call->client, "POST", path, owned, NULL, err);
}

/* The job ends soon, so the caller does not wait for it. */
static void cancel(const struct trial *trial, int64_t job)
{
    struct error ignored = { 0 };
    if (job != 0)
        (void)post(trial, job, "cancel", json_pack("{s:i}", "grace_s", 0), &ignored);
}

/* Ends the job after an error that makes it impossible to continue. */
static void give_up(struct trial *trial, const struct error *err)
{
    if (trial->why == NULL)
        trial->why = xstrdup(err->message);
    cancel(trial, trial->job);
    trial->step = BACK;
}

static char *gpu_of(const struct trial *trial, const json_t *job)
{
    const json_t *granted = json_array_get(json_object_get(job, "granted"), 0);
    return granted == NULL ? NULL
                           : xasprintf("%s:%" PRId64, field_text(trial->node, "name"),
                                 field_integer(granted, "index", 0));
}

/* Another job takes the GPU that it left. */
static int block(struct trial *trial, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    struct trial small = *trial;
    small.bytes = MIB;
    int r = submit(&small, trial->own_gpu, "600", false, &trial->blocker, err);
    _cleanup_free_ char *id = xasprintf("%" PRId64, trial->blocker);
    return r < 0 ? r
                 : job_end_await_printing(
                       trial->call, id, "running,done", clock_boot_ms() + TRY_MS, NULL, &job, err);
}

static void begin_park(struct trial *trial, const json_t *job)
{
    struct error err = { 0 };
    if (!field_is(job, "status", READY))
        return;
    free(trial->own_gpu);
    trial->own_gpu = gpu_of(trial, job);
    trial->step = PARKING;
    if (post(trial, trial->job, "park", json_pack("{s:i}", "for_s", RETURN_S), &err) < 0)
        give_up(trial, &err);
}

static void begin_return(struct trial *trial, const json_t *job)
{
    struct error err = { 0 };
    if (!field_is_known(job, "park")) {
        const char *why = field_text(job, "park_text");
        trial->why = xstrdup(why != NULL ? why : "it was not parked");
        trial->step = BACK;
        return;
    }
    if (!field_is(job, "park", "parked"))
        return;
    trial->step = RETURNING;
    if ((trial->is_elsewhere && block(trial, &err) < 0) ||
        post(trial, trial->job, "unpark", json_object(), &err) < 0)
        give_up(trial, &err);
}

static int wait_ms(const void *arg)
{
    const struct trial *trial = arg;
    int64_t left_ms = trial->look_ms - clock_boot_ms();
    return trial->step >= RETURNING ? -1 : left_ms > 0 ? (int)left_ms : 0;
}

static void advance_trial(void *arg, const json_t *job)
{
    struct trial *trial = arg;
    trial->look_ms = clock_boot_ms() + LOOK_MS;
    if (trial->step == BEGINNING)
        begin_park(trial, job);
    else if (trial->step == PARKING)
        begin_return(trial, job);
}

/* Milliseconds from the last event of one type to the next one of another; -1: there were none. */
static int64_t time_between(const json_t *job, const char *from, const char *to)
{
    int64_t begin_ms = -1, ms = -1;
    const json_t *event;
    size_t i;
    json_array_foreach(json_object_get(job, "events"), i, event)
    {
        if (field_is(event, "type", from))
            begin_ms = time_parse(field_text(event, "at"));
        else if (field_is(event, "type", to) && begin_ms >= 0)
            ms = time_parse(field_text(event, "at")) - begin_ms;
    }
    return ms;
}

static void set_time(struct trial *trial, const char *member, const char *rate, int64_t ms)
{
    (void)json_object_set_new(trial->row, member, ms >= 0 ? json_integer(ms) : json_null());
    (void)json_object_set_new(trial->row, rate,
        ms > 0 ? json_integer((json_int_t)((double)trial->bytes * 1000 / (double)ms)) : json_null());
}

static char *not_parked(const json_t *job)
{
    const char *why = field_text(job, "park_text");
    return xstrdup(why != NULL ? why : "it was not parked, or did not return");
}

static void judge(struct trial *trial, const json_t *job)
{
    _cleanup_free_ char *gpu = gpu_of(trial, job);
    bool is_away = gpu != NULL && trial->own_gpu != NULL && strcmp(gpu, trial->own_gpu) != 0;
    if (trial->step == BEGINNING)
        fail(trial, "failed", xasprintf("job %" PRId64 " held no memory", trial->job));
    else if (trial->why != NULL)
        fail(trial, "refused", xstrdup(trial->why));
    else if (time_between(job, "park", "parked") < 0 || time_between(job, "unpark", "unparked") < 0)
        fail(trial, "refused", not_parked(job)); // it ended before its refusal was noticed
    else if (!field_is(job, "state", "done"))
        fail(trial, "failed",
            xasprintf("job %" PRId64 " ended as %s, and the same memory was correct without parking",
                trial->job, field_text(job, "state")));
    else if (trial->is_elsewhere && !is_away)
        fail(trial, "refused", xstrdup("it returned only to its own GPU"));
    else
        (void)json_object_set_new(trial->row, "result", json_string("passed"));
    (void)json_object_set_new(trial->row, "return", json_string(is_away ? "other" : "own"));
    set_time(trial, "save_ms", "save_bytes_per_s", time_between(job, "park", "parked"));
    set_time(trial, "load_ms", "load_bytes_per_s", time_between(job, "restoring", "unparked"));
}

/* Returns the complete job, with its events. */
static int await(struct trial *trial, const struct job_end_news *news, json_t **ret, struct error *err)
{
    _cleanup_free_ char *id = xasprintf("%" PRId64, trial->job);
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", id);
    _cleanup_json_ json_t *ended = NULL;
    int r = job_end_await_printing(trial->call, id, "done", clock_boot_ms() + TRY_MS, news, &ended, err);
    if (r == -ETIME)
        cancel(trial, trial->job);
    return r < 0 ? r : client_get(&trial->call->client, path, ret, err);
}

/* False: memory is wrong without parking, or the job cannot run. */
static int control(struct trial *trial, const char *gpu, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    int r = submit(trial, gpu, "0", false, &trial->job, err);
    if (r == 0)
        r = await(trial, NULL, &job, err);
    if (r == 0 && !field_is(job, "state", "done")) {
        const char *message = field_text(job, "message");
        fail(trial, "failed",
            xasprintf("job %" PRId64 ", which was not parked, ended as %s: %s", trial->job,
                field_text(job, "state"), message != NULL ? message : "mgpu logs shows why"));
    }
    return r;
}

/* `gpu` NULL: on any GPU of the model, and it must return on another one. */
static int run_trial(struct trial *trial, const char *gpu, struct error *err)
{
    const struct job_end_news news = { .wait_ms = wait_ms, .on_job = advance_trial, .arg = trial };
    _cleanup_json_ json_t *job = NULL;
    int r = gpu != NULL ? control(trial, gpu, err) : 0;
    if (r < 0 || field_is_known(trial->row, "result"))
        return r;
    trial->is_elsewhere = gpu == NULL;
    r = submit(trial, gpu, "600", true, &trial->job, err);
    if (r == 0)
        r = await(trial, &news, &job, err);
    cancel(trial, trial->blocker);
    (void)json_object_set_new(trial->row, "job", json_integer(trial->job));
    if (r == 0)
        judge(trial, job);
    if (r == -ETIME) {
        fail(trial, "failed", xasprintf("job %" PRId64 " has not come back after 15 minutes", trial->job));
        r = 0;
    }
    return r;
}

/* --- one node --- */

struct session {
    struct call *call;
    struct submitter *submitter;
    const json_t *node;
    json_t *tests;  // rows of all nodes
    json_t *claims; // results sent to mgpud
    uint64_t most_bytes;
};

static int try_size(struct session *session, const json_t *gpu, uint64_t bytes, bool is_elsewhere,
    const json_t **ret_row, struct error *err)
{
    _cleanup_free_ char *name =
        xasprintf("%s:%" PRId64, field_text(session->node, "name"), field_integer(gpu, "index", 0));
    json_t *row = json_pack("{s:s, s:O, s:I, s:s}", "gpu", name, "model", json_object_get(gpu, "model"),
        "memory_bytes", (json_int_t)bytes, "return", "own");
    _cleanup_(trial_clear) struct trial trial = { .call = session->call,
        .submitter = session->submitter,
        .node = session->node,
        .row = row,
        .bytes = bytes };
    (void)json_array_append_new(session->tests, row);
    *ret_row = row;
    return run_trial(&trial, is_elsewhere ? NULL : name, err);
}

/* 1, 8 and 40 GiB; smaller sizes if these do not fit. At least two, to distinguish a fixed cost from a
 * speed. */
static size_t choose_sizes(const json_t *gpu, uint64_t most_bytes, uint64_t ret[SIZES + 1])
{
    static const uint64_t sizes[SIZES] = { GIB, 8 * GIB, 40 * GIB };
    uint64_t fits = (uint64_t)field_number(gpu, "memory_bytes", 0) / 100 * USABLE;
    uint64_t most =
        (most_bytes != 0 ? most_bytes : MOST_BYTES) < fits ? most_bytes != 0 ? most_bytes : MOST_BYTES : fits;
    size_t count = 0;
    for (size_t i = 0; i < SIZES; i++)
        if (sizes[i] <= most)
            ret[count++] = sizes[i];
    if (count == 0)
        ret[count++] = most / 4 / MIB * MIB;
    if (count == 1)
        ret[count++] = most / MIB * MIB;
    return count;
}

static void claim(struct session *session, const char *what, const json_t *row)
{
    _cleanup_free_ char *bytes = xasprintf("%s_bytes", what), *save = xasprintf("%s_save_ms", what),
                        *load = xasprintf("%s_load_ms", what);
    (void)json_object_set(session->claims, bytes, json_object_get(row, "memory_bytes"));
    (void)json_object_set(session->claims, save, json_object_get(row, "save_ms"));
    (void)json_object_set(session->claims, load, json_object_get(row, "load_ms"));
}

static void claim_failure(struct session *session, const json_t *row)
{
    (void)json_object_set_new(session->claims, "passed", json_false());
    (void)json_object_set_new(session->claims, "wrong", json_boolean(field_is(row, "result", "failed")));
    (void)json_object_set(session->claims, "text", json_object_get(row, "text"));
}

static bool has_passed(const struct session *session)
{
    return json_is_true(json_object_get(session->claims, "passed"));
}

/* A size that does not fit into host memory is refused, which is correct where smaller ones could be
 * parked. */
static int try_sizes(struct session *session, const json_t *gpu, struct error *err)
{
    uint64_t sizes[SIZES + 1];
    size_t count = choose_sizes(gpu, session->most_bytes, sizes);
    for (size_t i = 0; i < count; i++) {
        const json_t *row = NULL;
        int r = try_size(session, gpu, sizes[i], false, &row, err);
        if (r < 0)
            return r;
        if (field_is(row, "result", "refused") && i > 0)
            return 0;
        if (!field_is(row, "result", "passed")) {
            claim_failure(session, row);
            return 0;
        }
        if (i == 0)
            claim(session, "least", row);
        claim(session, "most", row);
    }
    return 0;
}

/* The last of the models decides; if one refuses, that decides for all. */
static int try_elsewhere(struct session *session, const json_t *gpu, struct error *err)
{
    const json_t *row = NULL;
    uint64_t sizes[SIZES + 1];
    (void)choose_sizes(gpu, session->most_bytes, sizes);
    int r = try_size(session, gpu, sizes[0], true, &row, err);
    if (r < 0)
        return r;
    bool is_refused = field_is(session->claims, "elsewhere", "refused");
    if (field_is(row, "result", "failed"))
        claim_failure(session, row);
    else if (!is_refused)
        (void)json_object_set_new(session->claims, "elsewhere",
            json_string(field_is(row, "result", "passed") ? "passed" : "refused"));
    return 0;
}

static size_t count_alike(const json_t *gpus, const json_t *gpu, size_t before)
{
    size_t count = 0, i;
    const json_t *other;
    json_array_foreach(gpus, i, other)
    {
        if (i < before && field_is(other, "node", field_text(gpu, "node")) &&
            field_is(other, "model", field_text(gpu, "model")))
            count++;
    }
    return count;
}

static int store_result(struct session *session, json_t *models, struct error *err)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/nodes/%s/parking", field_text(session->node, "name"));
    (void)json_object_set(session->claims, "driver", json_object_get(session->node, "driver"));
    (void)json_object_set(session->claims, "models", models);
    return client_call(&session->call->client, "POST", path, session->claims, NULL, err);
}

static int test_node(struct session *session, const json_t *gpus, struct error *err)
{
    _cleanup_json_ json_t *claims = json_pack("{s:b}", "passed", true), *models = json_array();
    const json_t *gpu;
    size_t i;
    int r = 0;
    session->claims = claims;
    json_array_foreach(gpus, i, gpu)
    {
        bool is_here =
            field_is(gpu, "node", field_text(session->node, "name")) && field_is_known(gpu, "model");
        if (!is_here || count_alike(gpus, gpu, i) > 0 || r < 0)
            continue;
        (void)json_array_append(models, json_object_get(gpu, "model"));
        if (has_passed(session))
            r = try_sizes(session, gpu, err);
        if (r == 0 && has_passed(session) && count_alike(gpus, gpu, json_array_size(gpus)) > 1)
            r = try_elsewhere(session, gpu, err);
    }
    if (r == 0)
        r = store_result(session, models, err);
    return r < 0 ? r : has_passed(session) ? EXIT_OK : EXIT_PARTLY;
}

/* --- the nodes --- */

static int check_role(struct call *call, struct error *err)
{
    _cleanup_json_ json_t *caller = NULL;
    int r = client_get(&call->client, API_PATH "/whoami", &caller, err);
    if (r < 0 || field_is(caller, "role", "admin") || field_is(caller, "role", "administrator") ||
        field_is(caller, "role", "operator"))
        return r;
    (void)error_set(err, -EPERM, "only operators may record whether a node can park jobs");
    return error_hint(err, "mgpu users shows roles; mgpu gpu test without --park is for every user");
}

static bool is_wanted(const json_t *node, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (field_is(node, "name", argv[i]))
            return true;
    return argc == 0 && !field_is(json_object_get(node, "parking"), "state", "none");
}

static int check_wanted(const json_t *nodes, int argc, char **argv, struct error *err)
{
    const json_t *node;
    size_t i;
    for (int k = 0; k < argc; k++) {
        bool is_there = false;
        json_array_foreach(nodes, i, node) is_there |= field_is(node, "name", argv[k]);
        if (!is_there) {
            (void)error_set(err, -ENOENT, "there is no node '%.100s'", argv[k]);
            return error_hint(err, "all nodes: mgpu nodes");
        }
    }
    return 0;
}

static int check_node(const json_t *node, struct error *err)
{
    const char *name = field_text(node, "name");
    if (!json_is_true(json_object_get(node, "up")))
        return error_set(err, -EHOSTDOWN, "node %s is not connected", name);
    if (field_is(json_object_get(node, "parking"), "state", "none")) {
        (void)error_set(err, -EINVAL, "node %s cannot park jobs", name);
        return error_hint(err, "mgpu doctor %s shows why", name);
    }
    return field_is_known(node, "driver")
               ? 0
               : error_set(err, -EINVAL, "node %s does not report its driver", name);
}

int gpu_test_park(
    struct call *call, int argc, char **argv, const struct gpu_test_park_options *options, struct error *err)
{
    struct screen screen;
    _cleanup_(submitter_clear) struct submitter submitter = { 0 };
    _cleanup_json_ json_t *nodes = NULL, *gpus = NULL, *result = json_pack("{s:[]}", "tests");
    struct session session = { .call = call,
        .tests = json_object_get(result, "tests"),
        .most_bytes = options->most_bytes,
        .submitter = &submitter };
    size_t i, count = 0;
    int status = EXIT_OK;
    int r = find_submitter(call, options->user, &submitter, err);
    if (r == 0)
        r = check_role(call, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/nodes", &nodes, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/gpus", &gpus, err);
    if (r == 0)
        r = check_wanted(json_object_get(nodes, "nodes"), argc, argv, err);
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    json_array_foreach(json_object_get(nodes, "nodes"), i, session.node)
    {
        if (r < 0 || !is_wanted(session.node, argc, argv))
            continue;
        count++;
        r = check_node(session.node, err);
        if (r == 0)
            r = test_node(&session, json_object_get(gpus, "gpus"), err);
        status = r > 0 ? r : status;
        r = r > 0 ? 0 : r;
    }
    if (r == 0 && count == 0)
        r = error_set(err, -ENOENT, "there is no node where jobs can be parked");
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    r = list_print(call, &gpu_test_park_list, &screen, result, stdout, err);
    return r < 0 ? r : status;
}
