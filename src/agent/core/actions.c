/* SPDX-License-Identifier: MIT */
/*
 * The agent's actions for one attempt: observe, look up the action, perform it, and repeat while that changed
 * what is observed. Every action is idempotent: a shepherd exits if another is running, a verdict is settled
 * once, a report is sent once after each HELLO. Failing actions are retried with increasing delays.
 */
#include "agent/core/actions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "job/start_failure.h"
#include "job/state.h"

#define REMOVAL_MS        1    // a removal may be delayed by this time
#define PASSES_MAX        4    // consecutive actions for one attempt: stage, start, settle, report
#define RETRY_FIRST_MS    100  // delay before retrying an action that failed: adopt, kill, command, settle
#define RETRY_MAX_MS      5000 // the longest such delay
#define UNWATCHED_MS      1000 // interval of checks of a shepherd whose end is not announced
#define UNREPORTED_MS     1000 // interval of checks of a shepherd that was started and has not reported yet
#define RELEASED_MS       100  // interval at which GO is sent to a shepherd that has not reacted
#define START_REPORT_MS   10   // a report that an element has started may be delayed by this time
#define EXIT_CODE_UNKNOWN 125
#define CHECKING_MS       50   // interval of checks of an attempt that waits for a check of its GPUs
#define BEHIND_MS         1000 // the same while another attempt is on its GPUs, of which the end is announced

/* One observation of one attempt. */
struct pass {
    struct agent_core *core;
    struct attempt *attempt;
    int64_t boot_ms;
    struct attempt_observation observed;
    const struct message_launch *launch; // or NULL
};

enum next { DONE, REPEAT };

static enum next retry_later(struct pass *pass)
{
    struct attempt *attempt = pass->attempt;
    if (attempt->retry_ms == 0)
        attempt->retry_ms = RETRY_FIRST_MS;
    attempt->not_before = pass->boot_ms + attempt->retry_ms;
    attempt->retry_ms = attempt->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : attempt->retry_ms * 2;
    agent_core_reconcile_by(pass->core, attempt, attempt->not_before);
    return DONE;
}

/* Settles "nogo", so that "it never ran" is true. If the shepherd settled first, the next observation shows
 * it. */
static enum next give_back(struct pass *pass, uint32_t cause, const char *why)
{
    struct error err = { 0 };
    struct agent_effects *effects = &pass->core->effects;
    struct attempt *attempt = pass->attempt;
    free(attempt->why_returned);
    attempt->why_returned = xstrdup(why);
    attempt->cause_returned = cause;
    if (effects->settle_nogo(effects->arg, &attempt->id, attempt->token, &err) >= 0) {
        if (pass->observed.is_alive) // it finds the verdict against it, and exits
            (void)effects->release(effects->arg, &attempt->id, 0);
        return REPEAT;
    }
    log_job(LOG_ERROR, attempt->id.job, "%s", err.message);
    return retry_later(pass);
}

static enum next act_wait(struct pass *pass)
{
    if (pass->observed.is_checking)
        agent_core_reconcile_by(pass->core, pass->attempt, pass->boot_ms + CHECKING_MS);
    return DONE;
}

/* After a failure, the action is retried at a separate time, which is also armed here: the observation
 * armed with the failure may have been made already for another reason. */
static bool is_too_early(const struct pass *pass)
{
    if (pass->boot_ms >= pass->attempt->not_before)
        return false;
    agent_core_reconcile_by(pass->core, pass->attempt, pass->attempt->not_before);
    return true;
}

/* Keeps the order until the user has been looked up. Copies of the order are ignored meanwhile. */
static void await_staging(struct pass *pass)
{
    struct attempt *attempt = pass->attempt;
    if (attempt->launch != NULL)
        return;
    attempt->launch = xcalloc(1, sizeof(*attempt->launch));
    record_copy(&message_launch_record, attempt->launch, pass->launch);
}

static void write_kept_terms(struct pass *pass)
{
    struct error err = { 0 };
    const struct attempt *attempt = pass->attempt;
    struct agent_effects *effects = &pass->core->effects;
    if (attempt->terms_kept != NULL &&
        effects->update(effects->arg, &attempt->id, attempt->terms_kept, &err) < 0)
        log_job(LOG_ERROR, attempt->id.job, "%s", err.message);
}

