/* SPDX-License-Identifier: MIT */
/* What users ask for: submit and cancel. Each checks, changes, and answers when the change is durable. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core_private.h"

bool core_may_control(const struct identity *who, const struct job *job, uint32_t admin_uid)
{
    return who->is_known && (who->is_admin || who->uid == job->uid || who->uid == 0 || who->uid == admin_uid);
}

/* The job that this key made, when there is one: the same answer again, or a conflict. True when it answered.
 */
static bool answer_repeated(struct core *core, uint64_t key_hash, uint64_t spec_hash,
    const struct identity *who, struct core_answer *answer)
{
    const struct key_row *row = key_table_find(&core->keys, key_hash);
    if (row == NULL)
        return false;
    const struct core_job *entry = core_find(core, row->job);
    bool is_foreign = entry != NULL && entry->job->uid != who->uid;
    if (row->spec_hash != spec_hash || is_foreign) {
        answer->code = error_set(&answer->err, -EEXIST, "this submit key was used for another request");
        return true;
    }
    answer->job = row->job;
    answer->is_repeated = true;
    return true;
}

static int check_submit(
    const struct core *core, const struct identity *who, const struct job_spec *spec, struct error *err)
{
    if (!who->is_known)
        return error_set(err, -EPERM, "nobody knows who asks");
    int r = job_spec_validate(spec, err);
    if (r < 0)
        return r;
    struct sched_request request = { .gpus = spec->gpus, .gpu_mem = spec->gpu_mem };
    r = job_spec_gpu_ids(spec, &request.ids, &request.n_ids, err);
    if (r == 0)
        r = cluster_check(&core->cluster, &request, err);
    free(request.ids);
    if (r < 0)
        return r;
    if (core->n_undone >= core->options.queue_max) {
        (void)error_set(err, -EDQUOT, "the queue is full: %zu jobs wait or run", core->n_undone);
        return error_hint(err, "try again when some have ended");
    }
    return 0;
}

void core_submit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, void *request)
{
    struct core_answer answer = { 0 };
    uint64_t spec_hash = 0, key_hash = 0;
    if (spec->submit_key != NULL) {
        spec_hash = job_spec_hash(spec);
        key_hash = store_key_hash(who->uid, spec->submit_key);
        if (answer_repeated(core, key_hash, spec_hash, who, &answer)) {
            core_reply(core, request, &answer);
            job_spec_free(spec);
            return;
        }
    }
    answer.code = check_submit(core, who, spec, &answer.err);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        job_spec_free(spec);
        return;
    }
    uint64_t id = ++core->last_job;
    struct core_job *entry = job_table_add(&core->jobs, job_new(id, spec));
    core->n_undone++;
    if (spec->submit_key != NULL)
        key_table_add(&core->keys, key_hash, id, spec_hash);
    struct job_event event = { .type = EVENT_SUBMITTED, .uid = who->uid, .gid = who->gid };
    core_change(core, entry, &event, boot_ms, wall_ms, spec);
    core_keep_spec(core, entry, spec);
    core_enqueue(core, entry);
    core_reply_ok(core, request, id);
}

static int check_cancel(const struct core *core, const struct identity *who, uint64_t id,
    const struct core_job *entry, struct error *err)
{
    if (entry == NULL)
        return error_set(err, -ENOENT, "there is no job %" PRIu64, id);
    if (!core_may_control(who, entry->job, core->options.admin_uid)) {
        (void)error_set(err, -EPERM, "job %" PRIu64 " belongs to another user (uid %u)", id, entry->job->uid);
        return error_hint(err, "only its owner or an administrator may cancel it");
    }
    if (entry->job->state == JOB_DONE)
        return error_set(err, -EALREADY, "job %" PRIu64 " has already ended", id);
    return 0;
}

void core_cancel(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t id,
    int64_t grace_ms, void *request)
{
    struct core_job *entry = core_find(core, id);
    struct core_answer answer = { .job = id };
    answer.code = check_cancel(core, who, id, entry, &answer.err);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        return;
    }
    entry->grace_ms = grace_ms;
    if (entry->job->state == JOB_STOPPING) {
        core_act(core, entry); // again, with a new grace
    } else {
        core_defer(core, entry, 0);
        struct job_event event = { .type = EVENT_STOP, .attempt = entry->job->attempt, .uid = who->uid };
        core_change(core, entry, &event, boot_ms, wall_ms, NULL);
    }
    core_reply_ok(core, request, id);
}
