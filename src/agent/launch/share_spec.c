/* SPDX-License-Identifier: MIT */
#include "agent/launch/share_spec.h"

#include <errno.h>

#include "agent/launch/share.h"
#include "base/memory.h"

/* Joins the daemon of its GPU, and sets the variables by which its processes find it. */
static int join_mps(const struct share_parts *parts, const struct record_list *gpus, struct launch_spec *spec,
    struct error *err)
{
    int cgroup_fd = -1;
    _cleanup_free_ char *cgroup = NULL;
    if (spec->share == NULL || share_kind_from_name(spec->share) != SHARE_MPS)
        return 0;
    int r = parts->confine->prepare(parts->cells, &spec->id, &cgroup, &cgroup_fd, err);
    if (r < 0)
        return r;
    const struct gpu_grant *grant = spec->gpus.items;
    const struct mps_client client = { .id = spec->id,
        .uid = spec->uid,
        .gid = spec->gid,
        .uuid = grant->uuid,
        .notices = spec->notices,
        .limits = { share_bytes(grant, share_gpu_bytes(gpus, grant)), share_percent(grant) },
        .cgroup_fd = cgroup_fd };
    r = mps_join(parts->mps, &client, &spec->mps, err);
    if (r == 0)
        mps_set_env(parts->mps, spec->mps, &client, &spec->gpu_env);
    return r;
}

int share_make_spec(const struct share_parts *parts, const struct message_launch *launch,
    const struct job_spec *job, const struct user *user, struct launch_node *node, struct launch_spec *ret,
    struct error *err)
{
    struct share_ways ways = parts->ways != NULL ? *parts->ways : (struct share_ways){ 0 };
    node->shares = parts->ways != NULL ? &ways : NULL;
    if (parts->mps == NULL && ways.is_available[SHARE_MPS])
        share_ways_refuse(&ways, SHARE_MPS, "it has not been started");
    int r = launch_spec_make(launch, job, user, node, ret, err);
    if (r == 0)
        r = join_mps(parts, node->gpus, ret, err);
    if (r == 0 || r == -EINPROGRESS || ret->mps != NULL || ret->share == NULL ||
        share_kind_from_name(job->ask.share) != SHARE_AUTO)
        return r;
    share_ways_refuse(&ways, SHARE_MPS, err->message);
    record_clear(&launch_spec_record, ret);
    return launch_spec_make(launch, job, user, node, ret, err);
}
