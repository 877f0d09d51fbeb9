/* SPDX-License-Identifier: MIT */
/*
 * slurmrestd: the REST API of Slurm for one user, on a unix socket or on standard input and output. Each
 * connection is served by a separate process and carries one request. It is a client of mgpud like all
 * commands and acts as its user, so other users cannot connect. docs/decisions/0025-slurmrestd.md
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/rest.h"
#include "compat/slurm/rest_message.h"
#include "compat/slurm/slurm.h"

#define EMPTY_LINE "\r\n\r\n"
#define LENGTH_MAX 18U // digits; a longer number is too large in any case
#define DRAIN_MAX  (64U << 20)
#define PIECE      16384
#define BACKLOG    64
#define TIMEOUT_S  60
#define PAUSE_MS   100 // while no descriptors are available

enum { BAD_REQUEST = 400, LENGTH_REQUIRED = 411, TOO_LARGE = 413 };

static int set_nothing(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    return 0;
}

const struct slurm_option slurm_restd_options[] = {
    SLURM_ROW(SLURM_RESTD, "auth", 'a', "plugins", set_nothing, NULL, "rest_auth/local, the only one here"),
    SLURM_NO_EFFECT(SLURM_RESTD, "openapi", 's', "plugins", NULL, "openapi/v0.0.38, the only one here"),
    SLURM_NO_EFFECT(SLURM_RESTD, "max-connections", 0, "n", NULL, "limit of connections"),
    SLURM_NO_EFFECT(SLURM_RESTD, "threads", 't', "n", NULL, "number of threads"),
    SLURM_NO_EFFECT(SLURM_RESTD, "config", 'f', "file", NULL, "slurm.conf, which does not exist here"),
    SLURM_NO_EFFECT(SLURM_RESTD, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

/* --- one request ---
 *
 * The head ends with an empty line; the body is as long as the head says. Neither contains a NUL, so that
 * both are texts. What follows is ignored: a connection carries one request.
 */

/* The value of a header in the head's lines, or NULL. */
static const char *find_header(const char *lines, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = lines; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

/* The text up to the end of the line. The caller frees it. */
static char *copy_value(const char *value)
{
    size_t length = strcspn(value, "\r\n");
    while (length > 0 && strchr(" \t", value[length - 1]) != NULL)
        length--;
    return xstrndup(value, length);
}

/* Two lengths could disagree on where the body ends. */
static int read_length(const char *lines, size_t *ret)
{
    const char *found = find_header(lines, "content-length");
    *ret = 0;
    if (find_header(lines, "transfer-encoding") != NULL)
        return LENGTH_REQUIRED; // chunks are not supported
    if (found == NULL)
        return 0;
    _cleanup_free_ char *value = copy_value(found);
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || value[digits] != '\0' || find_header(found, "content-length") != NULL)
        return BAD_REQUEST;
    const char *number = value + strspn(value, "0");
    if (strlen(number) > LENGTH_MAX)
        return TOO_LARGE;
    *ret = (size_t)strtoull(number, NULL, 10);
    return *ret > REST_BODY_MAX ? TOO_LARGE : 0;
}

/* 0 with `head` and `body_length`, REST_MORE, or a status. */
static int find_head(struct rest_message *message)
{
    const struct buffer *bytes = &message->bytes;
    const char *text = (const char *)bytes->bytes;
    size_t limit = bytes->length < REST_HEAD_MAX ? bytes->length : REST_HEAD_MAX;
    const char *end = limit > 0 ? memmem(text, limit, EMPTY_LINE, strlen(EMPTY_LINE)) : NULL;
    size_t length = end != NULL ? (size_t)(end - text) + strlen(EMPTY_LINE) : limit;
    if (length > 0 && memchr(text, '\0', length) != NULL)
        return BAD_REQUEST;
    if (end == NULL)
        return limit == REST_HEAD_MAX ? TOO_LARGE : REST_MORE;
    _cleanup_free_ char *head = xstrndup(text, (size_t)(end - text));
    const char *lines = head + strcspn(head, "\n");
    int status = read_length(lines, &message->body_length);
    if (status != 0)
        return status;
    const char *expect = find_header(lines, "expect");
    message->is_waiting = expect != NULL && strncasecmp(expect, "100-continue", 12) == 0;
    message->head = length;
    return REST_WHOLE;
}

