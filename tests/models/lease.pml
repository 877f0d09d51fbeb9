/* SPDX-License-Identifier: MIT */
/*
 * A job with a lease of its node (docs/node-loss.md): when may it run again? The controller keeps the job and the
 * number of its attempt durably and dies at any moment. The node has an agent, which dies and may be stopped, and a
 * shepherd, whose timer the kernel keeps; it starts anew, and connections break. Words take any time, get lost and
 * come twice. The job may also go elsewhere, where only this counts: when the controller has given an attempt up,
 * nothing of it runs any more, and never will. And a result is that of its attempt.
 *
 * Time is a count of ticks, one for all: what clocks differ by is part of the margin. A shepherd may need one tick
 * to end what has no lease any more. Each rule can be taken away (-DRULE=0); tools/check-models does, and expects
 * that something breaks.
 */
#ifndef STAMP /* leases run from when the node said what the controller has heard, not from when the answer came */
#define STAMP 1
#endif
#ifndef FROM_HEARD /* so does the lease of a launch, not from when the launch came */
#define FROM_HEARD 1
#endif
#ifndef MARGIN /* the controller waits longer than the lease, so many ticks */
#define MARGIN 2
#endif
#ifndef PROOF /* it waits for that; silence is not enough */
#define PROOF 1
#endif
#ifndef RESTART /* a start of the controller counts as a word that it has answered */
#define RESTART 1
#endif
#ifndef CONNECTION /* words of a connection that is over are not obeyed */
#define CONNECTION 1
#endif
#ifndef SHEPHERD /* the lease is kept by the shepherd, not by the agent */
#define SHEPHERD 1
#endif
#ifndef ATTEMPT /* results are compared with the attempt that is meant */
#define ATTEMPT 1
#endif
#ifndef SPOOL /* a launch that came before is known by its spool */
#define SPOOL 1
#endif
#ifndef DURABLE /* the attempt's number is durable before the launch is said */
#define DURABLE 1
#endif

/* How far it is looked. */
#ifndef TROUBLES
#define TROUBLES 3 /* deaths, stops, new starts, broken connections, together */
#endif
#ifndef HORIZON
#define HORIZON 7 /* ticks */
#endif
#define ATTEMPTS 3
#define LEASE    2

mtype = { QUEUED, BOOKED, DONE };
mtype = { NOWHERE, HERE, ELSEWHERE };

byte now, troubles, links;

/* The controller, durably; */
mtype job = QUEUED, place = NOWHERE;
byte attempt;
/* in memory: the connection it takes for alive, when it last answered a word, and the boot that the node has said. */
byte link, acked, boot_said;

/* The agent, in memory: its connection, when it dialled, from when its leases count. */
byte agent_link, greeted, counts_from;
bool is_welcome, is_stopped;
/* On the node's disk, and in its shepherd: what runs and until when, the newest that was launched, what has ended. */
byte runs, until, newest, ended;
bool is_ended_by_lease;
byte boot;

/* Words under way, the newest of each kind: on which connection (0: none), and what. */
byte hello, hello_boot, welcome;
byte beat, beat_at, heard, heard_at;
byte launch, launch_attempt, result, result_attempt;

#define TROUBLE        (troubles < TROUBLES)
#define OBEYS          (agent_link != 0 && !is_stopped)
#define TO_NODE(w)     (w != 0 && OBEYS && (!CONNECTION || w == agent_link))
#define TO_CONTROL(w)  (w != 0 && link != 0 && (!CONNECTION || w == link))
#define IS_MEANT(a)    (job == BOOKED && place == HERE && (!ATTEMPT || a == attempt))
#define IS_LEASE_KEPT  (runs == 0 || now <= until || (!SHEPHERD && is_stopped))
#define ONLY_WHAT_MAY  assert(runs == 0 || (job == BOOKED && place == HERE && runs == attempt))

/* `sent` is when the agent had said what is answered now. */
inline hear(sent)
{
    if
    :: sent > counts_from || !STAMP ->
        counts_from = (STAMP -> sent : now);
        if
        :: runs != 0 && counts_from + LEASE > until -> until = counts_from + LEASE
        :: else
        fi
    :: else
    fi
}

inline give_up()
{
    job = QUEUED; place = NOWHERE;
    ONLY_WHAT_MAY
}

