/* SPDX-License-Identifier: MIT */
/* The functions about several controllers that the API calls. */
#include <stdio.h>

#include "controller/cluster/cluster.h"
#include "serve_later.h"

bool cluster_is_certain(const struct cluster *cluster)
{
    return !current->is_deposed;
}

bool cluster_is_full(const struct cluster *cluster)
{
    return current->is_log_full;
}

void cluster_read_status(struct cluster *cluster, struct cluster_status *ret)
{
    *ret = (struct cluster_status){ .is_leading = true, .position = { .number = 7 } };
    (void)snprintf(ret->leader, sizeof(ret->leader), "c0 a:9123");
}

char *cluster_addresses(struct cluster *cluster, enum cluster_audience audience)
{
    return NULL;
}
