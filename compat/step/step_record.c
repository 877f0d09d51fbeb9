/* SPDX-License-Identifier: MIT */
#include "compat/step/step_record.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"

#include "base/json/field.h"
#include "job/step.h"

#define ABSENT_MS 5000 // time for mgpud to become reachable before a step begins
#define NOTICE_MS 1000 // after this time a waiting step prints a message
#define CLOCKS_MS 500  // by which the clocks of its node and of mgpud may differ at the time limit of a job

static json_t *write_nodes(const struct step *step)
{
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < step->nodes.count; i++) {
        int64_t tasks = step_tasks_on(step, i);
        (void)json_array_append_new(nodes, json_pack("{s:s,s:I,s:I}", "node", step->nodes.items[i], "tasks",
                                               (json_int_t)tasks, "gpus", (json_int_t)step_gpus_on(step, i)));
    }
    return nodes;
}

static json_t *write_request(const struct step *step, const char *key)
{
    const struct slurm_job *job = step->job;
    json_t *body = json_object();
    const char *slash = strrchr(step->command[0], '/');
    _cleanup_free_ char *name = text_escape_fit(job->name != NULL ? job->name
                                                : slash != NULL   ? slash + 1
                                                                  : step->command[0],
        STEP_NAME_MAX);
    (void)json_object_set_new(body, "key", json_string(key));
    (void)json_object_set_new(body, "name", json_string(name));
    (void)json_object_set_new(body, "exact", json_boolean(step_is_exact(job)));
    (void)json_object_set_new(body, "overlap", json_boolean(job->is_overlapping));
    if (job->cpus_per_task > 0)
        (void)json_object_set_new(body, "cpus_per_task", json_integer(job->cpus_per_task));
    if (step_memory_on(step, 0) > 0) // the first node has the most tasks
        (void)json_object_set_new(body, "memory", json_integer((json_int_t)step_memory_on(step, 0)));
    (void)json_object_set_new(body, "nodes", write_nodes(step));
    return body;
}

static int prepare(struct step_record *record, const struct step *step, struct error *err)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return error_set_errno(err, -errno, "cannot read random bytes");
    record->key = xasprintf("%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    json_t *body = write_request(step, record->key);
    record->begin_text = json_dumps(body, JSON_COMPACT);
    (void)json_object_set_new(body, "resume", json_true());
    record->resume_text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    record->path = xasprintf(API_PATH "/jobs/%" PRIu64 "/steps", step->job_id);
    client_init(&record->client, NULL, NULL);
    record->client.timeout_ms = CLIENT_PATIENT_MS;
    return 0;
}

/* If a step requests GPUs of a job that has none, this is the reason of the refusal, in two lines. */
static bool lacks_all_gpus(const struct step *step)
{
    static const char *const lists[] = { "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_GPUS" };
    bool has_some = step_gpus_on(step, 0) <= 0;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        has_some |= getenv(lists[i]) != NULL;
    return !has_some;
}

/* With Slurm's messages, which clients search for. */
static int refuse(const struct step *step, struct error *err)
{
    static const struct {
        int code;
        const char *words;
    } reasons[] = {
        { -EOVERFLOW, "More processors requested than permitted" },
        { -EALREADY, "Job/step already completing or completed" },
        { -EPERM, "Access/permission denied" },
        { -EACCES, "Access/permission denied" },
        { -ENOENT, "Invalid job id specified" },
    };
    if (err->code == -EOVERFLOW && lacks_all_gpus(step)) {
        (void)fputs("srun: error: Step requested GRES but job doesn't have GRES\n", stderr);
        return error_set(err, -EINVAL,
            "Unable to create step for job %" PRIu64 ": Invalid generic resource (gres) specification",
            step->job_id);
    }
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (err->code == reasons[i].code)
            return error_set(err, err->code, "Unable to create step for job %" PRIu64 ": %s", step->job_id,
                reasons[i].words);
    _cleanup_free_ char *message = xstrdup(err->message);
    return error_set(err, err->code, "Unable to create step for job %" PRIu64 ": %s", step->job_id, message);
}

/* Reads the first line of the response when it has arrived. */
static int read_step(struct step_record *record, struct error *err)
{
    const struct http_answer *answer = stream_answer(&record->stream);
    const char *text = (const char *)answer->body.bytes;
    size_t length = answer->body.length;
    const char *end = length > 0 ? memchr(text, '\n', length) : NULL;
    if (answer->status != 200)
        return record->stream.state == STREAM_COMPLETE ? client_problem(answer, err) : 0;
    if (end == NULL)
        return 0;
    record->step = json_loadb(text, (size_t)(end - text), 0, NULL);
    return record->step != NULL ? 1 : error_set(err, -EPROTO, "mgpud's answer is not JSON");
}

