/* SPDX-License-Identifier: MIT */
/*
 * A node only reports which attempt a connection belongs to. For each request, mgpud checks against its own
 * state whether that attempt is running on that node. Root on a node can therefore act as the owners of the
 * jobs running there, only while they run, and within these limits: roles above an ordinary user do not
 * count, nothing is done as root, and --job-access applies.
 */
#include "controller/identity/job_access.h"

#include <errno.h>
#include <inttypes.h>

#include "controller/http/request.h"

#define TOKEN_HINT "set MGPU_HOST and a token: mgpu token create, on mgpud's machine"

static int refuse(const struct request *request, const struct job *job, struct error *err)
{
    const struct job_peer *peer = connection_job(request->connection);
    if (request->serve->controller->options.job_access == JOB_ACCESS_NONE)
        (void)error_set(
            err, -EPERM, "commands in jobs on joined machines may not use this mgpud (job-access)");
    else if (job == NULL)
        (void)error_set(err, -EPERM, "job %" PRIu64 " does not run on node %.64s any more",
            peer->client.id.job, peer->node);
    else
        (void)error_set(err, -EPERM, "jobs of root may not use mgpud from joined machines");
    return error_hint(err, TOKEN_HINT);
}

int job_access_identify(struct request *request, struct error *err)
{
    const struct controller *controller = request->serve->controller;
    const struct job_peer *peer = connection_job(request->connection);
    const struct message_job_client *client = &peer->client;
    enum job_access access = controller->options.job_access;
    const struct job *job = core_job_at(controller->core, peer->node, &client->id, client->token);
    request->who = (struct identity){ 0 };
    if (access == JOB_ACCESS_NONE || job == NULL || (controller->is_root && job->uid == 0))
        return refuse(request, job, err);
    request->who = (struct identity){
        .is_known = true,
        .uid = job->uid,
        .gid = job->gid,
        .token = { .id = JOB_TOKEN | job->id,
            .scopes = SCOPE_READ | SCOPE_JOB | (access == JOB_ACCESS_SUBMIT ? SCOPE_SUBMIT : 0U) },
    };
    return 0;
}

void job_access_publish(struct serve *serve, const struct job_event *event)
{
    struct connection *next = NULL;
    if (serve == NULL || serve->n_job_connections == 0)
        return;
    for (struct connection *connection = serve->connections; connection != NULL; connection = next) {
        const struct job_peer *peer = connection_job(connection);
        next = connection_next(connection);
        if (peer != NULL && peer->client.id.job == event->job &&
            core_job_at(serve->controller->core, peer->node, &peer->client.id, peer->client.token) == NULL)
            connection_close(connection);
    }
}