/* A failed preparation has no consequences: the LAUNCH will fail for the same reason, or succeed. */
static void log_at_failure(const struct attempt *attempt, const struct error *err)
{
    if (attempt_is_speculative(attempt->want))
        log_job(LOG_DEBUG, attempt->id.job, "cannot prepare it: %s", err->message);
    else
        log_job(LOG_WARNING, attempt->id.job, "%s", err->message);
}

/* This may be long after LAUNCH arrived: the lease may have been renewed, or have expired. */
static enum next act_stage(struct pass *pass)
{
    struct error err = { 0 };
    struct agent_effects *effects = &pass->core->effects;
    struct attempt *attempt = pass->attempt;
    if (pass->launch == NULL && attempt->launch == NULL)
        return give_back(pass, START_UNNAMED, "its spool entry is missing");
    struct message_launch launch = pass->launch != NULL ? *pass->launch : *attempt->launch;
    launch.lease_until_ms = attempt->lease_ms > 0 ? attempt->renewed_ms : 0;
    attempt->is_prepared = attempt->want == WANT_PREPARED;
    int r = attempt->is_prepared ? effects->prepare(effects->arg, &launch, &err)
                                 : effects->stage(effects->arg, &launch, &err);
    if (r == -EINPROGRESS) {
        await_staging(pass);
        return DONE;
    }
    if (r == 0)
        write_kept_terms(pass);
    agent_core_forget_launch(attempt);
    if (r == 0)
        return REPEAT;
    log_at_failure(attempt, &err);
    return give_back(pass, err.kind, err.message);
}

/* The result of `start` or `admit`: true if it is repeated later. */
static bool awaits_gpus(struct pass *pass, int r)
{
    if (r != -EINPROGRESS && r != -EALREADY)
        return false;
    int64_t wait_ms = r == -EALREADY ? BEHIND_MS : CHECKING_MS;
    agent_core_reconcile_by(pass->core, pass->attempt, pass->boot_ms + wait_ms);
    return true;
}

static enum next act_start(struct pass *pass)
{
    struct error err = { 0 };
    struct agent_effects *effects = &pass->core->effects;
    if (pass->attempt->starts >= (pass->attempt->want == WANT_PREPARED ? 1U : AGENT_STARTS_MAX)) {
        (void)error_set(
            &err, -ECHILD, "mgpu-shepherd ends before the start, each of %u times", pass->attempt->starts);
        log_at_failure(pass->attempt, &err);
        return give_back(pass, START_SHEPHERD, err.message);
    }
    enum shepherd_task task = pass->attempt->is_prepared ? SHEPHERD_WAITS : SHEPHERD_RUNS;
    int r = effects->start(effects->arg, &pass->attempt->id, task, &err);
    if (awaits_gpus(pass, r))
        return DONE;
    pass->attempt->starts++;
    if (r > 0)
        return REPEAT;
    if (r == 0) {
        agent_core_reconcile_by(pass->core, pass->attempt, pass->boot_ms + UNREPORTED_MS);
        return DONE;
    }
    log_at_failure(pass->attempt, &err);
    return give_back(pass, err.kind, err.message);
}

static enum next act_adopt(struct pass *pass)
{
    struct error err = { 0 };
    struct agent_effects *effects = &pass->core->effects;
    struct attempt *attempt = pass->attempt;
    if (attempt->want == WANT_STOPPED)
        attempt->want = WANT_STOP; // the next shepherd has not received it
    if (is_too_early(pass))
        return DONE;
    int r = effects->start(effects->arg, &attempt->id, SHEPHERD_ADOPTS, &err);
    if (r > 0)
        return REPEAT;
    if (r < 0)
        log_job(LOG_WARNING, attempt->id.job, "%s", err.message);
    return retry_later(pass); // even if it started, so a shepherd that dies at once is not restarted at once
}

static enum next act_settle(struct pass *pass)
{
    if (is_too_early(pass))
        return DONE;
    return give_back(pass, START_UNNAMED, "stopped before it started");
}

static void report(
    struct pass *pass, enum attempt_report what, const struct record_type *type, const void *message)
{
    struct agent_effects *effects = &pass->core->effects;
    if (pass->core->link != LINK_OBEYING || pass->attempt->reported >= what)
        return;
    effects->send(effects->arg, type, message);
    pass->attempt->reported = what;
}

