/* SPDX-License-Identifier: MIT */
#include "controller/ready.h"

#include <event2/event.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "controller/api/gate.h"
#include "controller/controller.h"
#include "controller/http/server.h"
#include "controller/nodes/listener.h"
#include "controller/run_watch.h"
#include "controller/tcp.h"
#include "wire/address.h"

/* TLS is used on addresses that other machines can reach. */
static int open_tcp(void *arg, int fd, struct error *err)
{
    struct controller *controller = arg;
    const struct tls_authority *authority = NULL;
    if (address_is_loopback(controller->options.listen))
        return serve_listen(controller->serve, fd, false, err);
    int r = node_listener_authority(controller->node_listener, &authority, err);
    if (r < 0) {
        (void)close(fd);
        return r;
    }
    return api_gate_new(controller, authority, fd, &controller->api_gate, err);
}

/* A restart creates the directory again. */
static void on_run_gone(void *arg, const char *sentence)
{
    struct controller *controller = arg;
    log_error("%s; mgpud exits and must be restarted", sentence);
    controller->exit_status = EX_TEMPFAIL;
    (void)event_base_loopbreak(controller->loop);
}

/* A mgpud of a single user has no other users. */
static void log_priorities(const struct controller *controller)
{
    if (!controller->is_root)
        return;
    if (controller->options.are_priorities_of_all)
        log_info("priorities above 0 order the jobs of all users: any user can go first (--priorities own)");
    else
        log_info("priorities above 0 order each user's own jobs; for those of all users: --priorities all");
}

int ready_open(struct controller *controller, int api_fd, struct error *err)
{
    int r = serve_listen(controller->serve, api_fd, true, err);
    if (r == 0)
        r = tcp_serve(controller->tcp, open_tcp, controller, err);
    if (r < 0)
        return r;
    log_priorities(controller);
    controller->run_watch =
        run_watch_new(controller->loop, controller->options.run_dir, on_run_gone, controller, err);
    return controller->run_watch == NULL ? err->code : 0;
}
