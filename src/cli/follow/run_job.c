/* SPDX-License-Identifier: MIT */
#include "cli/follow/run_job.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/stream.h"
#include "cli/follow/follow.h"
#include "cli/follow/foreign.h"
#include "cli/follow/session.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/show/job_end.h"

static int write_out(void *target, const void *bytes, size_t length)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    foreign_filter(target, &out, &bytes, &length);
    return write_all(STDOUT_FILENO, bytes, length);
}

/* If a job ended before its terminal could be attached, the output is read from its log. */
static int print_rest(struct call *call, const char *path, uint32_t rank, const json_t *job,
    uint64_t position, struct error *err)
{
    struct foreign filter = { .mode = foreign_mode(call, path, job, STDOUT_FILENO, true) };
    _cleanup_(stream_clear) struct stream stream = {
        .sink = write_out, .sink_target = &filter, .offset = position
    };
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s/log?rank=%u", path, rank);
    if (field_is_known(job, "output")) {
        talk_line("the rest of the output of job %s is in its log: mgpu logs %s", path, path);
        return 0;
    }
    double written = 0;
    if (!field_measured(job, "log_bytes", &written) || (uint64_t)written <= position)
        return 0;
    stream_start(&stream, &call->client, request);
    int r = stream_advance(&stream, false, err);
    while (r == 0) {
        struct pollfd wanted = { .fd = stream_fd(&stream), .events = POLLIN };
        if (poll(&wanted, 1, stream_wait_ms(&stream)) < 0 && errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait");
        r = stream_advance(&stream, wanted.revents != 0, err);
    }
    unsigned status = r > 0 ? stream_answer(&stream)->status : 200;
    return r < 0                                             ? r
           : status == 200 || status == 206 || status == 416 ? 0
                                                             : client_problem(stream_answer(&stream), err);
}

/* One attempt. EXIT_OK with *ret_job NULL: the user left. */
static int attach_once(struct call *call, const char *path, const struct terminal_options *options,
    bool is_read_only, bool is_from_start, json_t **ret_job, struct error *err)
{
    struct session_options session = { .job = path,
        .rank = options->rank,
        .leaver = options->leaver,
        .is_tty = true,
        .is_read_only = is_read_only,
        .is_input_shut = isatty(STDIN_FILENO) != 1 && !options->is_interactive,
        .shows_idleness = !is_read_only,
        .is_from_start = is_from_start };
    int status = -1;
    uint64_t position = 0;
    int r = detach_keys_parse(&session.keys, options->detach_keys, err);
    if (r == 0)
        r = session_run(call, &session, &status, &position, err);
    if (r == -EALREADY && is_from_start)
        r = SESSION_ENDED;
    if (r < 0)
        return r;
    if (r == SESSION_DETACHED) {
        session_say_detached(call, path, false);
        return EXIT_OK;
    }
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    r = job_end_await_attempt(call, path, ret_job, err);
    return r == 0 && status < 0 && job_is_done(*ret_job)
               ? print_rest(call, path, options->rank, *ret_job, position, err)
               : r;
}

int run_attached(struct call *call, const char *path, const struct terminal_options *options,
    bool is_read_only, bool is_from_start, struct error *err)
{
    for (;;) {
        _cleanup_json_ json_t *job = NULL, *started = NULL;
        int r = attach_once(call, path, options, is_read_only, is_from_start, &job, err);
        if (r < 0 || job == NULL)
            return r;
        if (job_is_done(job)) {
            follow_report(call, call->command->name, job);
            return exit_code_of_job(job);
        }
        if (!call->is_quiet)
            talk_line("job %s was preempted and requeued", path);
        const struct follow_options follow = {
            .leaver = options->leaver, .is_until_start = true, .ret_job = &started
        };
        r = follow_job(call, job, &follow, err);
        if (r < 0 || started == NULL)
            return r;
        is_from_start = true;
    }
}

int run_job(struct call *call, const json_t *job, bool is_tty, const struct terminal_options *options,
    struct error *err)
{
    _cleanup_json_ json_t *started = NULL;
    struct input_feed feed = { 0 };
    struct follow_options follow = {
        .leaver = options->leaver,
        .show_state = options->show_state,
        .show_end = options->show_end,
        .passes_signals = options->passes_signals,
        .is_until_start = is_tty,
        .ret_job = &started,
        .input = options->is_input_sent ? &feed : NULL,
        .output_begin = options->output_begin,
    };
    if (options->is_input_sent) {
        int r = input_feed_start(&feed, call, (uint64_t)field_integer(job, "id", 0), err);
        if (r < 0)
            return r;
    }
    int r = follow_job(call, job, &follow, err);
    input_feed_end(&feed);
    if (r < 0 || started == NULL)
        return r;
    if (!call->is_quiet && options->detach_keys == NULL && isatty(STDERR_FILENO) == 1)
        talk_line("Ctrl-] d detaches; the job continues");
    _cleanup_free_ char *path = xasprintf("%" PRId64, field_integer(job, "id", 0));
    return run_attached(call, path, options, false, true, err);
}
