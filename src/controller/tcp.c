/* SPDX-License-Identifier: MIT */
/*
 *   bound ─────────────────────────────────────────> served
 *     └── in use, or no such address ──> every RETRY_SECONDS ──┘
 *
 * Every user can occupy a free port. This must not keep mgpud from starting. The port is bound when it is
 * free again, like that for nodes (nodes/listener.c).
 *
 * Browsers identify a page by scheme, host and port. A script that another user's program has sent from this
 * port may wait, or be installed as a service worker, until mgpud answers there; its requests then count as
 * those of the page. Therefore, once another user's program was seen at the port, browsers are refused as
 * long as this mgpud runs (api/route.c). Other programs do not run such scripts and are served.
 */
#include "controller/tcp.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system_mgpud.h"
#include "controller/config/settings.h"
#include "controller/controller.h"
#include "controller/nodes/sockets.h"
#include "wire/address.h"

#define OPTION        "--listen"
#define RETRY_SECONDS 5

struct tcp {
    struct controller *controller;
    uid_t trusted_uid;
    struct sockets sockets;
    struct event *timer;
    int (*open)(void *arg, int fd, struct error *err); // NULL: the port is not served
    void *arg;
};

struct tcp *tcp_new(struct controller *controller, uid_t trusted_uid)
{
    struct tcp *tcp = xcalloc(1, sizeof(*tcp));
    *tcp = (struct tcp){ .controller = controller, .trusted_uid = trusted_uid, .sockets = SOCKETS_EMPTY };
    return tcp;
}

void tcp_free(struct tcp *tcp)
{
    if (tcp == NULL)
        return;
    tcp_pause(tcp);
    sockets_close(&tcp->sockets);
    free(tcp);
}

/* Logs each reason once, not at each attempt. */
static void note_trouble(struct tcp *tcp, bool is_stranger, const struct error *err)
{
    struct tcp_state *state = &tcp->controller->tcp_state;
    if (strcmp(state->trouble.message, err->message) == 0)
        return;
    state->trouble = *err;
    log_warning("no API on TCP, and no web page: %s; trying again every %d s", err->message, RETRY_SECONDS);
    if (is_stranger)
        log_warning("no browser will be served until mgpud is restarted: a page of that program would be "
                    "taken for mgpud's");
}

/* If this machine has no IPv6, no program can have ::1. */
static void note_state(struct tcp *tcp, bool is_stranger)
{
    struct tcp_state *state = &tcp->controller->tcp_state;
    state->is_contested |= is_stranger && address_is_loopback(tcp->controller->options.listen);
    state->is_bound = tcp->sockets.count > 0;
    state->lacks_localhost = state->is_bound && tcp->sockets.count < SOCKETS_MAX && !tcp->sockets.lacks_six;
    if (state->is_bound)
        state->trouble = (struct error){ 0 };
}

static int bind_all(struct tcp *tcp, struct error *err)
{
    bool is_stranger = false;
    const char *listen = tcp->controller->options.listen;
    int r = sockets_listen_all(OPTION, listen, tcp->trusted_uid, &tcp->sockets, &is_stranger, err);
    note_state(tcp, is_stranger);
    if (r < 0 && r != -EINVAL && !tcp->controller->options.needs_listen)
        note_trouble(tcp, tcp->controller->tcp_state.is_contested, err);
    return r;
}

int tcp_bind(struct tcp *tcp, struct error *err)
{
    struct error trouble = { 0 };
    if (strcmp(tcp->controller->options.listen, "none") == 0)
        return 0;
    int r = bind_all(tcp, &trouble);
    bool is_final = r == -EINVAL || (r < 0 && tcp->controller->options.needs_listen);
    if (is_final && err != NULL)
        *err = trouble;
    return is_final ? r : 0;
}

static int pass(struct tcp *tcp, int fd, struct error *err)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? error_set_errno(err, -errno, "cannot listen") : tcp->open(tcp->arg, copy, err);
}

static int pass_all(struct tcp *tcp, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < tcp->sockets.count && r == 0; i++)
        r = pass(tcp, tcp->sockets.fds[i], err);
    return r;
}

/* A user's own mgpud leaves the default port to that of the machine, which may just be restarting. */
static bool may_take_later(const struct tcp *tcp)
{
    const struct controller *controller = tcp->controller;
    bool is_usual = settings_find_note(&controller->options, "listen") == NULL;
    return controller->is_root || !is_usual || system_mgpud_trace() == NULL;
}

static void arm(struct tcp *tcp)
{
    bool is_wanted = strcmp(tcp->controller->options.listen, "none") != 0 && may_take_later(tcp);
    if (is_wanted && (tcp->sockets.count == 0 || tcp->sockets.lacks_six))
        (void)evtimer_add(tcp->timer, &(struct timeval){ .tv_sec = RETRY_SECONDS });
}

static void take_port(struct tcp *tcp)
{
    struct error err = { 0 };
    if (bind_all(tcp, &err) < 0)
        return;
    if (pass_all(tcp, &err) < 0)
        log_error("no API on TCP: %s", err.message);
    else
        log_info("the API is now at %s%s", tcp->controller->options.listen,
            tcp->controller->tcp_state.is_contested ? ", but not for browsers: another user's program had it"
                                                    : "");
}

/* IPv6 may be enabled later. */
static void take_six(struct tcp *tcp)
{
    struct error err = { 0 };
    bool is_stranger = false;
    int fd =
        sockets_add_six(tcp->controller->options.listen, tcp->trusted_uid, &tcp->sockets, &is_stranger, &err);
    if (fd >= 0 && pass(tcp, fd, &err) < 0)
        log_error("no API on TCP by IPv6: %s", err.message);
    if (is_stranger && !tcp->controller->tcp_state.is_contested)
        log_warning("no web page: %s, which could answer in mgpud's name", err.message);
    note_state(tcp, is_stranger);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct tcp *tcp = arg;
    if (tcp->sockets.count == 0)
        take_port(tcp);
    else if (tcp->sockets.lacks_six)
        take_six(tcp);
    arm(tcp);
}

int tcp_serve(
    struct tcp *tcp, int (*open)(void *arg, int fd, struct error *err), void *arg, struct error *err)
{
    tcp->open = open;
    tcp->arg = arg;
    tcp->timer = evtimer_new(tcp->controller->loop, on_timer, tcp);
    if (tcp->timer == NULL)
        abort(); // memory
    arm(tcp);
    return pass_all(tcp, err);
}

void tcp_pause(struct tcp *tcp)
{
    if (tcp->timer != NULL)
        event_free(take_ptr(tcp->timer));
    tcp->open = NULL;
}
