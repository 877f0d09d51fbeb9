/* SPDX-License-Identifier: MIT */
/* Converts the user's request to the scheduler's form: lists of ids are parsed once, at the submit. */
#include "sched/cluster/request.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "job/ask.h"
#include "job/share.h"

#define CPU_JOB_MILLI 1000U // a job without GPUs that names no CPUs

static int parse_picks(struct sched_request *request, const char *text, struct error *err)
{
    struct ask_gpu *gpus = NULL;
    int rc = parse_gpu_ids(text, &gpus, &request->n_picks, err);
    if (rc < 0)
        return rc;
    request->picks = xcalloc(request->n_picks, sizeof(*request->picks));
    for (size_t i = 0; i < request->n_picks; i++)
        request->picks[i] = (struct gpu_pick){ xstrdup(gpus[i].node), gpus[i].index };
    ask_gpus_free(gpus, request->n_picks);
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

int request_from_ask(const struct job_ask *ask, struct sched_request *ret, struct error *err)
{
    struct sched_request request = { .gpus = ask->gpus,
        .nodes = ask->nodes,
        .gpus_per_node = ask->gpus_per_node,
        .share = ask->gpu_share,
        .gpu_mem = ask->gpu_mem,
        .cpu_milli = ask->cpu_milli,
        .memory = ask->memory,
        .adopted_pid = ask->adopted_pid,
        .is_exclusive = ask->exclusive,
        .share_kind = share_kind_from_name(ask->share),
        .partition = xstrdup(ask->partition),
        .nodelist = xstrdup(ask->nodelist),
        .exclude = xstrdup(ask->exclude),
        .model = xstrdup(ask->gpu_model) };
    int rc = ask->gpu_ids != NULL ? parse_picks(&request, ask->gpu_ids, err) : 0;
    if (rc == 0 && ask->gpu_allow != NULL)
        rc = parse_id_list(
            ask->gpu_allow, "--gpu-allow", ASK_GPU_INDEX_MAX, &request.allow, &request.n_allow, err);
    if (rc < 0) {
        request_clear(&request);
        return rc;
    }
    if (request.n_allow > 0)
        qsort(request.allow, request.n_allow, sizeof(*request.allow), compare_ids);
    if (request.n_picks > 0)
        request.gpus = (uint32_t)request.n_picks;
    else if (request.nodes > 0 && request.gpus_per_node > 0)
        request.gpus = request.nodes * request.gpus_per_node;
    else if (request.gpus_per_node > 0 && request.gpus % request.gpus_per_node == 0)
        request.nodes = request.gpus / request.gpus_per_node;
    if (request.gpus == 0 && request.cpu_milli == 0)
        request.cpu_milli = CPU_JOB_MILLI;
    *ret = request;
    return 0;
}
