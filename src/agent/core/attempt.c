/* SPDX-License-Identifier: MIT */
/*
 * The decisions of the agent about one attempt, as one table that is read from the top: the first matching
 * row applies. It covers a first launch, a repeated message, and an agent that starts and finds the attempt
 * in its spool, because it depends only on what is observed.
 *
 * In a job with several ranks, each rank waits before its verdict: ready. GO means that all ranks are ready,
 * and lets each settle its verdict.
 *
 * A prepared attempt waits there too, until its LAUNCH arrives, and is not reported before. To drop it, nogo
 * is settled first, and the entry is staged again only after its removal (tests/models/prepare.pml).
 *
 *      spec ──shepherd──> verdict go ──> started ──> exit ──reported──> released
 *        └──────────────> verdict nogo ──reported───────────────────────^
 *
 * The entry of a running attempt may be removed by another process. The agent still knows that the attempt
 * ran, and never reports it as "never executed". It waits for the attempt's shepherd, which can no longer
 * receive commands, or kills its cgroup.
 *
 * Invariants: nothing is started after a verdict; "never executed" is only reported for a nogo verdict, and
 * the end only for an exit record without processes left in the cgroup. The end of a failed job is reported
 * after its GPUs were checked, because that may reveal the reason.
 */
#include "agent/core/attempt.h"

#include <assert.h>
#include <stddef.h>

enum answer { NO, YES, ANY };
#define ANY_VERDICT (-1)

#define BIT(want)   (1U << (want))
#define ANY_WANT    (BIT(ATTEMPT_WANTS) - 1U)
#define END_OF_IT   (BIT(WANT_STOP) | BIT(WANT_STOPPED))
#define RELEASE_IT  BIT(WANT_RELEASED)
#define KEEP_IT     (ANY_WANT & ~RELEASE_IT)
#define RUN_IT      (BIT(WANT_RUN) | BIT(WANT_GO))
#define SPECULATIVE (BIT(WANT_PREPARED) | BIT(WANT_DROPPED))
#define PREPARE_IT  BIT(WANT_PREPARED)
#define DROP_IT     BIT(WANT_DROPPED)
#define NO_OPPOSITE (BIT(WANT_NOTHING) | RUN_IT | PREPARE_IT)

struct row {
    enum answer spec;
    int verdict;
    enum answer alive;
    enum answer exit;
    enum answer populated;
    uint32_t wants;
    enum attempt_action action;
    const char *why;
};

static const struct row rows[] = {
    { ANY, ANY_VERDICT, ANY, YES, YES, ANY_WANT, ATTEMPT_KILL, "ended, but processes are left" },
    { ANY, ANY_VERDICT, ANY, YES, NO, RELEASE_IT, ATTEMPT_REMOVE, "ended and stored by the controller" },
    { ANY, ANY_VERDICT, ANY, YES, NO, KEEP_IT, ATTEMPT_REPORT_EXITED, "over" },

    { ANY, VERDICT_NOGO, YES, NO, ANY, RELEASE_IT | SPECULATIVE, ATTEMPT_RELEASE,
        "its shepherd lost the race and exits" },
    { ANY, VERDICT_NOGO, NO, NO, ANY, RELEASE_IT | SPECULATIVE, ATTEMPT_REMOVE,
        "never ran, and the controller knows" },
    { ANY, VERDICT_NOGO, ANY, NO, ANY, KEEP_IT, ATTEMPT_REPORT_RETURNED, "never ran and never will" },

    { ANY, VERDICT_GO, NO, NO, ANY, ANY_WANT, ATTEMPT_ADOPT, "its shepherd died: finish on its behalf" },
    { ANY, VERDICT_GO, YES, NO, ANY, BIT(WANT_STOP), ATTEMPT_COMMAND, "running but no longer wanted" },
    { ANY, VERDICT_GO, YES, NO, ANY, RELEASE_IT, ATTEMPT_WAIT, "running: jobs are never ended unasked" },
    { ANY, VERDICT_GO, YES, NO, ANY, ANY_WANT, ATTEMPT_REPORT_STARTED, "runs" },

    { NO, VERDICT_NONE, NO, NO, ANY, RELEASE_IT | DROP_IT, ATTEMPT_REMOVE, "no trace left" },
    { ANY, VERDICT_NONE, ANY, NO, ANY, RELEASE_IT | END_OF_IT | DROP_IT, ATTEMPT_SETTLE,
        "no verdict: win it" },
    { ANY, VERDICT_NONE, YES, NO, ANY, NO_OPPOSITE, ATTEMPT_WAIT, "its shepherd prepares the start" },
    { NO, VERDICT_NONE, NO, NO, ANY, RUN_IT | PREPARE_IT, ATTEMPT_STAGE, "new here" },
    { YES, VERDICT_NONE, NO, NO, ANY, RUN_IT | PREPARE_IT, ATTEMPT_START, "staged without a shepherd" },
    { ANY, VERDICT_NONE, NO, NO, ANY, BIT(WANT_NOTHING), ATTEMPT_WAIT, "staged: the controller decides" },
};

