/* SPDX-License-Identifier: MIT */
/* mgpu notify: sends a status report of a job through its pipe. Makes no connection. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/progress.h"
#include "base/spool.h"
#include "cli/api/exit_code.h"
#include "cli/verbs/verbs.h"

#define TIMEOUT_MS 5000 // while the pipe is full

struct notify_options {
    const char *progress, *status;
    bool is_checkpointed;
};

static struct notify_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_progress(void *target, const char *value, struct error *err)
{
    uint32_t ppm;
    if (!progress_parse(value, strlen(value), &ppm)) {
        (void)error_set(err, -EINVAL, "--progress: '%.40s' is neither from 0 to 1 nor up to 100%%", value);
        return error_hint(err, "--progress 0.4, or --progress 40%%");
    }
    options_of(target)->progress = value;
    return 0;
}

static int set_status(void *target, const char *value, struct error *err)
{
    for (const char *p = value; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return error_set(err, -EINVAL, "--status: holds a control character (byte 0x%02x)", (unsigned)*p);
    if (strlen(value) > SPOOL_STATUS_MAX)
        return error_set(
            err, -E2BIG, "--status: it has %zu bytes; at most %u", strlen(value), SPOOL_STATUS_MAX);
    return option_text("--status", value, &options_of(target)->status, err);
}

static const struct option_row rows[] = {
    { 'p', "progress", "N", "fraction done: 0.4, or 40%", set_progress },
    { 's', "status", "TEXT", "short status text", set_status },
    { 'c', "checkpointed", NULL, "the job has saved its work and can be ended without loss",
        OPTION_INNER(flag, struct notify_options, is_checkpointed) },
    { 0 },
};

static int open_pipe(struct error *err)
{
    struct stat st;
    const char *path = getenv("MGPU_NOTIFY");
    if (path == NULL || path[0] == '\0') {
        (void)error_set(err, -EINVAL, "MGPU_NOTIFY is not set: this is not an mgpu job");
        return error_hint(err, "this command is for use inside jobs: mgpu run -- ...");
    }
    /* If there is no reader, this does not wait for one. */
    _cleanup_close_ int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && errno != ENXIO && errno != ENOENT)
        return error_set_errno(err, -errno, "cannot open %s", path);
    if (fd < 0) {
        (void)error_set(err, -ESRCH, "no reader for MGPU_NOTIFY=%s", path);
        return error_hint(err, "the variable belongs to a job that has ended or runs elsewhere");
    }
    if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
        return error_set(err, -EINVAL, "MGPU_NOTIFY=%s is not a pipe", path);
    return take_fd(&fd);
}

/* This few bytes are written completely or not at all. */
static int write_whole(int fd, const struct buffer *text, struct error *err)
{
    int64_t deadline_ms = clock_boot_ms() + TIMEOUT_MS;
    for (;;) {
        struct pollfd wanted = { .fd = fd, .events = POLLOUT };
        ssize_t n = write(fd, text->bytes, text->length);
        int64_t left_ms = deadline_ms - clock_boot_ms();
        if (n >= 0)
            return 0;
        if (errno != EAGAIN && errno != EINTR)
            return error_set_errno(err, -errno, "cannot write to MGPU_NOTIFY");
        if (left_ms <= 0)
            return error_set(err, -ETIMEDOUT, "MGPU_NOTIFY is full and has no reader");
        (void)poll(&wanted, 1, (int)left_ms);
    }
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct notify_options *options = call->options;
    _cleanup_buffer_ struct buffer text = { 0 };
    if (options->progress != NULL)
        buffer_printf(&text, "PROGRESS=%s\n", options->progress);
    if (options->status != NULL)
        buffer_printf(&text, "STATUS=%s\n", options->status);
    if (options->is_checkpointed)
        buffer_append_text(&text, "CHECKPOINTED\n");
    if (text.length == 0) {
        (void)error_set(err, -EINVAL, "nothing to report");
        return error_hint(err, "mgpu notify --progress 0.4 --status 'epoch 3'");
    }
    _cleanup_close_ int fd = open_pipe(err);
    int r = fd < 0 ? fd : write_whole(fd, &text, err);
    return r < 0 ? r : EXIT_OK;
}

const struct command command_notify = {
    .name = "notify",
    .usage = "[--progress N] [--status TEXT] [--checkpointed]",
    .help = "Inside a job: report progress, a status, or a checkpoint",
    .detail = "Writes to the pipe named by MGPU_NOTIFY, like echo PROGRESS=0.4 > \"$MGPU_NOTIFY\".",
    .tables = { rows },
    .options_size = sizeof(struct notify_options),
    .takes_nothing = true,
    .run = run,
};
