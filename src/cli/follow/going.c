/* SPDX-License-Identifier: MIT */
#include "cli/follow/going.h"

#include <signal.h>

#include "cli/api/leaving_signals.h"

#define ESCALATE_MS 2000 // a second Ctrl-C within this time has a stronger effect
#define SHOWN_MS    1000 // and within this time after the state was shown

bool going_is_again(int64_t *last_ms, int64_t now_ms)
{
    int64_t before_ms = *last_ms;
    *last_ms = now_ms;
    return before_ms != 0 && now_ms - before_ms <= SHOWN_MS;
}

const struct going_request *going_request(enum going_step step)
{
    static const struct going_request requests[] = {
        [GOING_SIGNAL] = { "/signal", "{\"signal\":\"INT\"}",
            "received SIGINT; Ctrl-C again within 2 s ends it" },
        [GOING_CANCEL] = { "/cancel", "{}", "is stopping (SIGTERM); Ctrl-C again kills it" },
        [GOING_KILL] = { "/cancel", "{\"grace_s\":0}", "is being killed; Ctrl-C again stops waiting" },
    };
    return &requests[step];
}

/* A job that was interrupted some time ago and continues is interrupted again; one that is ending is not. */
static bool is_again(struct going *going, enum leave_effect first, int64_t now_ms)
{
    if (going->stops > GOING_CANCEL)
        return true;
    if (first == LEAVE_SHOWS)
        return going_is_again(&going->shown_ms, now_ms);
    return going->stops > 0 && now_ms - going->stopped_ms <= ESCALATE_MS;
}

static enum going_step stop(struct going *going, int signal, enum going_step step, int64_t now_ms)
{
    if (going->stops == 0)
        going->first_signal = signal;
    if (step == GOING_ABANDON)
        return step;
    going->stops = (unsigned)step + 1;
    going->stopped_ms = now_ms;
    return step;
}

/* After Ctrl-C, a job whose state was shown before first gets SIGINT. */
static enum going_step end(struct going *going, int signal, int64_t now_ms)
{
    if (going->stops > GOING_CANCEL && signal != SIGINT)
        return GOING_WAIT;
    going->is_interrupted = going->stops == 0 && going->shown_ms != 0 && signal == SIGINT;
    enum going_step step = going->stops > GOING_CANCEL ? (enum going_step)going->stops : GOING_CANCEL;
    return stop(going, signal, step, now_ms);
}

enum going_step going_next(struct going *going, bool is_waiting, int signal, int64_t now_ms)
{
    const struct leaving *leaving = leaving_of(going->leaver);
    const enum leave_effect *row = is_waiting ? leaving->waiting : leaving->running;
    enum leave_way way = leaving_way(signal);
    going->is_interrupted = false;
    if (way == LEAVE_INTERRUPT && is_again(going, row[way], now_ms))
        way = LEAVE_INTERRUPT_AGAIN;
    enum leave_effect effect = way < LEAVE_WAYS ? row[way] : LEAVE_NOTHING;
    return effect == LEAVE_ENDS         ? end(going, signal, now_ms)
           : effect == LEAVE_INTERRUPTS ? stop(going, signal, GOING_SIGNAL, now_ms)
           : effect == LEAVE_SHOWS      ? GOING_SHOW
                                        : GOING_LEAVE;
}

/* For the tasks of a step, not for a script around it. */
static const struct {
    int number;
    const char *body; // of the request
} passed[] = {
    { SIGUSR1, "{\"signal\":\"USR1\",\"to\":\"steps\"}" },
    { SIGUSR2, "{\"signal\":\"USR2\",\"to\":\"steps\"}" },
    { SIGALRM, "{\"signal\":\"ALRM\",\"to\":\"steps\"}" },
};
#define PASSED (sizeof(passed) / sizeof(passed[0]))

void going_signals(sigset_t *ret, bool passes_signals)
{
    leaving_signals(ret);
    for (size_t i = 0; passes_signals && i < PASSED; i++)
        leaving_signals_add(ret, passed[i].number);
}

const char *going_passed(int signal)
{
    for (size_t i = 0; i < PASSED; i++)
        if (passed[i].number == signal)
            return passed[i].body;
    return NULL;
}

bool going_leaves_queued(enum leaver leaver)
{
    return leaving_of(leaver)->waiting[LEAVE_INTERRUPT] == LEAVE_NOTHING;
}
