/* SPDX-License-Identifier: MIT */
/*
 * slurmrestd: the REST API of Slurm for one user, on a unix socket or on standard input and output. Each
 * connection is answered by a process of its own, one request. It is a client of mgpud like all commands; the
 * identity is that of its user, so other users cannot connect. docs/decisions/0025-slurmrestd.md
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "cli/slurm/jobs.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/rest.h"
#include "cli/slurm/slurm.h"

#define HEAD_MAX  65536U
#define BODY_MAX  (2U << 20) // more than the largest script
#define DRAIN_MAX (64U << 20)
#define PIECE     16384
#define BACKLOG   64
#define TIMEOUT_S 60
#define PAUSE_MS  100 // while there are no descriptors

static int set_nothing(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    (void)target, (void)option, (void)value, (void)err;
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

/* --- one connection --- */

struct message {
    struct buffer bytes;
    char *method, *target, *body; // within `bytes`
    const char *user;             // of X-SLURM-USER-NAME, or NULL
};

static const char *reason(int status)
{
    return status == 200   ? "OK"
           : status == 400 ? "Bad Request"
           : status == 401 ? "Unauthorized"
           : status == 404 ? "Not Found"
           : status == 405 ? "Method Not Allowed"
           : status == 413 ? "Content Too Large"
                           : "Internal Server Error";
}

/* The value of a header in the text up to `end`, or NULL. */
static char *find_header(char *head, const char *end, const char *name)
{
    size_t length = strlen(name);
    for (char *line = head; line != NULL && line < end; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

/* Reads until `count` bytes are there; -EPIPE if the client has left. */
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

/* 0, a status of HTTP for a request that cannot be answered, or -EPIPE. */
static int read_message(int in, struct message *message)
{
    struct buffer *bytes = &message->bytes;
    char *end = NULL;
    int r = 0;
    while (r == 0 && (end = strstr(buffer_text(bytes), "\r\n\r\n")) == NULL) {
        if (bytes->length > HEAD_MAX)
            return 413;
        r = read_more(in, bytes);
    }
    if (r < 0)
        return r;
    size_t head = (size_t)(end - buffer_text(bytes)) + 4;
    const char *length = find_header(buffer_text(bytes), end, "content-length");
    size_t wanted = length != NULL ? (size_t)strtoull(length, NULL, 10) : 0;
    if (wanted > BODY_MAX)
        return 413;
    if (find_header(buffer_text(bytes), end, "expect") != NULL)
        (void)!write(STDOUT_FILENO, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    while (r == 0 && bytes->length < head + wanted)
        r = read_more(in, bytes);
    if (r < 0)
        return r;
    char *text = buffer_text(bytes);
    message->body = text + head;
    if (strlen(message->body) < wanted)
        return 400; // a NUL
    message->body[wanted] = '\0';
    text[head - 4] = '\0';
    char *rest = text, *user = find_header(text, text + head - 4, "x-slurm-user-name");
    message->method = strsep(&rest, " ");
    message->target = strsep(&rest, " \r\n");
    if (user != NULL)
        user[strcspn(user, "\r\n")] = '\0';
    message->user = user;
    return message->target != NULL && message->target[0] == '/' ? 0 : 400;
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

/* A client that is still sending reads the answer only afterwards. */
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
    struct message message = { 0 };
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
        body = rest_error(REST_INVALID_QUERY, "Invalid query", "the request is not HTTP, or too large");
    }
    if (status > 0)
        reply(status, body);
    if (status == 413)
        drain(STDIN_FILENO);
    buffer_clear(&message.bytes);
    return status > 0 ? 0 : 1;
}

/* --- many --- */

/* The socket appears under its name when it can be connected to. */
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

/* True if it ends: without descriptors or memory for one more connection, a later one may have them. */
static bool is_shortage(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static int accept_all(int listener, struct error *err)
{
    bool is_short = false;          // one message until it has ended
    (void)signal(SIGCHLD, SIG_IGN); // connections are not waited for
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
        (void)signal(SIGCHLD, SIG_DFL); // sbatch is waited for
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
    if (slurm_options_answer(program, argc, argv))
        return 0;
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
