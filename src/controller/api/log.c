/* SPDX-License-Identifier: MIT */
/*
 * GET /jobs/ID/log. mgpud does not open users' files: the node gets OPEN_LOG, connects back, and its bytes
 * are forwarded.
 *
 *   find the job ──> not started: wait for the start (follow, wait) or 404
 *        │
 *        v            "bytes=-N": the size must be known first, so the log is opened once just for that
 *   OPEN_LOG ──> stream arrives ──> header sent ──> bytes ──> end of the stream
 *                                     └─ follow: when the job has ended, the controller shuts down its
 *                                        side of the stream; the agent then sends the rest and closes
 *
 * Back-pressure: while a client has LIMIT_STREAM_BUFFER_BYTES unread, the stream is not read, so the agent's
 * socket fills up and the agent waits. When a client leaves, its stream is closed at once (release_log).
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/http/range.h"
#include "controller/nodes/links.h"
#include "controller/nodes/streams.h"
#include "job/behind.h"
#include "job/launch.h"

#define STREAM_INPUT_MAX (64U << 10)
#define PIECE_MAX        (64U << 10) // bytes per read

struct log_reader {
    bool is_follow, is_wait;
    bool is_error;    // the log of standard error
    uint32_t rank;    // rank of the log, for a job on several nodes
    uint32_t attempt; // that attempt or a later one, until it ends; 0: any, until the job ends
    struct range range;
    bool is_counted;     // counts in the user's share
    bool is_probe;       // opened only to determine the size
    bool is_growing;     // the job had not ended when the log was opened
    bool is_job_over;    // the agent was told to stop at the end
    bool is_stream_over; // the stream has ended
    uint64_t expected;   // id of the stream that has not arrived yet, or 0
    struct bufferevent *stream;
    struct evbuffer *piece; // bytes that were read and not yet sent
    uint64_t left;          // bytes still to be sent; UINT64_MAX: until the end
    uint64_t position;      // position in the file of the next byte to send
    uint64_t size;          // size of the log at the end of the job; 0: unknown
};

static void release_log(struct request *request)
{
    struct log_reader *log = request->work;
    struct controller *controller = request->serve->controller;
    if (log->expected != 0)
        streams_forget(controller->streams, log->expected);
    if (log->stream != NULL)
        bufferevent_free(log->stream);
    if (log->piece != NULL)
        evbuffer_free(log->piece);
    if (log->is_counted)
        users_give(request->serve->users, request->who.uid, SHARE_FOLLOWS, 1);
    free(log);
}

/* --- bytes --- */

static void finish_log(struct request *request)
{
    struct log_reader *log = request->work;
    bufferevent_free(take_ptr(log->stream));
    bool is_at_end = (log->is_job_over || !log->is_growing) && log->position >= log->size;
    bool is_whole = log->left == 0 || (log->left == UINT64_MAX && is_at_end);
    if (is_whole)
        request_end_stream(request);
    else
        request_break_stream(request); // the file shrank, or its node became unreachable
}

/* libevent reads 4 KiB at a time, so the rest is read here. False if nothing more is available now. */
static bool fetch(struct log_reader *log, size_t wanted)
{
    struct evbuffer_iovec space;
    if (evbuffer_reserve_space(log->piece, (ev_ssize_t)wanted, &space, 1) < 1)
        abort(); // memory
    ssize_t n = recv(bufferevent_getfd(log->stream), space.iov_base, wanted, MSG_DONTWAIT);
    if (n == 0)
        log->is_stream_over = true;
    space.iov_len = n > 0 ? (size_t)n : 0;
    (void)evbuffer_commit_space(log->piece, &space, 1);
    return n == (ssize_t)wanted;
}

/* Takes at most `room` of the received bytes. */
static void take_piece(struct log_reader *log, size_t room)
{
    struct evbuffer *input = bufferevent_get_input(log->stream);
    size_t wanted = log->left < room ? (size_t)log->left : room;
    bool is_more = !log->is_stream_over && evbuffer_get_length(input) <= wanted;
    (void)evbuffer_remove_buffer(input, log->piece, wanted);
    for (size_t length; is_more && (length = evbuffer_get_length(log->piece)) < wanted;)
        is_more = fetch(log, wanted - length < PIECE_MAX ? wanted - length : PIECE_MAX);
    log->position += evbuffer_get_length(log->piece);
    if (log->left != UINT64_MAX)
        log->left -= evbuffer_get_length(log->piece);
}