inline lose_agent()
{
    agent_link = 0; greeted = 0; counts_from = 0; is_welcome = false
}

active proctype node()
{
    do
    :: job == DONE || now == HORIZON -> break

    /* The agent. */
    :: d_step { !is_stopped && agent_link == 0 ->
        links++; agent_link = links; greeted = now; is_welcome = false;
        hello = links; hello_boot = boot }
    :: d_step { TO_NODE(welcome) && !is_welcome -> is_welcome = true; welcome = 0; hear(greeted); greeted = 0 }
    :: d_step { OBEYS && is_welcome && beat_at != now -> beat = agent_link; beat_at = now }
    :: d_step { TO_NODE(heard) && is_welcome -> heard = 0; hear(heard_at); heard_at = 0 }
    :: d_step { TO_NODE(launch) && is_welcome && runs == 0 && (launch_attempt > newest || !SPOOL) ->
        newest = launch_attempt; until = (FROM_HEARD -> counts_from : now) + LEASE;
        if
        :: until > now -> runs = launch_attempt; assert(ended != runs); ONLY_WHAT_MAY
        :: else -> ended = launch_attempt; is_ended_by_lease = true; until = 0
        fi }
    :: d_step { OBEYS && is_welcome && ended != 0 && result == 0 -> result = agent_link; result_attempt = ended }
    :: d_step { agent_link != 0 && TROUBLE -> troubles++; lose_agent() }
    :: d_step { !is_stopped && TROUBLE -> troubles++; is_stopped = true }
    :: d_step { is_stopped -> is_stopped = false }

    /* The shepherd: the command ends, or its lease. */
    :: d_step { runs != 0 -> ended = runs; is_ended_by_lease = false; runs = 0; until = 0 }
    :: d_step { runs != 0 && now >= until && (SHEPHERD || !is_stopped) ->
        ended = runs; is_ended_by_lease = true; runs = 0; until = 0 }

    /* The machine starts anew: nothing runs, and what was in RUN is gone. */
    :: d_step { TROUBLE -> troubles++; boot++; lose_agent(); is_stopped = false;
        runs = 0; until = 0; newest = 0; ended = 0; is_ended_by_lease = false }
    od
}

active proctype controller()
{
    do
    :: job == DONE || now == HORIZON -> break

    :: d_step { hello > link ->
        link = hello; hello = 0; acked = now; welcome = link;
        if
        :: hello_boot != boot_said && job == BOOKED && place == HERE -> give_up()
        :: else
        fi;
        boot_said = hello_boot; hello_boot = 0 }
    :: d_step { TO_CONTROL(beat) -> acked = now; heard = link; heard_at = beat_at; beat = 0; beat_at = 0 }
    :: d_step { job == QUEUED && attempt < ATTEMPTS && link != 0 -> attempt++; job = BOOKED; place = HERE }
    :: d_step { job == QUEUED && attempt > 0 && attempt < ATTEMPTS -> attempt++; job = BOOKED; place = ELSEWHERE }
    :: d_step { job == BOOKED && place == ELSEWHERE -> give_up() }
    :: d_step { job == BOOKED && place == HERE && link != 0 && launch != link ->
        launch = link; launch_attempt = attempt }
    :: d_step { TO_CONTROL(result) ->
        if
        :: IS_MEANT(result_attempt) && result_attempt == ended && is_ended_by_lease -> give_up()
        :: IS_MEANT(result_attempt) && !(result_attempt == ended && is_ended_by_lease) ->
            assert(result_attempt == attempt);
            job = DONE
        :: else
        fi;
        result = 0; result_attempt = 0 }
    /* Silence, or the connection breaks. */
    :: d_step { link != 0 && TROUBLE -> troubles++; link = 0 }
    /* The proof. */
    :: d_step { job == BOOKED && place == HERE && link == 0 && (!PROOF || now >= acked + LEASE + MARGIN) -> give_up() }
    /* It dies, and starts anew. */
    :: d_step { TROUBLE -> troubles++; link = 0; acked = (RESTART -> now : 0);
        if
        :: !DURABLE && job == BOOKED -> job = QUEUED; place = NOWHERE; attempt--
        :: else
        fi }
    od
}

active proctype clock()
{
    do
    :: job == DONE || now == HORIZON -> break
    :: d_step { now < HORIZON && IS_LEASE_KEPT -> now++ }
    od
}
