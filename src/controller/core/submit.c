/* SPDX-License-Identifier: MIT */
/* Submits. A request is checked, becomes a job, and is answered when that is durable. */
#include "controller/core/submit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "base/utc.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/describe.h"
#include "controller/core/enqueue.h"
#include "controller/core/entry.h"
#include "controller/core/owners.h"
#include "controller/core/specs.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/after.h"
#include "job/slurm.h"

/* The job that was created with this key, if any: the same answer again, or a conflict. */
bool core_answer_repeated(
    struct core *core, const struct identity *who, const struct job_spec *spec, void *request)
{
    if (spec->submit_key == NULL)
        return false;
    const struct key_row *row = key_table_find(&core->keys, store_key_hash(who->uid, spec->submit_key));
    if (row == NULL)
        return false;
    struct core_answer answer = { .job = row->job, .is_repeated = true };
    const struct core_entry *entry = core_find(core, row->job);
    bool is_foreign = entry != NULL && entry->job->uid != who->uid;
    if (row->spec_hash != job_spec_hash(spec) || is_foreign) {
        answer = (struct core_answer){ .job = is_foreign ? 0 : row->job };
        answer.code = error_set(&answer.err, -EEXIST, "this submit key was used for another request");
    }
    core_reply(core, request, &answer);
    return true;
}

bool core_priority_is_own(const struct core *core, const struct identity *who, const struct job_ask *ask,
    const struct job_ask *before)
{
    if (ask->priority <= 0)
        return false;
    if (core->options.are_priorities_of_all || who->may_raise ||
        core_may(who, ACTION_RAISE, NULL)) // a changed value was set by this user
        return ask->own_priority && !(before->own_priority && ask->priority != before->priority);
    return ask->own_priority || before->own_priority || ask->priority > before->priority;
}

int core_check_ask(
    const struct core *core, const struct identity *who, const struct job_ask *ask, struct error *err)
{
    if (ask->idle_ok && core->options.idle.is_ok_for_operators && !who->may_raise &&
        !core_may(who, ACTION_MANAGE, NULL)) {
        (void)error_set(err, -EPERM, "you are not allowed to request idle_ok here");
        return error_hint(
            err, "only operators and members of priority-group may keep GPUs unused (mgpud --idle-ok)");
    }
    if (core->options.max_time_ms != 0 && ask->adopted_pid == 0 &&
        ask->time_limit_ms > core->options.max_time_ms) {
        char asked[32], most[32];
        format_duration(ask->time_limit_ms, asked, sizeof(asked));
        format_duration(core->options.max_time_ms, most, sizeof(most));
        (void)error_set(err, -ERANGE, "requested a time limit of %s; the maximum is %s", asked, most);
        return error_hint(err,
            "-t %" PRId64 "s, and split a longer job into parts that resume from a checkpoint",
            core->options.max_time_ms / 1000);
    }
    int r = core_check_partition(core, ask, err);
    if (r < 0)
        return r;
    if (ask->deadline_ms != 0 && ask->deadline_ms <= core->now_ms) {
        char text[32];
        utc_format(ask->deadline_ms, text, sizeof(text));
        return error_set(err, -EINVAL, "the deadline %s has already passed", text);
    }
    return 0;
}

/* All requests are validated here. */
static int check_submit(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, struct error *err)
{
    if (!who->is_known)
        return error_set(err, -EPERM, "the request is not authenticated");
    int r = job_spec_validate(spec, err);
    if (r == 0)
        r = core_check_ask(core, who, &spec->ask, err);
    if (r < 0)
        return r;
    return core_check_concerns(core, who, spec, size, err);
}

int64_t core_limit_of(
    const struct core *core, const struct job_ask *ask, const struct core_partition_terms *terms)
{
    if (ask->time_limit_ms != 0 || ask->adopted_pid != 0)
        return ask->time_limit_ms;
    int64_t usual_ms = terms->default_time_ms, most_ms = terms->max_time_ms;
    if (core->options.max_time_ms != 0 && (most_ms == 0 || core->options.max_time_ms < most_ms))
        most_ms = core->options.max_time_ms;
    usual_ms = ask->no_time_limit ? 0 : usual_ms != 0 ? usual_ms : core->options.default_time_ms;
    return most_ms != 0 && (usual_ms == 0 || usual_ms > most_ms) ? most_ms : usual_ms;
}