/* Passes on received bytes while the client has space. */
static void pump(struct request *request)
{
    struct log_reader *log = request->work;
    size_t room = request_room(request);
    if (log->stream == NULL)
        return;
    if (room > 0) {
        take_piece(log, room);
        request_stream_buffer(request, log->piece);
        connection_flush(request->connection);
    }
    bool is_empty = evbuffer_get_length(bufferevent_get_input(log->stream)) == 0;
    if (log->left == 0 || (log->is_stream_over && is_empty))
        finish_log(request);
    else if (request_room(request) == 0)
        (void)bufferevent_disable(log->stream, EV_READ); // on_drained calls again
    else
        (void)bufferevent_enable(log->stream, EV_READ);
}

static void on_bytes(struct bufferevent *stream, void *arg)
{
    pump(arg);
}

static void on_stream_condition(struct bufferevent *stream, short what, void *arg)
{
    struct request *request = arg;
    struct log_reader *log = request->work;
    log->is_stream_over = true;
    pump(request);
}

/* A link that breaks now looks like the end of the log. For several nodes only the total size is known. */
static void note_size(struct request *request)
{
    struct log_reader *log = request->work;
    const struct job *job = core_job(request->serve->controller->core, request->job);
    if (job != NULL && job->state == JOB_DONE && job_node_count(job) == 1 && !log->is_error)
        log->size = job_run(job)->log_bytes;
}

static void on_job_over(struct request *request, const struct core_answer *answer)
{
    struct log_reader *log = request->work;
    log->is_job_over = true;
    note_size(request);
    if (log->stream != NULL)
        (void)shutdown(bufferevent_getfd(log->stream), SHUT_WR);
}

static bool send_head(struct request *request, uint64_t size)
{
    struct log_reader *log = request->work;
    const struct range *range = &log->range;
    char span[96] = "";
    if (range->is_given && log->is_follow) // the end is unknown: the largest position represents it
        (void)snprintf(span, sizeof(span), "bytes %" PRIu64 "-%" PRId64 "/*", range->offset, INT64_MAX);
    else if (range->is_given)
        (void)snprintf(span, sizeof(span), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range->offset,
            range->offset + range->length - 1, size);
    request_add_header(request, "Accept-Ranges", "bytes");
    if (range->is_given)
        request_add_header(request, "Content-Range", span);
    return request_start_stream(request, range->is_given ? 206 : 200, "application/octet-stream",
        log->is_follow ? STREAM_ENDLESS : range->length);
}

static void begin_stream(struct request *request, struct bufferevent *stream, uint64_t size)
{
    struct log_reader *log = request->work;
    log->left = log->is_follow ? UINT64_MAX : log->range.length;
    log->position = log->range.offset;
    if (log->is_follow && log->range.length != 0)
        log->left = log->range.length; // "bytes=N-M"
    else if (log->is_follow && !log->is_growing)
        log->left = size > log->range.offset ? size - log->range.offset : 0;
    if (!send_head(request, size)) {
        bufferevent_free(stream);
        return;
    }
    log->stream = stream;
    log->piece = evbuffer_new();
    if (log->piece == NULL)
        abort(); // memory
    request->on_drained = pump;
    if (log->is_follow)
        connection_disable_timeouts(request->connection);
    bufferevent_setcb(stream, on_bytes, NULL, on_stream_condition, request);
    (void)bufferevent_enable(stream, EV_READ);
    bufferevent_setwatermark(stream, EV_READ, 0, STREAM_INPUT_MAX);
    pump(request); // bytes received with the first frame
    if (log->stream == NULL || !log->is_growing)
        return;
    request->on_answer = on_job_over;
    uint32_t over = 1U << JOB_DONE | (log->attempt > 0 ? 1U << JOB_QUEUED : 0);
    core_wait(request->serve->controller->core, request->job, over, request);
}

/* --- opening --- */

static void open_log(struct request *request, const struct job *job);

static int error_of_open(const struct message_stream *first, uint64_t job, struct error *err)
{
    static const struct {
        int given, shown;
    } codes[] = { { ENOENT, -ENOENT }, { ENOTDIR, -ENOENT }, { EACCES, -EPERM }, { EPERM, -EPERM },
        { ELOOP, -EPERM }, { EINVAL, -EPERM }, { ENXIO, -EPERM } }; // a link, no regular file, a socket
    int code = -EHOSTDOWN;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].given == first->error)
            code = codes[i].shown;
    return error_set(err, code, "the log of job %" PRIu64 " cannot be read: %s", job,
        first->text != NULL ? first->text : strerror(first->error));
}