static enum next act_report_started(struct pass *pass)
{
    if (pass->observed.started.id.job != 0)
        report(pass, REPORTED_STARTED, &message_started_record, &pass->observed.started);
    return DONE;
}

static enum next act_report_ready(struct pass *pass)
{
    const struct attempt *attempt = pass->attempt;
    struct message_ready ready = {
        .id = attempt->id,
        .token = attempt->token,
        .port = pass->observed.started.port,
    };
    report(pass, REPORTED_READY, &message_ready_record, &ready);
    return DONE;
}

/* The attempt is observed again when the shepherd ends or reports the start; GO may have been sent to one
 * that died. */
static enum next act_release(struct pass *pass)
{
    struct error err = { 0 };
    struct agent_effects *effects = &pass->core->effects;
    bool is_gate = pass->attempt->is_prepared && pass->observed.verdict == VERDICT_NONE;
    int r = is_gate ? effects->admit(effects->arg, &pass->attempt->id, &err) : 0;
    if (awaits_gpus(pass, r))
        return DONE;
    if (r < 0) {
        log_job(LOG_WARNING, pass->attempt->id.job, "%s", err.message);
        return give_back(pass, err.kind, err.message);
    }
    (void)effects->release(effects->arg, &pass->attempt->id, pass->attempt->port);
    agent_core_reconcile_by(pass->core, pass->attempt, pass->boot_ms + RELEASED_MS);
    return DONE;
}

/* An end includes the start, but not the remark about it. */
static enum next act_report_exited(struct pass *pass)
{
    if (pass->observed.started.text != NULL)
        (void)act_report_started(pass);
    struct launch_exit *record = &pass->observed.exit;
    record->ended_ago_ms = launch_exit_ago_ms(record, pass->boot_ms);
    report(pass, REPORTED_END, &message_exited_record, record);
    return DONE;
}

static enum next act_report_returned(struct pass *pass)
{
    const struct attempt *attempt = pass->attempt;
    char given_up[] = "the launch was abandoned";
    struct message_returned returned = {
        .id = attempt->id,
        .token = attempt->token,
        .text = attempt->why_returned != NULL ? attempt->why_returned : given_up,
        .cause = attempt->cause_returned,
    };
    report(pass, REPORTED_END, &message_returned_record, &returned);
    return DONE;
}

/* A shepherd that was ordered to end the step and killed it has a more accurate result than a copy written
 * meanwhile. */
static enum next act_recover(struct pass *pass)
{
    const struct attempt *attempt = pass->attempt;
    struct agent_effects *effects = &pass->core->effects;
    bool is_stopped = attempt->want == WANT_STOP || attempt->want == WANT_STOPPED;
    char text[] = "its spool entry was removed while it ran";
    if (!is_stopped && effects->restore(effects->arg, &attempt->id) == 0)
        return REPEAT;
    struct launch_exit record = {
        .id = attempt->id,
        .token = attempt->token,
        .end = is_stopped ? END_CANCELLED : END_UNKNOWN,
        .exit_code = EXIT_CODE_UNKNOWN,
        .is_executed = 1,
        .text = text,
    };
    report(pass, REPORTED_END, &message_exited_record, &record);
    return DONE;
}

static enum next act_command(struct pass *pass)
{
    struct agent_effects *effects = &pass->core->effects;
    struct attempt *attempt = pass->attempt;
    (void)act_report_started(pass);
    int r = effects->command(effects->arg, &attempt->id, attempt->signal, attempt->grace_ms);
    if (r < 0)
        return retry_later(pass);
    attempt->want = WANT_STOPPED;
    return r > 0 ? REPEAT : DONE;
}

static enum next act_kill(struct pass *pass)
{
    struct agent_effects *effects = &pass->core->effects;
    if (pass->boot_ms >= pass->attempt->not_before)
        effects->kill(effects->arg, &pass->attempt->id);
    return retry_later(pass);
}

/* The prepared entry was removed: stages the LAUNCH that waited for that. */
static void begin_anew(struct attempt *attempt)
{
    attempt->want = WANT_RUN;
    attempt->is_launched = attempt->is_prepared = false;
    attempt->starts = 0;
    attempt->not_before = attempt->retry_ms = 0;
    free(take_ptr(attempt->why_returned));
}

