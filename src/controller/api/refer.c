/* SPDX-License-Identifier: MIT */
#include "controller/api/refer.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/memory.h"
#include "controller/cluster/cluster.h"
#include "controller/http/request.h"
#include "wire/address.h"

/* What mgpu can be told instead of this controller; NULL: unknown, or nobody leads. The caller frees it. */
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

void refer_to_all(struct request *request)
{
    struct cluster *cluster = request->serve->controller->cluster;
    if (cluster == NULL || !connection_is_remote(request->connection))
        return;
    _cleanup_free_ char *all = cluster_addresses(cluster, CLUSTER_FOR_CLIENTS);
    if (all != NULL)
        request_add_header(request, "X-Mgpu-Controllers", all);
}