static int wait_readable(const struct step_record *record, int64_t notice_ms, bool *ret_is_readable)
{
    struct pollfd source = { .fd = stream_fd(&record->stream), .events = POLLIN };
    int timeout_ms = stream_wait_ms(&record->stream);
    int64_t left_ms = notice_ms - clock_boot_ms();
    if (left_ms > 0 && (timeout_ms < 0 || left_ms < timeout_ms))
        timeout_ms = (int)left_ms;
    if (poll(&source, 1, timeout_ms) < 0 && errno != EINTR)
        return -errno;
    *ret_is_readable = source.revents != 0;
    return 0;
}

static int await(struct step_record *record, const struct step *step, struct error *err)
{
    int64_t notice_ms = clock_boot_ms() + NOTICE_MS;
    bool is_readable = false, has_waited = false;
    int r = 0;
    for (;;) {
        r = stream_advance(&record->stream, is_readable, err);
        if (r < 0)
            return r;
        r = record->stream.http != NULL ? read_step(record, err) : 0;
        if (r != 0)
            break;
        if (notice_ms > 0 && clock_boot_ms() >= notice_ms) {
            (void)fprintf(stderr,
                "srun: Job %" PRIu64
                " step creation temporarily disabled, retrying (Requested nodes are busy)\n",
                step->job_id);
            notice_ms = 0;
            has_waited = true;
        }
        r = wait_readable(record, notice_ms, &is_readable);
        if (r < 0)
            return error_set_errno(err, r, "cannot wait for mgpud");
    }
    if (r > 0 && has_waited)
        (void)fprintf(stderr, "srun: Step created for StepId=%" PRIu64 ".%" PRId64 "\n", step->job_id,
            field_integer(record->step, "id", 0));
    return r < 0 ? r : 0;
}

static bool is_all_here(const struct step *step)
{
    return step->nodes.count == 1 && step->ranks[0] == step->here;
}

static int begin_once(struct step_record *record, const struct step *step, struct error *err)
{
    stream_start(&record->stream, &record->client, record->path);
    record->stream.method = "POST";
    record->stream.body = record->begin_text;
    return await(record, step, err);
}

int step_record_begin(struct step_record *record, const struct step *step, struct error *err)
{
    *record = (struct step_record){ 0 };
    int r = prepare(record, step, err);
    /* A job has the socket of mgpud or of its node, so mgpud may be restarting. */
    bool is_known = getenv("MGPU_SOCKET") != NULL || getenv("MGPU_HOST") != NULL;
    int64_t until_ms = is_known ? clock_boot_ms() + ABSENT_MS : 0;
    int delay_ms = 0;
    if (r < 0)
        return r;
    r = begin_once(record, step, err);
    while (client_is_away(err) && r < 0 && clock_boot_ms() < until_ms) {
        client_back_off(&delay_ms);
        stream_clear(&record->stream);
        r = begin_once(record, step, err);
    }
    if (r == 0) {
        record->stream.body = record->resume_text;
        return 0;
    }
    stream_clear(&record->stream);
    if (!client_is_away(err))
        return refuse(step, err);
    if (!is_all_here(step))
        return error_set(err, r,
            "Unable to create step for job %" PRIu64 ": Unable to contact slurm controller (connect failure)",
            step->job_id);
    (void)fprintf(stderr, "srun: warning: mgpud does not answer: this step is not recorded\n");
    return 0;
}

int step_record_fd(const struct step_record *record)
{
    return record->step != NULL ? stream_fd(&record->stream) : -1;
}

int step_record_wait_ms(const struct step_record *record)
{
    return record->step != NULL ? stream_wait_ms(&record->stream) : -1;
}

/* If the step is no longer recorded, its tasks continue, like those of a job without mgpud. */
void step_record_keep(struct step_record *record, bool is_readable)
{
    struct error err = { 0 };
    if (record->step == NULL || record->stream.state == STREAM_IDLE)
        return;
    if (stream_advance(&record->stream, is_readable, &err) != 0)
        stream_clear(&record->stream);
}

/* The next complete line of the response. After a reconnection, the response begins with the step again. */
static json_t *read_line(struct step_record *record)
{
    if (record->stream.http == NULL)
        return NULL;
    const struct buffer *body = &stream_answer(&record->stream)->body;
    const char *text = (const char *)body->bytes;
    if (body->length < record->taken)
        record->taken = 0;
    size_t left = body->length - record->taken;
    const char *end = left > 0 ? memchr(text + record->taken, '\n', left) : NULL;
    if (end == NULL)
        return NULL;
    size_t length = (size_t)(end - text) - record->taken;
    json_t *line = json_loadb(text + record->taken, length, 0, NULL);
    record->taken += length + 1;
    return line != NULL ? line : json_object();
}

