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

#include "agent/core/heartbeat.h"
#include "base/log.h"
#include "base/memory.h"
#include "job/start_failure.h"
#include "job/state.h"

#define REMOVAL_MS        1    // a removal may be delayed by this time
#define LOOKS_MAX         4    // consecutive actions for one attempt: stage, start, settle, report
#define RETRY_FIRST_MS    100  // delay before retrying an action that failed: adopt, kill, command, settle
#define RETRY_MAX_MS      5000 // the longest such delay
#define UNWATCHED_MS      1000 // interval of checks of a shepherd whose end is not announced
#define UNHEARD_MS        1000 // interval of checks of a shepherd that was started and has not reported yet
#define RELEASED_MS       100  // interval at which GO is sent to a shepherd that has not reacted
#define START_REPORT_MS   10   // a report that an element has started may be delayed by this time
#define EXIT_CODE_UNKNOWN 125
#define CHECKING_MS       50 // interval of checks of an attempt that waits for a check of its GPUs

/* One observation of one attempt. */
struct look {
    struct agent_core *core;
    struct attempt *attempt;
    int64_t boot_ms;
    struct attempt_observation observed;
    const struct message_launch *launch; // or NULL
};

enum next { DONE, LOOK_AGAIN };

static enum next retry_later(struct look *look)
{
    struct attempt *attempt = look->attempt;
    if (attempt->retry_ms == 0)
        attempt->retry_ms = RETRY_FIRST_MS;
    attempt->not_before = look->boot_ms + attempt->retry_ms;
    attempt->retry_ms = attempt->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : attempt->retry_ms * 2;
    agent_core_look_by(look->core, attempt, attempt->not_before);
    return DONE;
}

/* Settles "nogo", so that "it never ran" is true. If the shepherd settled first, the next observation shows
 * it. */
static enum next give_back(struct look *look, uint32_t cause, const char *why)
{
    struct error err = { 0 };
    struct agent_effects *effects = &look->core->effects;
    struct attempt *attempt = look->attempt;
    free(attempt->why_returned);
    attempt->why_returned = xstrdup(why);
    attempt->cause_returned = cause;
    if (effects->settle_nogo(effects->arg, &attempt->id, attempt->token, &err) >= 0) {
        if (look->observed.is_alive) // it finds the verdict against it, and exits
            (void)effects->release(effects->arg, &attempt->id, 0);
        return LOOK_AGAIN;
    }
    log_job(LOG_ERROR, attempt->id.job, "%s", err.message);
    return retry_later(look);
}

static enum next act_wait(struct look *look)
{
    if (look->observed.is_checking)
        agent_core_look_by(look->core, look->attempt, look->boot_ms + CHECKING_MS);
    return DONE;
}

/* After a failure, the action is retried at a time of its own, which is also armed here: the observation
 * armed with the failure may have been made already for another reason. */
static bool is_too_early(const struct look *look)
{
    if (look->boot_ms >= look->attempt->not_before)
        return false;
    agent_core_look_by(look->core, look->attempt, look->attempt->not_before);
    return true;
}

/* Keeps the order until the user has been looked up. Copies of the order are ignored meanwhile. */
static void await_staging(struct look *look)
{
    struct attempt *attempt = look->attempt;
    if (attempt->launch != NULL)
        return;
    attempt->launch = xcalloc(1, sizeof(*attempt->launch));
    record_copy(&message_launch_record, attempt->launch, look->launch);
}

