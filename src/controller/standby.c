/* SPDX-License-Identifier: MIT */
/*
 * There is no core and no open store here: the follower's thread has the store (cluster/follow.c). Clients
 * get the leader's address; whatever they asked for, nothing has been done.
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
#include "base/version.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/status.h"
#include "controller/controller.h"
#include "controller/http/request.h"
#include "controller/http/server.h"
#include "controller/prepare.h"
#include "wire/address.h"
#include "wire/listening.h"

#define LAST_TURNS 3 // of the loop, without waiting, to send pending data

struct standby {
    struct controller *controller;
    bool is_leading;
    struct event *signals[2], *leads;
    struct listening *refusing;
};

static void dispatch(struct request *request)
{
    struct controller *controller = request->serve->controller;
    struct cluster_status status;
    struct error err = { 0 };
    int r = query_parse(request->message.target, &request->path, &request->query, &err);
    if (r < 0) {
        request_refuse(request, &err);
        return;
    }
    cluster_read_status(controller->cluster, &status);
    if (strcmp(request->path, "/api/v1/cluster") == 0 || strcmp(request->path, "/api/v1/version") == 0) {
        json_t *body = cluster_status_write(&status);
        (void)json_object_set_new(body, "version", json_string(MGPU_VERSION));
        request_reply_json(request, 200, body);
        return;
    }
    if (strcmp(request->path, "/healthz") == 0 || strcmp(request->path, "/api/v1/healthz") == 0) {
        request_reply_bytes(request, 200, "text/plain", "standby\n", 8);
        return;
    }
    const char *address = strchr(status.leader, ' ');
    if (address != NULL)
        request_add_header(request, "X-Mgpu-Leader", address + 1);
    (void)error_set(&err, -EREMCHG, "this controller is a standby%s%s",
        address != NULL ? "; the leader is " : "",
        address != NULL ? address + 1 : ", and no controller leads at present");
    (void)error_hint(&err, address != NULL ? "ask the leader; jobs are not affected"
                                           : "try again in some seconds; jobs are not affected");
    request_refuse(request, &err);
}

static bool is_admin(const struct serve *serve, uint32_t uid)
{
    return uid == serve->controller->admin_uid;
}

static void beat(struct serve *serve)
{
}

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
    struct standby *standby = arg;
    log_info("signal %d: mgpud, a standby, exits", (int)fd);
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

/* TLS for other machines is the leader's; a connection that is closed at once is tried elsewhere at once. */
static void on_remote(void *arg, int fd)
{
    (void)close(fd);
}

/* The sockets are used by the leader as well. */
static int listen_on(struct serve *serve, int fd, bool is_unix, struct error *err)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? error_set_errno(err, -errno, "cannot listen") : serve_listen(serve, copy, is_unix, err);
}

static int listen_on_tcp(struct standby *standby, struct serve *serve, int fd, struct error *err)
{
    if (fd < 0 || address_is_loopback(standby->controller->options.listen))
        return fd < 0 ? 0 : listen_on(serve, fd, false, err);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0)
        standby->refusing = listening_new(standby->controller->loop, copy, on_remote, standby);
    return standby->refusing == NULL ? error_set_errno(err, -errno, "cannot listen") : 0;
}

int standby_run(struct controller *controller, struct prepared *prepared, struct error *err)
{
    static const struct serve_hooks hooks = { .dispatch = dispatch, .is_admin = is_admin, .beat = beat };
    struct standby standby = { .controller = controller };
    struct serve *serve = serve_new(controller, &hooks);
    int r = listen_on(serve, prepared->api_fd, true, err);
    if (r == 0)
        r = listen_on_tcp(&standby, serve, prepared->tcp_fd, err);
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
    serve_free(serve);
    listening_free(standby.refusing);
    for (size_t i = 0; i < 2; i++)
        if (standby.signals[i] != NULL)
            event_free(standby.signals[i]);
    if (standby.leads != NULL)
        event_free(standby.leads);
    if (r == 0 && standby.is_leading)
        r = cluster_lead(controller->cluster, err);
    return r < 0 ? r : standby.is_leading;
}