/* Fits the range to the file. With `follow` the file may still grow, so no position is beyond its end. */
static int resolve(struct request *request, uint64_t size, struct error *err)
{
    struct log_reader *log = request->work;
    if (log->is_follow && !log->range.is_suffix)
        return 0;
    if (log->is_follow && size == 0) {
        log->range = (struct range){ .is_given = true };
        return 0;
    }
    int r = range_resolve(&log->range, size, err);
    if (r == 0 && log->is_follow)
        log->range.length = 0;
    if (r < 0) {
        char span[48];
        (void)snprintf(span, sizeof(span), "bytes */%" PRIu64, size);
        request_add_header(request, "Content-Range", span);
    }
    return r;
}

static void on_stream(void *arg, struct bufferevent *stream, const struct message_stream *first)
{
    struct request *request = arg;
    struct log_reader *log = request->work;
    struct error err = { 0 };
    int r = 0;
    log->expected = 0;
    if (stream == NULL) {
        r = error_set(
            &err, -EHOSTDOWN, "the node did not open the log of job %" PRIu64 " in time", request->job);
        (void)error_hint(&err, "mgpu doctor shows whether its agent works");
    } else if (first->error != 0) {
        r = error_of_open(first, request->job, &err);
    } else {
        r = resolve(request, first->size, &err);
    }
    if (r < 0) {
        if (stream != NULL)
            bufferevent_free(stream);
        request_reply_problem(request, &err);
        return;
    }
    if (!log->is_probe) {
        begin_stream(request, stream, first->size);
        return;
    }
    bufferevent_free(stream);
    log->is_probe = false;
    jobs_find(request, request->job, open_log);
}

/* The output of an attempt that was requeued is requested: the job may be in its next one. */
static bool is_earlier(const struct log_reader *log, const struct job *job)
{
    const struct job_earlier *earlier = job_run(job)->earlier;
    if (log->attempt > 0)
        return earlier != NULL && log->attempt <= earlier->attempt;
    return job_earlier_is_latest(job) && (!log->is_follow || job->state == JOB_DONE);
}

static bool is_over(const struct log_reader *log, const struct job *job)
{
    return job->state == JOB_DONE || (log->attempt > 0 && job->state == JOB_QUEUED);
}

/* Until the requested attempt has started, the known log is that of the previous one. */
static bool is_there(const struct request *request, const struct job *job)
{
    const struct log_reader *log = request->work;
    if (is_earlier(log, job))
        return job_earlier_rank(job, log->rank) != NULL;
    bool is_early = job->attempt < log->attempt || job_earlier_is_latest(job) ||
                    (log->attempt > 0 && job_state_is_active(job->state) && job->started_ms == 0);
    return !is_early && job_node_name(job, log->rank) != NULL &&
           core_log_path(request->serve->controller->core, job, log->rank) != NULL;
}

static void open_log(struct request *request, const struct job *job)
{
    struct log_reader *log = request->work;
    struct controller *controller = request->serve->controller;
    const struct job_node *earlier = is_earlier(log, job) ? job_earlier_rank(job, log->rank) : NULL;
    const char *name = earlier != NULL ? earlier->name : job_node_name(job, log->rank);
    const char *main_path =
        earlier != NULL ? earlier->log_path : core_log_path(controller->core, job, log->rank);
    _cleanup_free_ char *path = log->is_error ? launch_error_log(main_path) : xstrdup(main_path);
    const struct core_node *node = core_node_named(controller->core, name);
    if (node == NULL || !node->is_up) {
        struct error err = { 0 };
        (void)error_set(&err, -EHOSTDOWN, "node %s, which has the log of job %" PRIu64 ", is not connected",
            name, job->id);
        (void)error_hint(&err, "the file is %s", path);
        request_reply_problem(request, &err);
        return;
    }
    log->is_probe = log->range.is_suffix;
    log->is_growing = log->is_follow && earlier == NULL && !is_over(log, job);
    log->expected = streams_expect(controller->streams, on_stream, request);
    struct message_open_log message = {
        .stream = log->expected,
        .uid = job->uid,
        .gid = job->gid,
        .path = path,
        .offset = log->is_probe ? 0 : log->range.offset,
        .length = log->is_probe ? 1 : log->range.length,
        .follow = log->is_growing && !log->is_probe,
    };
    links_send(controller->links, node->link, &message_open_log_record, &message);
}

static void await_start(struct request *request, const struct job *job);

static void on_started(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        jobs_find(request, request->job, await_start);
}

