/* SPDX-License-Identifier: MIT */
/*
 * A job is parked and returned (job/park.h, agent/park/helper.c): its GPU goes to another job meanwhile. The
 * controller keeps its state durably and resends orders; the agent dies at any moment and remembers nothing but the
 * spool; the helper survives it, and dies at any moment too. Orders and results arrive late, twice or never. The job
 * has a process that uses CUDA, and one that begins to at any moment while it is not stopped.
 *
 * While another job has the GPU, no process of this one may use it or be able to. The driver restores a process only
 * while the job has its GPU. When the controller says that the job runs and nothing is under way, its processes are
 * neither locked, saved nor stopped. Each rule can be taken away (-DRULE=0).
 */
#ifndef LOCK /* one helper at a time */
#define LOCK 1
#endif
#ifndef NUMBER /* results are compared with the order that is meant */
#define NUMBER 1
#endif
#ifndef COPIES /* the agent ignores orders older than the one in the spool */
#define COPIES 1
#endif
#ifndef LATE /* after the stop, the helper looks for processes that have begun to use CUDA */
#define LATE 1
#endif
#ifndef PROOF /* the GPU is free when the result has arrived, not when the order was given */
#define PROOF 1
#endif
#ifndef RECONCILE /* a new agent is told that a job which is not parked has to run */
#define RECONCILE 1
#endif
#ifndef CONNECTION /* words of a connection that is over are ignored */
#define CONNECTION 1
#endif
#ifndef ORDERS
#define ORDERS 3
#endif
#ifndef TROUBLES
#define TROUBLES 2 /* deaths of agents and helpers, and helpers that are given up */
#endif

#define RUNS   0 /* states of processes: on the GPU */
#define LOCKED 1
#define SAVED  2
#define NONE   3 /* does not use CUDA */

mtype = { FREE, OURS, OTHERS };
mtype = { RUNNING, SAVING, PARKED, RESTORING };
mtype = { NOTHING, DONE, REFUSED };

/* The controller, durably. */
mtype phase = RUNNING, gpu = OURS;
byte number;
/* Under way, the newest and the one before: orders and results. */
byte order[2], result[2];
bool order_returns[2];
mtype outcome[2];
/* The node: the spool, the processes, the agent. */
byte spool_number;
bool spool_returns;
mtype spool_outcome = NOTHING;
byte state[2];
bool is_stopped, is_agent, is_given_up, is_due; /* the agent has an order to carry out, again */
byte lock, troubles;
/* Helpers: at work, and on which order. */
bool is_on[2], how[2], is_dying[2];
byte what[2];

#define IS_OFF_GPU (state[0] >= SAVED && state[1] >= SAVED && is_stopped)
#define IS_WELL    (state[0] == RUNS && (state[1] == RUNS || state[1] == NONE) && !is_stopped)
#define IS_IDLE    (!is_on[0] && !is_on[1])
#define TROUBLE    (troubles < TROUBLES)

inline send_order(n, returns)
{
    order[1] = order[0]; order_returns[1] = order_returns[0];
    order[0] = n; order_returns[0] = returns; is_due = true
}

inline send_result(n, came)
{
    result[1] = result[0]; outcome[1] = outcome[0];
    result[0] = n; outcome[0] = came
}

/* Each process back to where it was; one after the other. */
inline undo()
{
    atomic { is_stopped = false; assert(gpu == OURS) };
    if
    :: atomic { state[0] == SAVED -> assert(gpu == OURS); state[0] = LOCKED }
    :: else
    fi;
    if
    :: atomic { state[1] == SAVED -> assert(gpu == OURS); state[1] = LOCKED }
    :: else
    fi;
    atomic {
        if :: state[0] == LOCKED -> state[0] = RUNS :: else fi;
        if :: state[1] == LOCKED -> state[1] = RUNS :: else fi
    }
}

/* There are two, of which the rules let one work. */
proctype helper(byte me)
{
    bool is_begun;
idle:
    atomic { is_on[me] -> is_begun = false; is_dying[me] = false };
    if
    :: atomic { lock == 0 || !LOCK -> lock++ }
    :: atomic { else -> is_on[me] = false; is_due = true; goto idle }
    fi;
    {
        if
        :: atomic { spool_number == what[me] && spool_outcome != NOTHING && spool_returns == how[me] -> goto over }
        :: atomic { spool_number > what[me] && COPIES -> goto over }
        :: atomic { else ->
            is_begun = spool_number == what[me];
            spool_number = what[me]; spool_returns = how[me]; spool_outcome = NOTHING }
        fi;
        if
        :: how[me] -> undo(); spool_outcome = DONE
        :: !how[me] && is_begun -> undo(); spool_outcome = REFUSED
        :: else ->
again:
            if :: state[0] == RUNS -> state[0] = LOCKED :: else fi;
            if :: state[1] == RUNS -> state[1] = LOCKED :: else fi;
            if
            :: undo(); spool_outcome = REFUSED; goto over /* the driver refuses */
            :: skip
            fi;
            if :: state[0] == LOCKED -> state[0] = SAVED :: else fi;
            if :: state[1] == LOCKED -> state[1] = SAVED :: else fi;
            is_stopped = true;
            if
            :: LATE && state[1] == RUNS -> is_stopped = false; goto again
            :: else
            fi;
            atomic {
                if
                :: is_given_up -> skip
                :: else -> spool_outcome = DONE; goto over
                fi
            };
            undo(); spool_outcome = REFUSED
        fi
    } unless {
        atomic { is_dying[me] -> is_dying[me] = false; is_due = true }
    };
over:
    atomic { lock--; is_on[me] = false; goto idle }
}

