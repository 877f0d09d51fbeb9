/* SPDX-License-Identifier: MIT */
/*
 * The follower's thread owns the store (cluster/follow.c). Requests are answered from a view of it if
 * possible (standby_view.c). For all others, clients get the leader's address, and nothing is done.
 */
#include "controller/standby.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/daemon.h"
#include "base/detach.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"
#include "controller/api/gate.h"
#include "controller/api/refer.h"
#include "controller/api/route.h"
#include "controller/api/tokens.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/status.h"
#include "controller/controller.h"
#include "controller/http/request.h"
#include "controller/http/server.h"
#include "controller/identity/rights.h"
#include "controller/prepare.h"
#include "controller/standby_view.h"
#include "controller/tcp.h"
#include "wire/address.h"
#include "wire/listening.h"

#define LAST_TURNS  3      // turns of the loop, without waiting, to send pending data
#define IDENTITY_US 200000 // between two checks whether the keys of the cluster exist

struct standby {
    struct controller *controller;
    const char *tls_dir;
    bool is_leading, is_leaving;
    struct event *signals[2], *leads, *identity;
    struct listening *refusing;
    int remote_fd; // for clients on other machines, until the keys of the cluster are known; -1: none
};

static void describe_self(struct request *request)
{
    struct cluster_status status;
    cluster_read_status(request->serve->controller->cluster, &status);
    json_t *body = cluster_status_write(&status);
    (void)json_object_set_new(body, "version", json_string(MGPU_VERSION));
    request_reply_json(request, 200, body);
}

static void dispatch(struct request *request)
{
    struct controller *controller = request->serve->controller;
    struct error err = { 0 };
    if (route_is_of_record(request)) {
        standby_view_serve(controller->standby, request);
        return;
    }
    int r = query_parse(request->message.target, &request->path, &request->query, &err);
    if (r < 0) {
        request_refuse(request, &err);
        return;
    }
    refer_to_all(request);
    if (strcmp(request->path, "/api/v1/cluster") == 0 || strcmp(request->path, "/api/v1/version") == 0)
        describe_self(request);
    else if (strcmp(request->path, "/healthz") == 0 || strcmp(request->path, "/api/v1/healthz") == 0)
        request_reply_bytes(request, 200, "text/plain", "standby\n", 8);
    else if (strcmp(request->path, "/") == 0)
        refer_to_page(request);
    else
        refer_to_leader(request, "this controller is a standby");
}

static bool is_admin(const struct serve *serve, uint32_t uid)
{
    return rights_role(serve, uid) == ROLE_ADMIN;
}

static void beat(struct serve *serve)
{
    tokens_end_expired(serve);
    standby_view_beat(serve->controller->standby);
}

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
    struct standby *standby = arg;
    log_info("signal %d: mgpud, a standby, exits", (int)fd);
    standby->is_leaving = true; // even if it was about to become leader
    (void)event_base_loopbreak(standby->controller->loop);
}

static void on_leads(evutil_socket_t fd, short events, void *arg)
{
    struct standby *standby = arg;
    standby->is_leading = true;
    (void)event_base_loopbreak(standby->controller->loop);
}

static void watch(struct standby *standby)
{
    static const int signals[] = { SIGTERM, SIGINT };
    struct event_base *loop = standby->controller->loop;
    for (size_t i = 0; i < 2; i++) {
        standby->signals[i] = evsignal_new(loop, signals[i], on_signal, standby);
        (void)evsignal_add(standby->signals[i], NULL);
    }
    standby->leads = event_new(loop, cluster_fd(standby->controller->cluster), EV_READ, on_leads, standby);
    (void)event_add(standby->leads, NULL);
}

/* --- clients on other machines --- */

/* Clients retry a connection that is closed at once at another controller, without a delay. */
static void on_remote(void *arg, int fd)
{
    (void)close(fd);
}

/* The keys are read from etcd, so all controllers have the same. */
static void on_identity(evutil_socket_t fd, short events, void *arg)
{
    struct standby *standby = arg;
    struct error err = { 0 };
    if (!cluster_has_identity(standby->controller->cluster))
        return;
    (void)event_del(standby->identity);
    listening_free(take_ptr(standby->refusing));
    if (api_gate_new_for_standby(standby->controller, standby->tls_dir, take_fd(&standby->remote_fd),
            &standby->controller->api_gate, &err) < 0)
        log_warning("this standby serves no clients on other machines: %s", err.message);
}

static int await_identity(struct standby *standby, int fd, struct error *err)
{
    struct event_base *loop = standby->controller->loop;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    standby->remote_fd = fd;
    if (copy >= 0)
        standby->refusing = listening_new(loop, copy, on_remote, standby);
    if (standby->refusing == NULL)
        return error_set_errno(err, -errno, "cannot listen");
    standby->identity = event_new(loop, -1, EV_PERSIST, on_identity, standby);
    return event_add(standby->identity, &(struct timeval){ .tv_usec = IDENTITY_US });
}

/* --- sockets --- */

/* The leader uses the same sockets. */
static int listen_on(struct serve *serve, int fd, bool is_unix, struct error *err)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? error_set_errno(err, -errno, "cannot listen") : serve_listen(serve, copy, is_unix, err);
}

static int open_tcp(void *arg, int fd, struct error *err)
{
    struct standby *standby = arg;
    struct controller *controller = standby->controller;
    return address_is_loopback(controller->options.listen) ? serve_listen(controller->serve, fd, false, err)
                                                           : await_identity(standby, fd, err);
}

static int listen_on_all(struct standby *standby, const struct prepared *prepared, struct error *err)
{
    struct controller *controller = standby->controller;
    int r = listen_on(controller->serve, prepared->api_fd, true, err);
    return r < 0 ? r : tcp_serve(controller->tcp, open_tcp, standby, err);
}

static void clear(struct standby *standby)
{
    struct controller *controller = standby->controller;
    struct event *events[] = { standby->signals[0], standby->signals[1], standby->leads, standby->identity };
    tcp_pause(controller->tcp);
    api_gate_free(take_ptr(controller->api_gate));
    serve_close(controller->serve);
    standby_view_free(take_ptr(controller->standby));
    serve_free(take_ptr(controller->serve));
    listening_free(standby->refusing);
    closep(&standby->remote_fd);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i] != NULL)
            event_free(events[i]);
}

int standby_run(struct controller *controller, struct prepared *prepared, struct error *err)
{
    static const struct serve_hooks hooks = { .dispatch = dispatch, .is_admin = is_admin, .beat = beat };
    _cleanup_free_ char *tls_dir = xasprintf("%s/tls", prepared->store_dir);
    struct standby standby = { .controller = controller, .tls_dir = tls_dir, .remote_fd = -1 };
    controller->serve = serve_new(controller, &hooks);
    controller->standby = standby_view_new(controller, prepared->store_dir);
    int r = listen_on_all(&standby, prepared, err);
    if (r == 0)
        r = cluster_follow(controller->cluster, err);
    if (r == 0) {
        log_info("mgpud %s is a standby", MGPU_VERSION);
        daemon_notify_ready("standby");
        detach_ready(&prepared->detached);
        watch(&standby);
        (void)event_base_dispatch(controller->loop);
        for (int i = 0; i < LAST_TURNS; i++)
            (void)event_base_loop(controller->loop, EVLOOP_NONBLOCK);
    }
    clear(&standby);
    if (standby.is_leaving)
        return r;
    if (r == 0 && standby.is_leading)
        r = cluster_lead(controller->cluster, err);
    return r < 0 ? r : standby.is_leading;
}
