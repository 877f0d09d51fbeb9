/* SPDX-License-Identifier: MIT */
/*
 * To the rest of mgpu this is a unix socket like any other. mgpu-tls has its other end, and ends with it. It
 * is neither a child nor in the terminal's session, so Ctrl-C does not end it first.
 */
#include "cli/api/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/api/programs.h"

#define HELPER    "mgpu-tls"
#define HELPER_FD 3
#define WORD_MAX  2048
#define TOKEN_MAX 512
#define PIN_SIZE  43U

int remote_check(const char *option, const char *value, struct error *err)
{
    static const char scheme[] = "https://";
    static const char pin[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *hash = strchr(value, '#');
    bool is_right = strncmp(value, scheme, strlen(scheme)) == 0 && hash != NULL &&
                    hash > value + strlen(scheme) && strlen(hash + 1) == PIN_SIZE &&
                    strspn(hash + 1, pin) == PIN_SIZE;
    if (is_right)
        return 0;
    (void)error_set(err, -EINVAL, "%s: '%.80s' is not https://HOST:PORT#PIN", option, value);
    return error_hint(err, "run `mgpu token create` on the machine of mgpud for the whole address");
}

static _Noreturn void execute(const char *path, const char *const *arguments, int fd, int as_fd)
{
    union {
        const char *const *given;
        char *const *kept;
    } argv = { .given = arguments };
    if (fork() != 0)
        _exit(0);
    (void)setsid();
    if (fd == as_fd)
        (void)fcntl(fd, F_SETFD, 0);
    else
        (void)dup2(fd, as_fd);
    (void)execv(path, argv.kept);
    _exit(127);
}

int remote_start(const char *const *arguments, int fd, int as_fd, struct error *err)
{
    _cleanup_free_ char *path = program_find(HELPER);
    if (access(path, X_OK) < 0)
        return error_set_errno(err, -errno, "cannot execute %s, the TLS helper", path);
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot start %s", path);
    if (pid == 0)
        execute(path, arguments, fd, as_fd);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return 0;
}

/* Reads the next line from the helper byte by byte, because the following data is not for this process. False
 * at the end. */
static bool read_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    for (;;) {
        ssize_t n = recv(fd, &line[length], 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || length + 1 == size || line[length] == '\n') {
            line[length] = '\0';
            return n > 0;
        }
        length++;
    }
}

static int read_reply(int fd, struct error *err)
{
    char word[WORD_MAX], text[WORD_MAX] = "", hint[WORD_MAX] = "";
    if (!read_line(fd, word, sizeof(word)))
        return error_set(err, -EPROTO, HELPER " exited without a message");
    if (strcmp(word, "ok") == 0)
        return 0;
    int code = -(int)strtol(word, NULL, 10);
    (void)read_line(fd, text, sizeof(text));
    (void)read_line(fd, hint, sizeof(hint));
    bool is_away = code != -EKEYREJECTED && code != -EINVAL && code != -EPROTO && code != -EPROTONOSUPPORT;
    (void)error_set(err, is_away ? -EHOSTDOWN : code == -EINVAL ? code : -EPERM, "%s", text);
    return hint[0] != '\0'   ? error_hint(err, "%s", hint)
           : is_away         ? -EHOSTDOWN
           : code == -EINVAL ? code
                             : -EPERM;
}

/* A helper that does not answer in time is abandoned: it ends when this end of the socket is closed. */
static int await_answer(int fd, const char *host, int timeout_ms, struct error *err)
{
    const struct timeval limit = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 },
                         never = { 0 };
    int length = (int)strcspn(host, "#");
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    errno = 0;
    int r = read_reply(fd, err);
    if (r == -EPROTO && errno == EAGAIN) {
        (void)error_set(err, -EHOSTDOWN, "%.*s did not respond within %d s", length, host, timeout_ms / 1000);
        return error_hint(err, "a firewall may drop the packets, or the machine is off");
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never));
    return r;
}

int remote_connect(const char *host, int timeout_ms, struct http_client **ret, struct error *err)
{
    char number[16];
    int pair[2];
    struct error why = { 0 };
    int r = remote_check("MGPU_HOST", host, err);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    _cleanup_close_ int ours = pair[0], theirs = pair[1];
    (void)snprintf(number, sizeof(number), "%d", HELPER_FD);
    const char *const arguments[] = { HELPER, "--fd", number, host, NULL };
    r = remote_start(arguments, theirs, HELPER_FD, &why);
    closep(&theirs);
    if (r == 0)
        r = await_answer(ours, host, timeout_ms, &why);
    if (r < 0) {
        if (err != NULL)
            *err = why;
        return why.code;
    }
    *ret = http_client_adopt(take_fd(&ours));
    return 0;
}

int remote_read_token(const char *path, char **ret, struct error *err)
{
    char text[TOKEN_MAX + 1] = "";
    struct stat status;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot read the token in %s", path);
    if (fstat(fd, &status) < 0)
        return error_set_errno(err, -errno, "cannot inspect %s", path);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
        (void)error_set(err, -EPERM, "%s can be read by other users (mode %04o) and is not used", path,
            (unsigned)status.st_mode & 07777U);
        return error_hint(err, "run chmod 600 on it, and create a new token if others may have seen it");
    }
    ssize_t n = read(fd, text, TOKEN_MAX);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, " \t\r\n")] = '\0';
    if (text[0] == '\0')
        return error_set(err, -EBADMSG, "%s is empty", path);
    *ret = xstrdup(text);
    return 0;
}

int remote_token(char **ret, struct error *err)
{
    const char *token = getenv("MGPU_TOKEN"), *file = getenv("MGPU_TOKEN_FILE");
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (token != NULL && token[strcspn(token, "\r\n")] != '\0')
        return error_set(err, -EINVAL, "MGPU_TOKEN has more than one line");
    if (token != NULL && *token != '\0') {
        *ret = xstrdup(token);
        return 0;
    }
    if (file != NULL && *file != '\0')
        return remote_read_token(file, ret, err);
    _cleanup_free_ char *usual = config != NULL && config[0] == '/'
                                     ? xasprintf("%s/mgpu/token", config)
                                     : xasprintf("%s/.config/mgpu/token", home != NULL ? home : "");
    if (access(usual, F_OK) == 0)
        return remote_read_token(usual, ret, err);
    (void)error_set(err, -ENOENT, "no token found: neither MGPU_TOKEN nor %s", usual);
    return error_hint(
        err, "on the machine of mgpud: mgpu token create --name laptop; store it in that file, mode 600");
}
