/* SPDX-License-Identifier: MIT */
#include "controller/api/api.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/memory.h"
#include "controller/api/events.h"
#include "controller/api/jobs.h"
#include "controller/api/refer.h"
#include "controller/api/route.h"
#include "controller/api/steps.h"
#include "controller/api/tokens.h"
#include "controller/cluster/cluster.h"
#include "controller/http/request.h"
#include "controller/identity/job_access.h"
#include "controller/identity/rights.h"
#include "controller/nodes/streams.h"
#include "wire/address.h"
#include "wire/json_text.h"

static bool is_admin(const struct serve *serve, uint32_t uid)
{
    return rights_role(serve, uid) == ROLE_ADMIN;
}

static void take_job_client(
    void *arg, struct bufferevent *stream, const char *node, const struct message_job_client *first)
{
    serve_adopt_job(arg, stream, node, first);
}

void api_serve_jobs(struct serve *serve)
{
    streams_set_clients(serve->controller->streams, take_job_client, serve);
}

static void beat(struct serve *serve)
{
    tokens_end_expired(serve);
    events_beat(serve);
}

struct serve *api_new(struct controller *controller)
{
    static const struct serve_hooks hooks = {
        .dispatch = route_dispatch,
        .is_admin = is_admin,
        .beat = beat,
    };
    return serve_new(controller, &hooks);
}

void api_publish(struct serve *serve, const struct job_event *event, const struct job *job)
{
    events_publish(serve, event, job);
    steps_publish(serve, event);
    job_access_publish(serve, event);
}

char *api_describe(struct serve *serve, const struct job *job)
{
    if (serve == NULL)
        return NULL;
    json_t *object = jobs_write(serve, job, SHOW_JOB);
    char *text = json_text_format(object);
    json_decref(object);
    return text;
}

/* --- several controllers --- */

/* The URL that clients can use instead of this controller; NULL: unknown, or there is no leader. The caller
 * frees it. */
static char *leader_url(const struct controller *controller, const char *address)
{
    if (address == NULL || address[0] == '\0')
        return NULL;
    if (address_is_loopback(address))
        return xasprintf("http://%s", address);
    return controller->cluster_pin[0] != '\0' ? xasprintf("https://%s#%s", address, controller->cluster_pin)
                                              : NULL;
}

void refer_to_leader(struct request *request, const char *what)
{
    const struct controller *controller = request->serve->controller;
    struct cluster_status status;
    struct error err = { 0 };
    cluster_read_status(controller->cluster, &status);
    const char *space = strchr(status.leader, ' ');
    const char *address = space != NULL && space[1] != '\0' ? space + 1 : NULL;
    _cleanup_free_ char *url = leader_url(controller, address);
    if (address != NULL)
        request_add_header(request, "X-Mgpu-Leader", address);
    (void)error_set(&err, -EREMCHG, "%s%s%s", what, address != NULL ? "; the leader is " : "",
        address != NULL ? address : ", and no controller leads at present");
    (void)error_hint(&err, address != NULL ? "ask the leader; jobs are not affected"
                                           : "try again in some seconds; jobs are not affected");
    request_reply_problem_with(request, &err, "leader", url != NULL ? json_string(url) : json_null());
}

void refer_to_page(struct request *request)
{
    const struct controller *controller = request->serve->controller;
    struct cluster_status status;
    cluster_read_status(controller->cluster, &status);
    const char *space = strchr(status.leader, ' ');
    _cleanup_free_ char *url = leader_url(controller, space != NULL ? space + 1 : NULL);
    if (url == NULL) {
        refer_to_leader(request, "this controller is a standby");
        return;
    }
    _cleanup_free_ char *page = xasprintf("%.*s/", (int)strcspn(url, "#"), url);
    request_add_header(request, "Location", page);
    request_reply_bytes(request, 307, "text/plain", "", 0);
}

void refer_to_all(struct request *request)
{
    struct cluster *cluster = request->serve->controller->cluster;
    if (cluster == NULL || !connection_is_remote(request->connection))
        return;
    _cleanup_free_ char *all = cluster_addresses(cluster, CLUSTER_FOR_CLIENTS);
    if (all != NULL)
        request_add_header(request, "X-Mgpu-Controllers", all);
}