/* Continues when there is a log, or when it is certain that there will be none. */
static void await_start(struct request *request, const struct job *job)
{
    const struct log_reader *log = request->work;
    struct error err = { 0 };
    if (is_there(request, job)) {
        open_log(request, job);
        return;
    }
    if (is_earlier(log, job)) {
        (void)error_set(&err, -ENOENT, "job %" PRIu64 " has no output of rank %u in attempt %u", job->id,
            log->rank, job_run(job)->earlier->attempt);
        request_reply_problem(request, &err);
        return;
    }
    if (job_node_count(job) > 0 && log->rank >= job_node_count(job)) {
        (void)error_set(&err, -ENOENT, "job %" PRIu64 " has %zu node%s: no such rank: %u", job->id,
            job_node_count(job), job_node_count(job) == 1 ? "" : "s", log->rank);
        request_reply_problem(request, &err);
        return;
    }
    if (job->ask->adopted_pid != 0) {
        (void)error_set(&err, -ENOENT,
            "job %" PRIu64 " is the adopted process %" PRIu32 ": mgpu does not collect its output", job->id,
            job->ask->adopted_pid);
        request_reply_problem(request, &err);
        return;
    }
    if (job->state == JOB_DONE) {
        (void)error_set(&err, -ENOENT, "job %" PRIu64 " has no output: it never started", job->id);
        (void)error_hint(&err, "mgpu show %" PRIu64 " shows why", job->id);
        request_reply_problem(request, &err);
        return;
    }
    bool is_rank_late = log->rank > 0 && job->state == JOB_RUNNING;
    if (is_rank_late || (!log->is_follow && !log->is_wait)) {
        (void)error_set(&err, -ENOENT, "job %" PRIu64 " is %s: there is no output yet", job->id,
            job_state_name(job_shown_state(job)));
        (void)error_hint(&err, "mgpu logs -f %" PRIu64 " waits for it", job->id);
        request_reply_problem(request, &err);
        return;
    }
    /* A stopping job that has not started is checked again when it has ended. */
    uint32_t states = 1U << JOB_DONE;
    if (job->state == JOB_STOPPING && log->attempt > 0)
        states |= 1U << JOB_QUEUED;
    else if (job->state != JOB_STOPPING)
        states |= 1U << JOB_RUNNING | 1U << JOB_STOPPING;
    request->is_patient = true;
    request->on_answer = on_started;
    core_wait(request->serve->controller->core, job->id, states, request);
}

static void begin_log(struct request *request, const struct job *job)
{
    struct log_reader *log = request->work;
    struct error err = { 0 };
    if (!jobs_check(request, ACTION_READ, job, "read its output"))
        return;
    if (log->is_error && !job->ask->split_log) {
        (void)error_set(
            &err, -ENOENT, "job %" PRIu64 " has one log for standard output and standard error", job->id);
        request_reply_problem(request, &err);
        return;
    }
    if (users_take(request->serve->users, request->who.uid, SHARE_FOLLOWS, 1, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    log->is_counted = true;
    await_start(request, job);
}

static int read_stream(const struct query *query, bool *ret_is_error, struct error *err)
{
    const char *name = query_get(query, "stream");
    *ret_is_error = name != NULL && strcmp(name, "stderr") == 0;
    if (name == NULL || *ret_is_error || strcmp(name, "stdout") == 0)
        return 0;
    (void)error_set(err, -EINVAL, "stream: unknown output '%.40s'", name);
    return error_hint(err, "use stdout or stderr");
}

void handle_log(struct request *request)
{
    struct error err = { 0 };
    struct log_reader *log = xcalloc(1, sizeof(*log));
    request->work = log;
    request->release = release_log;
    int r = query_get_flag(&request->query, "follow", &log->is_follow, &err);
    if (r == 0)
        r = query_get_flag(&request->query, "wait", &log->is_wait, &err);
    int64_t rank = 0, number = 0;
    const char *text = query_get(&request->query, "rank"), *attempt = query_get(&request->query, "attempt");
    if (r == 0 && text != NULL)
        r = parse_integer(text, "rank", 0, JOB_NODES_MAX - 1, &rank, &err);
    if (r == 0 && attempt != NULL)
        r = parse_integer(attempt, "attempt", 1, UINT32_MAX, &number, &err);
    if (r == 0)
        r = read_stream(&request->query, &log->is_error, &err);
    log->rank = (uint32_t)rank;
    log->attempt = (uint32_t)number;
    if (r == 0)
        r = range_parse(http_message_header(&request->message, "range"), &log->range, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    request->is_patient = log->is_follow;
    jobs_find(request, request->job, begin_log);
}