static enum next act_remove(struct pass *pass)
{
    struct agent_effects *effects = &pass->core->effects;
    if (is_too_early(pass))
        return DONE;
    if (effects->remove(effects->arg, &pass->attempt->id) < 0)
        return retry_later(pass); // its shepherd has not ended yet
    if (attempt_is_speculative(pass->attempt->want) && pass->attempt->launch != NULL &&
        pass->attempt->is_launched) {
        begin_anew(pass->attempt);
        return REPEAT;
    }
    agent_core_drop(pass->core, pass->attempt);
    pass->attempt = NULL;
    return DONE;
}

static enum next (*const acts[ATTEMPT_ACTIONS])(struct pass *pass) = {
    [ATTEMPT_WAIT] = act_wait,
    [ATTEMPT_STAGE] = act_stage,
    [ATTEMPT_START] = act_start,
    [ATTEMPT_ADOPT] = act_adopt,
    [ATTEMPT_SETTLE] = act_settle,
    [ATTEMPT_COMMAND] = act_command,
    [ATTEMPT_KILL] = act_kill,
    [ATTEMPT_REPORT_STARTED] = act_report_started,
    [ATTEMPT_REPORT_READY] = act_report_ready,
    [ATTEMPT_RELEASE] = act_release,
    [ATTEMPT_REPORT_EXITED] = act_report_exited,
    [ATTEMPT_REPORT_RETURNED] = act_report_returned,
    [ATTEMPT_RECOVER] = act_recover,
    [ATTEMPT_REMOVE] = act_remove,
};

/* A shepherd started by an earlier agent is not a child: its end is watched, or polled. */
static void watch_shepherd(struct pass *pass)
{
    struct agent_effects *effects = &pass->core->effects;
    if (!pass->observed.is_alive || pass->observed.is_watched)
        return;
    if (!effects->watch(effects->arg, &pass->attempt->id, &pass->observed))
        agent_core_reconcile_by(pass->core, pass->attempt, pass->boot_ms + UNWATCHED_MS);
}

/* Hints are datagrams, of which the kernel keeps few: if the agent is busy for a second, hints of shepherds
 * that start meanwhile are lost. No further check is needed once the step is observed as started. */
static void await_report(struct pass *pass)
{
    const struct attempt_observation *observed = &pass->observed;
    bool is_starting = observed->is_alive && !observed->has_exit && !observed->is_ready &&
                       observed->verdict != VERDICT_NOGO && pass->attempt->want != WANT_PREPARED;
    if (is_starting && observed->started.id.job == 0)
        agent_core_reconcile_by(pass->core, pass->attempt, pass->boot_ms + UNREPORTED_MS);
}

void agent_actions_inspect(
    struct agent_core *core, struct attempt *attempt, struct attempt_observation *observed)
{
    core->effects.observe(core->effects.arg, &attempt->id, attempt->reported == REPORTED_END, observed);
    observed->is_emptied = attempt->has_run && observed->verdict == VERDICT_NONE;
    attempt->has_run |= observed->verdict == VERDICT_GO;
}

void agent_core_forget_launch(struct attempt *attempt)
{
    if (attempt->launch != NULL)
        record_clear(&message_launch_record, attempt->launch);
    free(take_ptr(attempt->launch));
    free(take_ptr(attempt->terms_kept));
}

static void keep_launch(struct pass *pass)
{
    struct attempt *attempt = pass->attempt;
    if (pass->launch == NULL)
        return;
    if (attempt->launch != NULL)
        record_clear(&message_launch_record, attempt->launch);
    else
        attempt->launch = xcalloc(1, sizeof(*attempt->launch));
    record_copy(&message_launch_record, attempt->launch, pass->launch);
}

/*
 * Handles the LAUNCH of a prepared attempt: continues with it if both are the same, otherwise drops it first.
 * An attempt that an earlier agent took may already have its verdict. False if its user is being looked up.
 */