/* True for a job of this user and name that has not ended. */
static bool is_alike(const struct job *other, uint32_t uid, const char *name)
{
    return other->uid == uid && other->array_job == 0 && other->state != JOB_DONE &&
           text_equal(other->name, name);
}

/* `named`: sorted by after_compare. */
static bool is_named(const struct ask_after *named, size_t count, uint64_t job)
{
    const struct ask_after key = { .job = job };
    return count > 0 && bsearch(&key, named, count, sizeof(*named), after_compare) != NULL;
}

/* The dependencies, with all earlier jobs of the same user and name in place of "singleton". Stops at the
 * first one that exceeds the limit, for which the job is refused. */
static char *replace_singleton(const struct core *core, uint32_t uid, const struct job_spec *spec)
{
    struct buffer out = { 0 };
    _cleanup_free_ char *name = job_spec_display_name(spec);
    _cleanup_free_ struct ask_after *named = NULL;
    size_t n_named = 0;
    if (parse_after(spec->ask.after, &named, &n_named, NULL) == 0 && n_named > 0)
        qsort(named, n_named, sizeof(*named), after_compare);
    _cleanup_free_ char *copy = xstrdup(spec->ask.after);
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;)
        if (strcmp(word, AFTER_SINGLETON) != 0)
            buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", word);
    size_t count = n_named;
    const struct core_entry *entry = core->jobs.first;
    for (; entry != NULL && count <= ASK_AFTER_MAX; entry = entry->after) {
        uint64_t other = entry->job->id;
        if (!is_alike(entry->job, uid, name) || is_named(named, n_named, other))
            continue;
        buffer_printf(&out, "%s%" PRIu64 ":any", out.length > 0 ? "," : "", other);
        count++;
    }
    return out.length > 0 ? buffer_take(&out) : NULL;
}

