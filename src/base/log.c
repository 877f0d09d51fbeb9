/* SPDX-License-Identifier: MIT */
/*
 * One write(2) per line, so that lines of several processes do not mix. A line that would have to wait,
 * because the pipe is full, is dropped and counted: daemons never block on a reader of their log. A write to
 * a file goes to memory, and waits for the disk only if that is overloaded. Without systemd a line begins
 * with the wall time.
 *
 * Under systemd (JOURNAL_STREAM names standard error) lines are datagrams to journald, in its native protocol
 * (systemd.io/JOURNAL_NATIVE_PROTOCOL): NAME=VALUE lines, as sd_journal_send(3) of libsystemd sends them. If
 * journald accepts none, a line goes to standard error and begins with <level>, as in sd-daemon(3).
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/utc.h"

#define LINE_MAX_BYTES 2000
#define NODE_MAX_BYTES 256
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static const char *program_name = "mgpu";
static bool is_verbose, is_journal;
static int journal_fd = -1;
static pid_t journal_pid; // a forked child may have closed it
static char own_node[NODE_MAX_BYTES];

/* The subject of a line; 0 and NULL: none. */
struct subject {
    uint64_t job;
    const char *node;
};

/* Programs whose standard error is something else inherit JOURNAL_STREAM, too. */
static bool is_standard_error_of_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat error;
    uintmax_t device = 0, inode = 0;
    return stream != NULL && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &error) == 0 && error.st_dev == device && error.st_ino == inode;
}

int log_open_journal(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    closep(&journal_fd);
    journal_fd = take_fd(&fd);
    journal_pid = getpid();
    return 0;
}

bool log_has_fields(void)
{
    return journal_fd >= 0 && getpid() == journal_pid;
}

void log_open(const char *program, bool verbose)
{
    program_name = program;
    is_verbose = verbose;
    is_journal = is_standard_error_of_journal();
    if (is_journal && !log_has_fields())
        (void)log_open_journal(JOURNAL_SOCKET);
}

void log_set_node(const char *node)
{
    (void)snprintf(own_node, sizeof(own_node), "%s", node);
}

/* A full pipe or terminal. A file never is one. */
static bool is_full(void)
{
    struct pollfd log = { .fd = STDERR_FILENO, .events = POLLOUT };
    return poll(&log, 1, 0) == 0;
}

/* Other processes may write between the check and the write, but little compared with the page that a
 * writable pipe has free. O_NONBLOCK would affect other programs that share the descriptor. */
static void write_line(const char *prefix, const char *line)
{
    static _Atomic unsigned lost; // threads log too
    if (lost > 0 && !is_full()) {
        _cleanup_free_ char *notice =
            xasprintf("%swarning: %u lines were lost because the log was not read\n", prefix, lost);
        (void)!write(STDERR_FILENO, notice, strlen(notice));
        lost = 0;
    }
    if (lost > 0 || is_full())
        lost++;
    else
        (void)!write(STDERR_FILENO, line, strlen(line));
}

/* False: journald does not accept it. No value contains a line break: all are escaped or constants. */
static bool send_to_journal(enum log_level level, const struct subject *subject, const char *line)
{
    char job[40] = "";
    const char *node = subject->node != NULL ? subject->node : own_node;
    if (!log_has_fields())
        return false;
    if (subject->job != 0)
        (void)snprintf(job, sizeof(job), "MGPU_JOB=%" PRIu64 "\n", subject->job);
    _cleanup_free_ char *shown = text_escape(node, NODE_MAX_BYTES);
    _cleanup_free_ char *fields = xasprintf("MESSAGE=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=%s\n%s%s%s%s", line,
        (int)level, program_name, job, *shown == '\0' ? "" : "MGPU_NODE=", shown, *shown == '\0' ? "" : "\n");
    return send(journal_fd, fields, strlen(fields), MSG_NOSIGNAL) >= 0;
}

static void write_text(
    enum log_level level, const struct subject *subject, const char *begin, const char *raw)
{
    char prefix[64];
    const char *mark = level == LOG_ERROR ? "error: " : level == LOG_WARNING ? "warning: " : "";
    _cleanup_free_ char *whole = xasprintf("%s%s", begin, raw);
    _cleanup_free_ char *text = text_escape(whole, LINE_MAX_BYTES);
    _cleanup_free_ char *marked = xasprintf("%s%s", mark, text);
    if (send_to_journal(level, subject, marked))
        return;
    if (is_journal) {
        (void)snprintf(prefix, sizeof(prefix), "<%d>", (int)level);
    } else {
        char when[40];
        utc_format(clock_wall_ms(), when, sizeof(when));
        (void)snprintf(prefix, sizeof(prefix), "%s %s: ", when, program_name);
    }
    _cleanup_free_ char *line = xasprintf("%s%s\n", prefix, marked);
    write_line(prefix, line);
}

void log_line(enum log_level level, const char *format, ...)
{
    if (level == LOG_DEBUG && !is_verbose)
        return;
    char raw[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    write_text(level, &(struct subject){ 0 }, "", raw);
}

void log_job(enum log_level level, uint64_t job, const char *format, ...)
{
    if (level == LOG_DEBUG && !is_verbose)
        return;
    char raw[LINE_MAX_BYTES], begin[40];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    (void)snprintf(begin, sizeof(begin), "job %" PRIu64 ": ", job);
    write_text(level, &(struct subject){ .job = job }, begin, raw);
}

void log_node(enum log_level level, const char *node, const char *format, ...)
{
    if (level == LOG_DEBUG && !is_verbose)
        return;
    char raw[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    _cleanup_free_ char *begin = xasprintf("node %s: ", node);
    write_text(level, &(struct subject){ .node = node }, begin, raw);
}