int step_record_signal(struct step_record *record)
{
    for (;;) {
        _cleanup_json_ json_t *line = read_line(record);
        if (line == NULL)
            return 0;
        bool is_step = json_object_get(line, "id") != NULL;
        int signal = is_step ? 0 : (int)field_integer(line, "signal", 0);
        if (json_is_true(json_object_get(line, "cancel"))) {
            record->is_cancelled = true;
            return SIGKILL; // at once, as Slurm does for a single step
        }
        if (signal > 0)
            return signal;
    }
}

/* Adds the usage of all tasks, which the client includes in its reports. */
static void add_usage(json_t *body, const struct step *step)
{
    struct step_usage sum = { 0 };
    uint64_t rss = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < step->count; i++) {
        const struct step_usage *usage = &step->tasks[i].usage;
        sum.user_ms += usage->user_ms;
        sum.system_ms += usage->system_ms;
        rss += usage->max_rss;
        if (usage->max_rss > step->tasks[most].usage.max_rss)
            most = i;
    }
    if (rss == 0)
        return;
    (void)json_object_set_new(body, "max_rss", json_integer((json_int_t)step->tasks[most].usage.max_rss));
    (void)json_object_set_new(body, "max_rss_task", json_integer(most));
    (void)json_object_set_new(body, "ave_rss", json_integer((json_int_t)(rss / step->count)));
    (void)json_object_set_new(body, "user_ms", json_integer((json_int_t)sum.user_ms));
    (void)json_object_set_new(body, "system_ms", json_integer((json_int_t)sum.system_ms));
}

void step_record_report(struct step_record *record, const struct step *step)
{
    struct error err = { 0 };
    if (record->step == NULL)
        return;
    _cleanup_free_ char *path = xasprintf("%s/usage", record->path);
    _cleanup_json_ json_t *body =
        json_pack("{s:I}", "step", (json_int_t)field_integer(record->step, "id", 0));
    add_usage(body, step);
    int64_t patient_ms = record->client.timeout_ms;
    record->client.timeout_ms = 0; // the tasks do not wait for mgpud, and an older one lacks this
    (void)client_call(&record->client, "POST", path, body, NULL, &err);
    record->client.timeout_ms = patient_ms;
}

bool step_record_is_late(struct step_record *record, const struct step *step)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRIu64, step->job_id);
    int64_t patient_ms = record->client.timeout_ms;
    if (record->step == NULL)
        return false;
    record->client.timeout_ms = 0; // the tasks end whether or not mgpud answers
    int r = client_get(&record->client, path, &job, NULL);
    record->client.timeout_ms = patient_ms;
    const char *started = r == 0 ? field_text(job, "started_at") : NULL;
    double limit_s = r == 0 ? field_number(job, "time_limit", 0) : 0;
    return started != NULL && limit_s > 0 &&
           clock_wall_ms() + CLOCKS_MS >= time_parse(started) + (int64_t)(limit_s * 1000);
}

/* The signal that ended a task whose exit is the status of the step; 0: none. */
static int step_signal_of(const struct step *step, int status)
{
    for (uint32_t i = 0; i < step->count; i++)
        if (WIFSIGNALED(step->tasks[i].status) && 128 + WTERMSIG(step->tasks[i].status) == status)
            return status - 128;
    return 0;
}

void step_record_end(struct step_record *record, const struct step *step, int status)
{
    struct error err = { 0 };
    if (record->step == NULL)
        return;
    int signal = step_signal_of(step, status);
    _cleanup_free_ char *path = xasprintf("%s/end", record->path);
    _cleanup_json_ json_t *body =
        json_pack("{s:I,s:i,s:i,s:b}", "step", (json_int_t)field_integer(record->step, "id", 0), "exit_code",
            signal > 0 ? 0 : status, "signal", signal, "cancelled", record->is_cancelled);
    add_usage(body, step);
    if (step_count_out_of_memory(step) > 0)
        (void)json_object_set_new(body, "out_of_memory", json_true());
    int r = client_call(&record->client, "POST", path, body, NULL, &err);
    if (r == -EINVAL &&
        json_object_del(body, "out_of_memory") == 0) // an mgpud that does not support this yet
        (void)client_call(&record->client, "POST", path, body, NULL, &err);
    /* Other errors are ignored: a job that ends has ended its steps. */
    stream_clear(&record->stream);
}

void step_record_clear(struct step_record *record)
{
    stream_clear(&record->stream);
    client_clear(&record->client);
    json_decref(record->step);
    free(record->path);
    free(record->key);
    free(record->begin_text);
    free(record->resume_text);
}