static const char *const action_names[ATTEMPT_ACTIONS] = {
    [ATTEMPT_WAIT] = "wait",
    [ATTEMPT_STAGE] = "stage",
    [ATTEMPT_START] = "start",
    [ATTEMPT_ADOPT] = "adopt",
    [ATTEMPT_SETTLE] = "settle",
    [ATTEMPT_COMMAND] = "command",
    [ATTEMPT_REPORT_READY] = "report ready",
    [ATTEMPT_RELEASE] = "release",
    [ATTEMPT_KILL] = "kill",
    [ATTEMPT_REPORT_STARTED] = "report started",
    [ATTEMPT_REPORT_EXITED] = "report exited",
    [ATTEMPT_REPORT_RETURNED] = "report returned",
    [ATTEMPT_RECOVER] = "recover",
    [ATTEMPT_REMOVE] = "remove",
};

bool attempt_is_speculative(enum attempt_want want)
{
    return (BIT(want) & SPECULATIVE) != 0;
}

static bool fits(enum answer wanted, bool is)
{
    return wanted == ANY || (wanted == YES) == is;
}

/* The awaited state may already be reached, and the data to report may not be available yet. */
static enum attempt_action refine(
    enum attempt_action action, const struct attempt_observation *observed, enum attempt_want want)
{
    if (action == ATTEMPT_REPORT_EXITED && observed->is_checking)
        return ATTEMPT_WAIT;
    if (action == ATTEMPT_WAIT && observed->is_ready && want != WANT_PREPARED)
        return want == WANT_GO ? ATTEMPT_RELEASE : ATTEMPT_REPORT_READY;
    return action;
}

static enum attempt_action decide_emptied(const struct attempt_observation *observed, enum attempt_want want)
{
    if (observed->is_alive)
        return (BIT(want) & END_OF_IT) != 0 ? ATTEMPT_KILL : ATTEMPT_WAIT;
    if (observed->is_populated)
        return ATTEMPT_KILL;
    return want == WANT_RELEASED ? ATTEMPT_REMOVE : ATTEMPT_RECOVER;
}

enum attempt_action attempt_decide(const struct attempt_observation *observed, enum attempt_want want)
{
    if (observed->is_emptied)
        return decide_emptied(observed, want);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        if (fits(row->spec, observed->has_spec) && fits(row->alive, observed->is_alive) &&
            fits(row->exit, observed->has_exit) && fits(row->populated, observed->is_populated) &&
            (row->verdict == ANY_VERDICT || row->verdict == (int)observed->verdict) &&
            (row->wants & BIT(want)) != 0)
            return refine(row->action, observed, want);
    }
    assert(!"an attempt matches no row of the table");
    return ATTEMPT_WAIT;
}

const char *attempt_action_name(enum attempt_action action)
{
    return action_names[action];
}

void attempt_observation_clear(struct attempt_observation *observed)
{
    record_clear(&launch_started_record, &observed->started);
    record_clear(&launch_exit_record, &observed->exit);
    *observed = (struct attempt_observation){ 0 };
}