/* Cuts the texts out of the bytes. */
static int split(struct rest_message *message)
{
    char *text = buffer_text(&message->bytes), *lines;
    message->body = text + message->head;
    if (memchr(message->body, '\0', message->body_length) != NULL)
        return BAD_REQUEST;
    message->body[message->body_length] = '\0';
    text[message->head - strlen(EMPTY_LINE)] = '\0';
    lines = text + strcspn(text, "\n");
    char *user = (char *)(uintptr_t)find_header(lines, "x-slurm-user-name");
    if (user != NULL)
        user[strcspn(user, "\r\n")] = '\0';
    message->user = user;
    text[strcspn(text, "\r\n")] = '\0';
    message->method = strsep(&text, " ");
    message->target = strsep(&text, " ");
    return message->target != NULL && message->target[0] == '/' ? REST_WHOLE : BAD_REQUEST;
}

int rest_message_examine(struct rest_message *message)
{
    int r = message->head > 0 ? REST_WHOLE : find_head(message);
    if (r != REST_WHOLE)
        return r;
    if (message->bytes.length < message->head + message->body_length)
        return REST_MORE;
    message->is_waiting = false; // nothing is missing
    return split(message);
}

void rest_message_clear(struct rest_message *message)
{
    buffer_clear(&message->bytes);
    *message = (struct rest_message){ 0 };
}

/* --- one connection --- */

static const char *reason(int status)
{
    return status == 200               ? "OK"
           : status == BAD_REQUEST     ? "Bad Request"
           : status == 401             ? "Unauthorized"
           : status == 404             ? "Not Found"
           : status == 405             ? "Method Not Allowed"
           : status == LENGTH_REQUIRED ? "Length Required"
           : status == TOO_LARGE       ? "Content Too Large"
                                       : "Internal Server Error";
}

/* Reads what is available, or waits for it; -EPIPE if the client has left. */
static int read_more(int fd, struct buffer *bytes)
{
    char piece[PIECE];
    ssize_t n = read(fd, piece, sizeof(piece));
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return -EPIPE;
    buffer_append(bytes, piece, (size_t)n);
    return 0;
}

/* 0, an HTTP status for a request that cannot be answered, or -EPIPE. */
static int read_message(int in, struct rest_message *message)
{
    int r;
    bool is_continued = false;
    while ((r = rest_message_examine(message)) == REST_MORE) {
        if (message->is_waiting && !is_continued)
            (void)!write(STDOUT_FILENO, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        is_continued = message->is_waiting;
        r = read_more(in, &message->bytes);
        if (r < 0)
            return r;
    }
    return r == REST_WHOLE ? 0 : r;
}

static void reply(int status, json_t *body)
{
    _cleanup_free_ char *text = json_dumps(body, JSON_COMPACT);
    _cleanup_free_ char *head =
        xasprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                  "Connection: close\r\n\r\n",
            status, reason(status), strlen(text) + 1);
    if (write_all(STDOUT_FILENO, head, strlen(head)) == 0 &&
        write_all(STDOUT_FILENO, text, strlen(text)) == 0)
        (void)!write(STDOUT_FILENO, "\n", 1);
    json_decref(body);
}

/* A client that is still sending reads the answer only after that. */
static void drain(int fd)
{
    char piece[PIECE];
    ssize_t n = 1;
    (void)shutdown(fd, SHUT_WR);
    for (size_t left = DRAIN_MAX; n > 0 && left > 0; left -= (size_t)n)
        n = read(fd, piece, left < sizeof(piece) ? left : sizeof(piece));
}