static void write_kept_terms(struct look *look)
{
    struct error err = { 0 };
    const struct attempt *attempt = look->attempt;
    struct agent_effects *effects = &look->core->effects;
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
static enum next act_stage(struct look *look)
{
    struct error err = { 0 };
    struct agent_effects *effects = &look->core->effects;
    struct attempt *attempt = look->attempt;
    if (look->launch == NULL && attempt->launch == NULL)
        return give_back(look, START_UNNAMED, "its spool entry is missing");
    struct message_launch launch = look->launch != NULL ? *look->launch : *attempt->launch;
    launch.lease_until_ms = attempt->lease_ms > 0 ? attempt->renewed_ms : 0;
    attempt->is_prepared = attempt->want == WANT_PREPARED;
    int r = attempt->is_prepared ? effects->prepare(effects->arg, &launch, &err)
                                 : effects->stage(effects->arg, &launch, &err);
    if (r == -EINPROGRESS) {
        await_staging(look);
        return DONE;
    }
    if (r == 0)
        write_kept_terms(look);
    agent_core_forget_launch(attempt);
    if (r == 0)
        return LOOK_AGAIN;
    log_at_failure(attempt, &err);
    return give_back(look, err.kind, err.message);
}

static enum next act_start(struct look *look)
{
    struct error err = { 0 };
    struct agent_effects *effects = &look->core->effects;
    if (look->attempt->starts >= (look->attempt->want == WANT_PREPARED ? 1U : AGENT_STARTS_MAX)) {
        (void)error_set(
            &err, -ECHILD, "mgpu-shepherd ends before the start, each of %u times", look->attempt->starts);
        log_at_failure(look->attempt, &err);
        return give_back(look, START_SHEPHERD, err.message);
    }
    int r = effects->start(effects->arg, &look->attempt->id, false, &err);
    if (r == -EINPROGRESS) {
        agent_core_look_by(look->core, look->attempt, look->boot_ms + CHECKING_MS);
        return DONE;
    }
    look->attempt->starts++;
    if (r > 0)
        return LOOK_AGAIN;
    if (r == 0) {
        agent_core_look_by(look->core, look->attempt, look->boot_ms + UNHEARD_MS);
        return DONE;
    }
    log_at_failure(look->attempt, &err);
    return give_back(look, err.kind, err.message);
}

static enum next act_adopt(struct look *look)
{
    struct error err = { 0 };
    struct agent_effects *effects = &look->core->effects;
    struct attempt *attempt = look->attempt;
    if (attempt->want == WANT_STOPPED)
        attempt->want = WANT_STOP; // the next shepherd has not received it
    if (is_too_early(look))
        return DONE;
    int r = effects->start(effects->arg, &attempt->id, true, &err);
    if (r > 0)
        return LOOK_AGAIN;
    if (r < 0)
        log_job(LOG_WARNING, attempt->id.job, "%s", err.message);
    return retry_later(look); // even if it started, so a shepherd that dies at once is not restarted at once
}

static enum next act_settle(struct look *look)
{
    if (is_too_early(look))
        return DONE;
    return give_back(look, START_UNNAMED, "stopped before it started");
}

static void tell(
    struct look *look, enum attempt_told what, const struct record_type *type, const void *message)
{
    struct agent_effects *effects = &look->core->effects;
    if (look->core->link != LINK_OBEYING || look->attempt->told >= what)
        return;
    effects->send(effects->arg, type, message);
    look->attempt->told = what;
}

static enum next act_report_started(struct look *look)
{
    if (look->observed.started.id.job != 0)
        tell(look, TOLD_STARTED, &message_started_record, &look->observed.started);
    return DONE;
}

static enum next act_report_ready(struct look *look)
{
    const struct attempt *attempt = look->attempt;
    struct message_ready ready = {
        .id = attempt->id,
        .token = attempt->token,
        .port = look->observed.started.port,
    };
    tell(look, TOLD_READY, &message_ready_record, &ready);
    return DONE;
}

/* The attempt is observed again when the shepherd ends or reports the start; GO may have been sent to one
 * that died. */
static enum next act_release(struct look *look)
{
    struct error err = { 0 };
    struct agent_effects *effects = &look->core->effects;
    bool is_gate = look->attempt->is_prepared && look->observed.verdict == VERDICT_NONE;
    int r = is_gate ? effects->admit(effects->arg, &look->attempt->id, &err) : 0;
    if (r == -EINPROGRESS) {
        agent_core_look_by(look->core, look->attempt, look->boot_ms + CHECKING_MS);
        return DONE;
    }
    if (r < 0) {
        log_job(LOG_WARNING, look->attempt->id.job, "%s", err.message);
        return give_back(look, err.kind, err.message);
    }
    (void)effects->release(effects->arg, &look->attempt->id, look->attempt->port);
    agent_core_look_by(look->core, look->attempt, look->boot_ms + RELEASED_MS);
    return DONE;
}

/* An end includes the start, but not the remark about it. */
static enum next act_report_exited(struct look *look)
{
    if (look->observed.started.text != NULL)
        (void)act_report_started(look);
    struct launch_exit *record = &look->observed.exit;
    record->ended_ago_ms = launch_exit_ago_ms(record, look->boot_ms);
    tell(look, TOLD_END, &message_exited_record, record);
    return DONE;
}

static enum next act_report_returned(struct look *look)
{
    const struct attempt *attempt = look->attempt;
    char given_up[] = "the launch was abandoned";
    struct message_returned returned = {
        .id = attempt->id,
        .token = attempt->token,
        .text = attempt->why_returned != NULL ? attempt->why_returned : given_up,
        .cause = attempt->cause_returned,
    };
    tell(look, TOLD_END, &message_returned_record, &returned);
    return DONE;
}

/* A shepherd that was ordered to end the step and killed it has a more accurate result than a copy written
 * meanwhile. */
static enum next act_recover(struct look *look)
{
    const struct attempt *attempt = look->attempt;
    struct agent_effects *effects = &look->core->effects;
    bool is_stopped = attempt->want == WANT_STOP || attempt->want == WANT_STOPPED;
    char text[] = "its spool entry was removed while it ran";
    if (!is_stopped && effects->restore(effects->arg, &attempt->id) == 0)
        return LOOK_AGAIN;
    struct launch_exit record = {
        .id = attempt->id,
        .token = attempt->token,
        .end = is_stopped ? END_CANCELLED : END_UNKNOWN,
        .exit_code = EXIT_CODE_UNKNOWN,
        .is_executed = 1,
        .text = text,
    };
    tell(look, TOLD_END, &message_exited_record, &record);
    return DONE;
}

static enum next act_command(struct look *look)
{
    struct agent_effects *effects = &look->core->effects;
    struct attempt *attempt = look->attempt;
    (void)act_report_started(look);
    int r = effects->command(effects->arg, &attempt->id, attempt->signal, attempt->grace_ms);
    if (r < 0)
        return retry_later(look);
    attempt->want = WANT_STOPPED;
    return r > 0 ? LOOK_AGAIN : DONE;
}

static enum next act_kill(struct look *look)
{
    struct agent_effects *effects = &look->core->effects;
    if (look->boot_ms >= look->attempt->not_before)
        effects->kill(effects->arg, &look->attempt->id);
    return retry_later(look);
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

static enum next act_remove(struct look *look)
{
    struct agent_effects *effects = &look->core->effects;
    if (is_too_early(look))
        return DONE;
    if (effects->remove(effects->arg, &look->attempt->id) < 0)
        return retry_later(look); // its shepherd has not ended yet
    if (attempt_is_speculative(look->attempt->want) && look->attempt->launch != NULL &&
        look->attempt->is_launched) {
        begin_anew(look->attempt);
        return LOOK_AGAIN;
    }
    agent_core_drop(look->core, look->attempt);
    look->attempt = NULL;
    return DONE;
}

static enum next (*const acts[ATTEMPT_ACTIONS])(struct look *look) = {
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
static void watch_shepherd(struct look *look)
{
    struct agent_effects *effects = &look->core->effects;
    if (!look->observed.is_alive || look->observed.is_watched)
        return;
    if (!effects->watch(effects->arg, &look->attempt->id, &look->observed))
        agent_core_look_by(look->core, look->attempt, look->boot_ms + UNWATCHED_MS);
}

/* Hints are datagrams, of which the kernel keeps few: if the agent is busy for a second, hints of shepherds
 * that start meanwhile are lost. No further check is needed once the step is observed as started. */
static void await_report(struct look *look)
{
    const struct attempt_observation *observed = &look->observed;
    bool is_starting = observed->is_alive && !observed->has_exit && !observed->is_ready &&
                       observed->verdict != VERDICT_NOGO && look->attempt->want != WANT_PREPARED;
    if (is_starting && observed->started.id.job == 0)
        agent_core_look_by(look->core, look->attempt, look->boot_ms + UNHEARD_MS);
}

void agent_actions_inspect(
    struct agent_core *core, struct attempt *attempt, struct attempt_observation *observed)
{
    core->effects.observe(core->effects.arg, &attempt->id, attempt->told == TOLD_END, observed);
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

static void keep_launch(struct look *look)
{
    struct attempt *attempt = look->attempt;
    if (look->launch == NULL)
        return;
    if (attempt->launch != NULL)
        record_clear(&message_launch_record, attempt->launch);
    else
        attempt->launch = xcalloc(1, sizeof(*attempt->launch));
    record_copy(&message_launch_record, attempt->launch, look->launch);
}

/*
 * Handles the LAUNCH of a prepared attempt: continues with it if both are the same, otherwise drops it first.
 * An attempt that an earlier agent took may already have its verdict. False if its user is being looked up.
 */
static bool settle_speculative(struct look *look)
{
    struct error err = { 0 };
    struct attempt *attempt = look->attempt;
    struct agent_effects *effects = &look->core->effects;
    const struct message_launch *launch = look->launch != NULL ? look->launch : attempt->launch;
    if (!attempt->is_launched) {
        attempt->want = look->observed.verdict == VERDICT_GO ? WANT_NOTHING : attempt->want;
        return true;
    }
    if (look->observed.verdict == VERDICT_GO ||
        (attempt->want == WANT_PREPARED && !look->observed.has_spec)) {
        agent_core_forget_launch(attempt);
        attempt->want = WANT_RUN;
        return true;
    }
    int r = attempt->want == WANT_PREPARED && look->observed.verdict == VERDICT_NONE
                ? effects->take(effects->arg, launch, &err)
                : -ESTALE;
    if (r != 0)
        keep_launch(look);
    if (r == -EINPROGRESS)
        return false;
    attempt->want = r == 0 ? WANT_GO : WANT_DROPPED;
    if (r == 0) {
        write_kept_terms(look);
        agent_core_forget_launch(attempt);
    }
    return true;
}

void agent_actions_run(
    struct agent_core *core, struct attempt *attempt, int64_t boot_ms, const struct message_launch *launch)
{
    struct look look = { .core = core, .attempt = attempt, .boot_ms = boot_ms, .launch = launch };
    enum next next = LOOK_AGAIN;
    for (int i = 0; next == LOOK_AGAIN && i < LOOKS_MAX; i++) {
        agent_actions_inspect(core, attempt, &look.observed);
        if (attempt_is_speculative(attempt->want) && !settle_speculative(&look)) {
            attempt_observation_clear(&look.observed);
            return;
        }
        enum attempt_action action = attempt_decide(&look.observed, attempt->want);
        log_debug(
            "job %" PRIu64 ".%u: %s", attempt->id.job, attempt->id.attempt, attempt_action_name(action));
        next = acts[action](&look);
        if (look.attempt != NULL) {
            watch_shepherd(&look);
            await_report(&look);
        }
        attempt_observation_clear(&look.observed);
    }
    if (next == LOOK_AGAIN)
        (void)retry_later(&look);
}

void agent_actions_take_back(struct agent_core *core, struct attempt *attempt, int64_t boot_ms)
{
    if (attempt == NULL || (attempt->want != WANT_RUN && attempt->want != WANT_GO))
        return;
    struct look look = { .core = core, .attempt = attempt, .boot_ms = boot_ms };
    agent_actions_inspect(core, attempt, &look.observed);
    bool is_unstarted =
        look.observed.verdict == VERDICT_NONE && !look.observed.has_exit && !look.observed.is_emptied;
    if (is_unstarted)
        (void)give_back(&look, START_UNNAMED, "taken back before it started");
    attempt_observation_clear(&look.observed);
    if (is_unstarted)
        agent_actions_run(core, attempt, boot_ms, NULL);
}

/* Arrays have many elements, many of them short. The start of an element is reported with its end if that
 * follows in time: both then need one observation of its spool entry, and one turn and one commit of the
 * controller. */
void agent_actions_follow(struct agent_core *core, struct attempt *attempt, int64_t boot_ms, bool is_start)
{
    if (is_start && attempt->is_element && attempt->want == WANT_RUN) {
        agent_core_look_by(core, attempt, boot_ms + START_REPORT_MS);
        return;
    }
    attempt->look_at = 0;
    agent_actions_run(core, attempt, boot_ms, NULL); // arms its own next check
}

void agent_core_remove_soon(struct agent_core *core, struct attempt *attempt, int64_t boot_ms)
{
    core->has_removals = true;
    agent_core_look_by(core, attempt, boot_ms + REMOVAL_MS);
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
