/* SPDX-License-Identifier: MIT */
/* Allocated at its start, so it holds its GPUs as long as it runs. */
#include "ended_fixture.h"

#include <stdio.h>

#include "base/memory.h"
#include "unit_test.h"

static void apply(
    struct fixture *fixture, struct job *job, struct job_event *event, const struct job_spec *spec)
{
    event->seq = fixture->next_seq++;
    event->job = job->id;
    if (job_apply(job, event, &fixture->err) < 0)
        fail_msg("%s", fixture->err.message);
    if (fixture->batch == NULL)
        fixture->batch = store_batch_new(++fixture->next_batch);
    _cleanup_(spec_bytes_dropp) struct spec_bytes *bytes = spec != NULL ? spec_bytes_new(spec) : NULL;
    store_batch_add(fixture->batch, event, job, bytes);
    job_event_clear(event);
}

static void give_gpus(struct job_event *event, const struct past_job *past)
{
    for (uint32_t i = 0; i < past->gpus; i++) {
        char uuid[32];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
        gpu_grants_add(&event->gpus, i, uuid, past->share > 0 ? 1 : 0, 0)->share = past->share;
    }
}

static void run(struct fixture *fixture, struct job *job, const struct past_job *past)
{
    struct job_event allocated = { .type = EVENT_ALLOCATED, .attempt = 1, .wall_ms = past->started_ms };
    allocated.node = xstrdup(past->node != NULL ? past->node : "node1");
    give_gpus(&allocated, past);
    apply(fixture, job, &allocated, NULL);
    apply(fixture, job,
        &(struct job_event){ .type = EVENT_STARTED, .attempt = 1, .wall_ms = past->started_ms }, NULL);
    struct job_event ended = { .type = EVENT_ENDED,
        .attempt = 1,
        .wall_ms = past->ended_ms,
        .end = past->end != END_NONE ? past->end : END_EXIT,
        .exit_code = past->exit_code,
        .started_wall_ms = past->started_ms,
        .run_ms = past->ended_ms - past->started_ms - past->parked_ms,
        .parked_ms = past->parked_ms };
    if (past->has_usage) {
        struct job_usage *usage = xcalloc(1, sizeof(*usage));
        *usage =
            (struct job_usage){ .valid = USAGE_UTILIZATION, .utilization_milli = past->utilization_milli };
        ended.usage = (struct record_list){ usage, 1 };
    }
    apply(fixture, job, &ended, NULL);
}

uint64_t ended_add(struct fixture *fixture, const struct past_job *past)
{
    _cleanup_(job_spec_clear) struct job_spec spec;
    char key[32];
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    spec.cwd = xstrdup("/tmp");
    spec.name = xstrdup(past->name != NULL ? past->name : "job");
    (void)snprintf(key, sizeof(key), "key-%llu", (unsigned long long)fixture->next_job);
    spec.submit_key = xstrdup(key);
    _cleanup_(job_freep) struct job *job = job_new(fixture->next_job++, &spec);
    uint64_t id = job->id;
    struct job_event submitted = {
        .type = EVENT_SUBMITTED, .wall_ms = past->submitted_ms, .uid = past->uid, .gid = past->gid
    };
    apply(fixture, job, &submitted, &spec);
    if (past->is_never_started)
        apply(fixture, job,
            &(struct job_event){ .type = EVENT_STOP, .wall_ms = past->ended_ms, .uid = past->uid }, NULL);
    else
        run(fixture, job, past);
    fixture_commit_all(fixture);
    return id;
}