static bool resolve_prepared(struct pass *pass)
{
    struct error err = { 0 };
    struct attempt *attempt = pass->attempt;
    struct agent_effects *effects = &pass->core->effects;
    const struct message_launch *launch = pass->launch != NULL ? pass->launch : attempt->launch;
    if (!attempt->is_launched) {
        attempt->want = pass->observed.verdict == VERDICT_GO ? WANT_NOTHING : attempt->want;
        return true;
    }
    if (pass->observed.verdict == VERDICT_GO ||
        (attempt->want == WANT_PREPARED && !pass->observed.has_spec)) {
        agent_core_forget_launch(attempt);
        attempt->want = WANT_RUN;
        return true;
    }
    int r = attempt->want == WANT_PREPARED && pass->observed.verdict == VERDICT_NONE
                ? effects->take(effects->arg, launch, &err)
                : -ESTALE;
    if (r != 0)
        keep_launch(pass);
    if (r == -EINPROGRESS)
        return false;
    attempt->want = r == 0 ? WANT_GO : WANT_DROPPED;
    if (r == 0) {
        write_kept_terms(pass);
        agent_core_forget_launch(attempt);
    }
    return true;
}

void agent_actions_run(
    struct agent_core *core, struct attempt *attempt, int64_t boot_ms, const struct message_launch *launch)
{
    struct pass pass = { .core = core, .attempt = attempt, .boot_ms = boot_ms, .launch = launch };
    enum next next = REPEAT;
    for (int i = 0; next == REPEAT && i < PASSES_MAX; i++) {
        agent_actions_inspect(core, attempt, &pass.observed);
        if (attempt_is_speculative(attempt->want) && !resolve_prepared(&pass)) {
            attempt_observation_clear(&pass.observed);
            return;
        }
        enum attempt_action action = attempt_decide(&pass.observed, attempt->want);
        log_debug(
            "job %" PRIu64 ".%u: %s", attempt->id.job, attempt->id.attempt, attempt_action_name(action));
        next = acts[action](&pass);
        if (pass.attempt != NULL) {
            watch_shepherd(&pass);
            await_report(&pass);
        }
        attempt_observation_clear(&pass.observed);
    }
    if (next == REPEAT)
        (void)retry_later(&pass);
}

void agent_actions_take_back(struct agent_core *core, struct attempt *attempt, int64_t boot_ms)
{
    if (attempt == NULL || (attempt->want != WANT_RUN && attempt->want != WANT_GO))
        return;
    struct pass pass = { .core = core, .attempt = attempt, .boot_ms = boot_ms };
    agent_actions_inspect(core, attempt, &pass.observed);
    bool is_unstarted =
        pass.observed.verdict == VERDICT_NONE && !pass.observed.has_exit && !pass.observed.is_emptied;
    if (is_unstarted)
        (void)give_back(&pass, START_UNNAMED, "taken back before it started");
    attempt_observation_clear(&pass.observed);
    if (is_unstarted)
        agent_actions_run(core, attempt, boot_ms, NULL);
}

/* Arrays have many elements, many of them short. The start of an element is reported with its end if that
 * follows in time: both then need one observation of its spool entry, and one turn and one commit of the
 * controller. A rank of several is reported at once. */
void agent_actions_follow(struct agent_core *core, struct attempt *attempt, int64_t boot_ms, bool is_start)
{
    bool is_alone = attempt->want == WANT_RUN || (attempt->want == WANT_GO && attempt->is_prepared);
    if (is_start && attempt->is_element && is_alone) {
        agent_core_reconcile_by(core, attempt, boot_ms + START_REPORT_MS);
        return;
    }
    attempt->look_at = 0;
    agent_actions_run(core, attempt, boot_ms, NULL); // arms its own next check
}

void agent_core_remove_soon(struct agent_core *core, struct attempt *attempt, int64_t boot_ms)
{
    core->has_removals = true;
    agent_core_reconcile_by(core, attempt, boot_ms + REMOVAL_MS);
}

void agent_core_remove_now(struct agent_core *core, int64_t boot_ms)
{
    if (!core->has_removals)
        return;
    core->has_removals = false;
    for (size_t i = core->count; i > 0; i--)
        if (core->attempts[i - 1]->want == WANT_RELEASED && core->attempts[i - 1]->look_at != 0)
            agent_actions_run(core, core->attempts[i - 1], boot_ms, NULL);
}