/* Answers the request on standard input. */
static int serve(void)
{
    _cleanup_(rest_message_clear) struct rest_message message = { 0 };
    json_t *body = NULL;
    (void)alarm(TIMEOUT_S);
    int status = read_message(STDIN_FILENO, &message);
    if (status == 0 && message.user != NULL && strcmp(message.user, slurm_own_name()) != 0) {
        status = 401;
        body = rest_error(1007, "Protocol authentication error", "this slurmrestd serves another user");
    } else if (status == 0) {
        char *query = strchr(message.target, '?');
        if (query != NULL)
            *query++ = '\0';
        const struct rest_request request = { message.method, message.target, query != NULL ? query : "",
            message.body };
        status = rest_answer(&request, &body);
    } else if (status > 0) {
        body = rest_error(REST_INVALID_QUERY, "Invalid query",
            status == LENGTH_REQUIRED ? "the request has chunks, and no Content-Length"
                                      : "the request is not HTTP, or too large");
    }
    if (status > 0)
        reply(status, body);
    if (status == LENGTH_REQUIRED || status == TOO_LARGE)
        drain(STDIN_FILENO);
    return status > 0 ? 0 : 1;
}

/* --- many --- */

/* The socket appears under its name when it accepts connections. */
static int listen_at(const char *path, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    _cleanup_free_ char *early = xasprintf("%s.%d", path, (int)getpid());
    if (strlen(early) >= sizeof(address.sun_path))
        return error_set(err, -ENAMETOOLONG, "the path of the socket is too long: %.60s", path);
    memcpy(address.sun_path, early, strlen(early));
    mode_t before = umask(0177);
    int r = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    (void)umask(before);
    if (r == 0 && (listen(fd, BACKLOG) < 0 || rename(early, path) < 0))
        r = -errno;
    if (r < 0)
        (void)unlink(early);
    return r < 0 ? error_set_errno(err, r, "cannot listen at %.200s", path) : take_fd(&fd);
}

static bool is_own(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

/* True for errors that pass: later there may be descriptors and memory for another connection. */
static bool is_shortage(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static int accept_all(int listener, struct error *err)
{
    bool is_short = false;          // report it once until it has passed
    (void)signal(SIGCHLD, SIG_IGN); // processes of connections are not waited for
    for (;;) {
        _cleanup_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        int code = errno;
        if (fd < 0 && code != EINTR && code != ECONNABORTED && !is_shortage(code))
            return error_set_errno(err, -code, "cannot accept a connection");
        if (fd < 0 && is_shortage(code)) {
            if (!is_short)
                (void)fprintf(stderr,
                    "slurmrestd: error: cannot accept a connection: %s; trying again every %d ms\n",
                    strerror(code), PAUSE_MS);
            is_short = true;
            (void)poll(NULL, 0, PAUSE_MS);
            continue;
        }
        is_short = is_short && fd < 0;
        if (fd < 0 || !is_own(fd) || fork() != 0)
            continue;
        (void)signal(SIGCHLD, SIG_DFL); // sbatch must be waited for
        (void)dup2(fd, STDIN_FILENO);
        (void)dup2(fd, STDOUT_FILENO);
        _exit(serve());
    }
}

int slurm_run_restd(const struct slurm_program *program, int argc, char **argv)
{
    const struct slurm_reading reading = { .program = program };
    struct error err = { 0 };
    int first = 0;
    int r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    (void)signal(SIGPIPE, SIG_IGN);
    if (r == 0 && first == argc)
        return serve();
    if (r == 0 && (argc - first > 1 || strncmp(argv[first], "unix:", 5) != 0))
        r = error_set(&err, -EINVAL,
            "%.60s: only one unix:/path/to/socket is supported; over TCP, mgpud's own API has tokens",
            argv[first]);
    const char *path = r == 0 ? argv[first] + 5 : "";
    path += strncmp(path, "//", 2) == 0 ? 2 : 0;
    r = r == 0 ? listen_at(path, &err) : r;
    r = r >= 0 ? accept_all(r, &err) : r;
    return slurm_fail(program, &err);
}