/* 0: no limit. */
static uint64_t smaller_limit(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Completes the request according to the site's rules and the existing jobs. Everything else is borrowed; the
 * caller frees the result. */
static char *complete_ask(
    const struct core *core, const struct identity *who, const struct job_spec *spec, struct job_ask *ret)
{
    static const struct job_ask nothing = { 0 };
    const struct job_ask *ask = &spec->ask;
    const struct core_partition_terms terms = core_partition_terms(core, ask);
    *ret = *ask;
    ret->partition = terms.name;
    ret->time_limit_ms = core_limit_of(core, ask, &terms);
    ret->own_priority = core_priority_is_own(core, who, ask, &nothing);
    ret->log_max = smaller_limit(ask->log_max, core->options.log_max);
    ret->private_tmp = (ask->private_tmp || core->options.is_tmp_private) && ask->adopted_pid == 0;
    if (job_spec_is_interactive(spec) || slurm_has_client(&ask->slurm))
        ret->no_restart = ask->no_restart || ask->gpus > 0;
    if (job_spec_is_interactive(spec) || spec->image != NULL) { // these start as usual
        ret->no_early = ask->no_early || ask->gpus > 0;
        ret->early = false;
    }
    if (ask->after == NULL || strstr(ask->after, AFTER_SINGLETON) == NULL)
        return NULL;
    return ret->after = replace_singleton(core, who->uid, spec);
}

/* Sets the members that follow from the rest of the request. */
static void set_gpus(struct job *job, uint32_t gpus)
{
    struct job_ask ask = *job->ask;
    ask.gpus = gpus;
    if (gpus != job->ask->gpus)
        job_set_ask(job, &ask);
}

/* The prospective job, and its description for the scheduler. */
static int make_job(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, const struct core_facts *facts, struct job **ret, struct description *ret_description,
    struct error *err)
{
    static const struct core_facts none = { 0 };
    int r = check_submit(core, who, spec, size, err);
    if (r < 0)
        return r;
    struct job_spec completed = *spec; // borrowed
    _cleanup_free_ char *after = complete_ask(core, who, spec, &completed.ask);
    (void)after; // `completed` borrows it
    _cleanup_(job_freep) struct job *job = job_new(core->last_job + 1, &completed);
    job->uid = who->uid;
    job->gid = who->gid;
    job->account = core_account(core, who);
    job->submitted_ms = core->now_ms;
    r = job->ask->private_tmp ? job_spec_check_private_tmp(spec, err) : 0;
    if (r < 0)
        return r;
    r = core_describe(core, job, facts != NULL ? facts : &none, ret_description, err);
    if (r < 0)
        return r;
    struct sched_job_spec check = ret_description->spec;
    check.n_after = ret_description->n_open;
    r = sched_check(core->sched, &check, err);
    if (r < 0) {
        description_clear(ret_description);
        return r == -ENOENT ? err->code = -EINVAL : r;
    }
    set_gpus(job, ret_description->spec.key.request.gpus);
    *ret = take_ptr(job);
    return 0;
}

int core_why_not_yet(const struct core *core, int64_t wall_ms, const struct identity *who,
    const struct job_spec *spec, const struct core_facts *facts, struct why *ret, struct error *err)
{
    struct core look = *core; // only the time differs
    look.now_ms = core_now_ms(core, wall_ms);
    _cleanup_(job_freep) struct job *job = NULL;
    _cleanup_(spec_bytes_dropp) struct spec_bytes *bytes = spec_bytes_new(spec);
    struct description description;
    int r = make_job(&look, who, spec, bytes->length, facts, &job, &description, err);
    if (r < 0)
        return r;
    description.spec.id = 0;
    why_explain(core->sched, look.now_ms, 0, &description.spec, ret);
    description_clear(&description);
    return 0;
}

static void record_submit(
    struct core *core, const struct identity *who, struct core_entry *entry, struct spec_bytes *spec)
{
    const struct job *job = entry->job;
    core_note_owner(core, job->uid, job->id);
    if (spec->submit_key != NULL)
        key_table_add(&core->keys, store_key_hash(job->uid, spec->submit_key), job->id, spec->hash);
    const struct job_ask *ask = job->ask;
    struct event_credential credential = {
        .token = who->token.id, .max_gpu_ms = who->token.max_gpu_ms, .expires_ms = who->token.expires_ms
    };
    struct job_event event = {
        .type = EVENT_SUBMITTED,
        .uid = job->uid,
        .gid = job->gid,
        .account = job->account,
        .hold = job->hold,
        .ask = ask_shared_list(ask), // also in the event, so that the log contains the request
        .credential = { .items = &credential, .count = credential.token != 0 },
    };
    core_change(core, entry, &event, spec);
    ask_shared_drop(ask);
}

uint64_t core_accept(struct core *core, const struct identity *who, struct job_spec *submitted,
    const struct core_facts *facts, void *request)
{
    struct core_answer answer = { 0 };
    struct description description;
    struct job *job = NULL;
    if (core_answer_repeated(core, who, submitted, request)) {
        job_spec_free(submitted);
        return 0;
    }
    _cleanup_(spec_bytes_dropp) struct spec_bytes *spec = spec_bytes_new(submitted);
    answer.code = make_job(core, who, submitted, spec->length, facts, &job, &description, &answer.err);
    job_spec_free(submitted);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        return 0;
    }
    struct core_entry *entry = job_table_add(&core->jobs, job);
    core->last_job = job->id;
    record_submit(core, who, entry, spec);
    core_keep_spec(core, entry, spec);
    core_enqueue_new(core, &description);
    core_reply_ok(core, request, job->id);
    return job->id;
}

void core_submit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request)
{
    core_begin(core, boot_ms, wall_ms);
    (void)core_accept(core, who, spec, facts, request);
}
