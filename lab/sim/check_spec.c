/* SPDX-License-Identifier: MIT */
/* Rows of a case become descriptions of jobs. A test's spoiler may change what is told, so that the checker
 * has something to find. */
#include "lab/sim/check_spec.h"

#include <stdlib.h>

#include "base/memory.h"

void spec_make(const struct world *world, size_t number, struct case_spec *ret)
{
    const int64_t *job = world->of->jobs[number];
    *ret = (struct case_spec){ 0 };
    ret->given = (struct sched_job_spec){
        .id = (uint64_t)job[JOB_ID],
        .submit_ms = job[JOB_AT],
        .key = { .uid = (uint32_t)job[JOB_UID],
            .gid = (uint32_t)job[JOB_GID],
            .priority = (int32_t)job[JOB_PRIORITY],
            .own_priority = (int32_t)job[JOB_OWN],
            .is_preemptible = job[JOB_PREEMPTIBLE] != 0,
            .limit_ms = job[JOB_LIMIT],
            .estimate_ms = world->of->settings[SET_IS_EXACT] == 0 ? 0
                           : job[JOB_TOLD] > 0                    ? job[JOB_TOLD]
                                                                  : job[JOB_RUN],
            .request = { .gpus = (uint32_t)job[JOB_GPUS],
                .nodes = (uint32_t)job[JOB_NODES],
                .gpus_per_node = (uint32_t)job[JOB_PER_NODE],
                .share = (uint32_t)job[JOB_SHARE],
                .gpu_mem = (uint64_t)job[JOB_GPU_MEM],
                .cpu_milli = (uint32_t)job[JOB_CPU],
                .memory = (uint64_t)job[JOB_MEMORY] } },
        .begin_ms = job[JOB_BEGIN],
        .hold = job[JOB_HOLD_UNTIL] > world->now_ms ? BLOCK_HELD_USER : 0,
        .is_array = job[JOB_ELEMENTS] > 0,
        .elements = (uint32_t)job[JOB_ELEMENTS],
        .element_limit = (uint32_t)job[JOB_ELEMENT_LIMIT],
    };
    struct sched_request *request = &ret->given.key.request;
    if (job[JOB_PICK] > 0) {
        ret->pick.node = xasprintf("node%lld", (long long)(job[JOB_PICK] - 1) / 256);
        ret->pick.index = (uint32_t)((job[JOB_PICK] - 1) % 256);
        request->picks = &ret->pick;
        request->n_picks = 1;
    }
    for (uint32_t i = 0; i < LEDGER_GPUS; i++)
        if ((job[JOB_ALLOW] >> i & 1) != 0)
            ret->allow[request->n_allow++] = i;
    request->allow = request->n_allow > 0 ? ret->allow : NULL;
    if (world->parking.options.is_on && !world->parking.options.is_auto) // else the scheduler binds it
        parking_bind(&world->parking, (uint32_t)number, request);
    if (job[JOB_AFTER] > 0) {
        ret->after = (struct ask_after){ .job = (uint64_t)job[JOB_AFTER],
            .kind = (enum after_kind)job[JOB_AFTER_KIND] };
        ret->given.after = &ret->after;
        ret->given.n_after = 1;
    }
}

void spec_clear(struct case_spec *spec)
{
    free(spec->pick.node);
}

void spec_submit_again(struct world *world, size_t number)
{
    struct case_spec spec;
    spec_make(world, number, &spec);
    spec.given.n_after = 0; // it has run
    if (world->spoiler != NULL && world->spoiler->change != NULL)
        world->spoiler->change(world->spoiler->arg, &spec.given);
    sched_edit(world->sched, world->now_ms, &spec.given);
    spec_clear(&spec);
}
