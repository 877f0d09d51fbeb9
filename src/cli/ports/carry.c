/* SPDX-License-Identifier: MIT */
/*
 * Each connection has its own process: connecting to mgpud may take time (TLS, a slow node), and the
 * other connections must not wait for it.
 */
#include "cli/ports/carry.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bridge.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/options/talk.h"

static char *make_path(const struct carry_to *to)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    buffer_printf(&path, API_PATH "/jobs/%s/port?rank=%u", to->job, to->rank);
    if (to->remote->path == NULL) {
        buffer_printf(&path, "&port=%u", to->remote->port);
    } else {
        buffer_append_text(&path, "&path=");
        http_append_encoded(&path, to->remote->path);
    }
    return buffer_take(&path);
}

static int dial_once(struct call *call, const struct carry_to *to, struct http_client **ret,
    struct buffer *first, struct error *err)
{
    _cleanup_free_ char *path = make_path(to);
    const struct http_request request = {
        .method = "GET", .path = path, .header = "Connection: Upgrade\r\nUpgrade: mgpu-terminal"
    };
    return client_upgrade(&call->client, &request, ret, first, err);
}

static int dial(struct call *call, const struct carry_to *to, struct http_client **ret, struct buffer *first,
    struct error *err)
{
    int64_t first_ms = clock_boot_ms();
    int delay_ms = 0;
    for (;;) {
        int r = dial_once(call, to, ret, first, err);
        bool is_loss = client_is_loss(r) || r == -EHOSTUNREACH;
        if (r == 0 || !is_loss || clock_boot_ms() - first_ms > CLIENT_PATIENT_MS)
            return r;
        client_back_off(&delay_ms);
    }
}

static int copy(int plain_fd, int framed_fd, const struct buffer *first)
{
    _cleanup_(bridge_clear) struct bridge bridge;
    struct pollfd fds[2] = { 0 };
    bridge_init(&bridge, plain_fd, framed_fd, BRIDGE_CLIENT, first);
    int r = bridge_turn(&bridge, fds); // bytes that arrived with the answer
    while (r == 0) {
        bridge_events(&bridge, fds);
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return -errno;
        r = bridge_turn(&bridge, fds);
    }
    return r;
}

int carry(struct call *call, const struct carry_to *to, int fd, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    _cleanup_buffer_ struct buffer first = { 0 };
    int r = dial(call, to, &http, &first, err);
    if (r < 0)
        return r;
    r = copy(fd, http_client_fd(http), &first);
    return r < 0 ? error_set_errno(err, r, "the connection to job %s was cut", to->job) : 0;
}

/* A browser whose connection only ends would wait; after a reset it tries again. */
static void reset(int fd)
{
    static const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

pid_t carry_start(struct call *call, const struct carry_to *to, int fd, bool is_quiet)
{
    struct error err = { 0 };
    sigset_t none;
    (void)fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid != 0) {
        (void)close(fd);
        return pid < 0 ? -errno : pid;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGTERM, SIG_DFL); // the signal ends it, whatever this program ignores
    (void)signal(SIGPIPE, SIG_IGN);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    int r = carry(call, to, fd, &err);
    if (r < 0 && !is_quiet && r != -ECONNRESET) // a reset comes from the other side
        talk_error(call->command->name, &err);
    if (r < 0)
        reset(fd);
    _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}