inline start(n, returns)
{
    if
    :: !is_on[0] -> what[0] = n; how[0] = returns; is_on[0] = true
    :: is_on[0] && !is_on[1] -> what[1] = n; how[1] = returns; is_on[1] = true
    :: else -> is_due = true
    fi
}

inline obey(i)
{
    if
    :: order[i] < spool_number && COPIES -> skip
    :: else ->
        if
        :: order[i] == spool_number && spool_outcome != NOTHING && spool_returns == order_returns[i] ->
            send_result(order[i], spool_outcome)
        /* It is to run, and the order was refused: it runs. */
        :: order[i] == spool_number && spool_outcome == REFUSED && order_returns[i] -> skip
        /* It is being undone, for an agent that has given it up. */
        :: order[i] == spool_number && spool_returns && !order_returns[i] -> skip
        :: else -> start(order[i], order_returns[i])
        fi
    fi
}

active proctype agent()
{
    do
    :: atomic { !is_agent -> is_agent = true;
        if
        :: CONNECTION -> order[0] = 0; order[1] = 0; result[0] = 0; result[1] = 0
        :: else
        fi;
        if
        :: RECONCILE && phase == RUNNING && number > 0 -> send_order(number, true)
        :: phase == SAVING -> send_order(number, false)
        :: phase == RESTORING -> send_order(number, true)
        :: else
        fi }
    :: atomic { is_agent && TROUBLE -> troubles++; is_agent = false; is_given_up = false }
    :: atomic { is_agent && order[0] != 0 -> is_due = false; obey(0) }
    :: atomic { is_agent && order[1] != 0 -> obey(1) }
    /* A helper hangs for too long: it is reported, and told to undo what it does. */
    :: atomic { is_agent && !IS_IDLE && !is_given_up && spool_outcome == NOTHING && !spool_returns && TROUBLE ->
        troubles++; is_given_up = true; send_result(spool_number, REFUSED) }
    :: atomic { is_agent && is_given_up && IS_IDLE ->
        is_given_up = false;
        if
        :: spool_outcome == DONE && !spool_returns -> start(spool_number, true)
        :: else
        fi }
    od
}

/* Of helpers. */
active proctype death()
{
end: do
    :: atomic { is_on[0] && TROUBLE -> troubles++; is_dying[0] = true }
    :: atomic { is_on[1] && TROUBLE -> troubles++; is_dying[1] = true }
    od
}

/* Of the job: it may begin to use CUDA. */
active proctype process()
{
end: atomic { !is_stopped && state[1] == NONE -> state[1] = RUNS }
}

#define IS_MEANT(i) (result[i] != 0 && (result[i] == number || !NUMBER))

inline take(i)
{
    if
    :: phase == SAVING && outcome[i] == DONE -> phase = PARKED; gpu = FREE
    :: phase == SAVING && outcome[i] == REFUSED -> phase = RUNNING
    :: phase == RESTORING && outcome[i] == DONE -> phase = RUNNING
    :: else
    fi
}

active proctype controller()
{
    do
    :: atomic { phase == RUNNING && number < ORDERS ->
        number++; phase = SAVING; send_order(number, false);
        if :: !PROOF -> gpu = FREE :: else fi }
    :: atomic { phase == PARKED && gpu == FREE && number < ORDERS ->
        number++; phase = RESTORING; gpu = OURS; send_order(number, true) }
    :: atomic { gpu == FREE -> gpu = OTHERS }
    :: atomic { gpu == OTHERS -> gpu = FREE }
    :: atomic { IS_MEANT(0) -> take(0) }
    :: atomic { IS_MEANT(1) -> take(1) }
    od
}

active proctype judge()
{
end: do
    :: atomic { gpu == OTHERS -> assert(IS_OFF_GPU) }
    /* Nothing is under way. */
    :: atomic { phase == RUNNING && is_agent && IS_IDLE && !is_given_up && !is_due -> assert(IS_WELL) }
    od
}

init { atomic { state[1] = NONE; is_agent = true; run helper(0); run helper(1) } }
