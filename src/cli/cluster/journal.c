/* SPDX-License-Identifier: MIT */
/*
 * mgpu journal export: every event of the store, one JSON object per line, for mgpu-sim. A file gets its name
 * only when it is complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/stream.h"
#include "cli/verbs/verbs.h"

struct export_options {
    int64_t after;
    const char *path; // NULL: standard output
};

static struct export_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_path(void *target, const char *value, struct error *err)
{
    const char *path = NULL;
    int r = option_text("-o", value, &path, err);
    if (r == 0)
        options_of(target)->path = strcmp(path, "-") == 0 ? NULL : path;
    return r;
}

static const struct option_row rows[] = {
    { 0, "after", "SEQ", "only events after this one (0: all)",
        OPTION_INNER(integer, struct export_options, after), OPTION_RANGE(0, INT64_MAX) },
    { 'o', "output", "FILE", "write to this file instead of standard output", set_path },
    { 0 },
};

static int take_bytes(void *target, const void *bytes, size_t length)
{
    const int *fd = target;
    int r = write_all(*fd, bytes, length);
    return r < 0 ? r : 0;
}

/* Copies until the end of the answer. */
static int copy(struct call *call, int fd, struct error *err)
{
    const struct export_options *options = call->options;
    _cleanup_(stream_clear) struct stream stream = { .sink = take_bytes, .sink_target = &fd };
    _cleanup_free_ char *path = xasprintf(API_PATH "/journal?after=%" PRId64, options->after);
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    stream_start(&stream, &call->client, path);
    int r = stream_advance(&stream, false, err);
    while (r == 0) {
        struct pollfd event = { .fd = stream_fd(&stream), .events = POLLIN };
        if (poll(&event, 1, stream_wait_ms(&stream)) < 0 && errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait");
        r = stream_advance(&stream, event.revents != 0, err);
    }
    if (r < 0)
        return err->code == 0 ? error_set_errno(err, r, "cannot write the journal") : r;
    const struct http_answer *answer = stream_answer(&stream);
    return answer->status == 200 || answer->status == 206 ? 0 : client_problem(answer, err);
}

static int copy_to_file(struct call *call, const char *path, struct error *err)
{
    _cleanup_free_ char *part = xasprintf("%s.part", path);
    _cleanup_close_ int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot write %s", part);
    int r = copy(call, fd, err);
    if (r == 0 && rename(part, path) < 0)
        r = error_set_errno(err, -errno, "cannot rename %s to %s", part, path);
    if (r < 0)
        (void)unlink(part);
    return r;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct export_options *options = call->options;
    int r = options->path == NULL ? copy(call, STDOUT_FILENO, err) : copy_to_file(call, options->path, err);
    return r < 0 ? r : EXIT_OK;
}

static const struct command export_command = {
    .name = "journal export",
    .usage = "[OPTIONS]",
    .help = "Print all events, one JSON object per line, for mgpu-sim (administrators)",
    .tables = { rows },
    .options_size = sizeof(struct export_options),
    .takes_nothing = true,
    .run = run,
};

static const struct command *const actions[] = { &export_command, NULL };

const struct command command_journal = {
    .name = "journal",
    .usage = "export [OPTIONS]",
    .help = "Export the events of this machine for mgpu-sim",
    .actions = actions,
};
