/* SPDX-License-Identifier: MIT */
/*
 * A job starts before it has its GPU, which another job has (docs/decisions/0052-early-starts.md): it is launched with
 * a filter that denies the GPU, its process waits when it opens it, and the order to return opens the filter and puts a
 * byte into the pipe of its init. The controller keeps its state durably and resends orders; the agent dies at any
 * moment and remembers nothing but the spool. Orders and results arrive late, twice or never. The filter cannot always
 * be changed, and neither can the pipe always be written. Some processes open the GPU past the wait.
 *
 * While another job has the GPU, the filter denies it. A process that waited is never refused. When the controller
 * says that the job runs and nothing is under way, it has its GPU and nobody waits. Each rule can be taken away
 * (-DRULE=0).
 */
#ifndef BORN_DENIED /* the filter denies the GPU from the launch on */
#define BORN_DENIED 1
#endif
#ifndef FILTER_FIRST /* the byte follows the change of the filter */
#define FILTER_FIRST 1
#endif
#ifndef UNDO /* before it is refused, the filter is closed; where that is impossible, the job is given up instead */
#define UNDO 1
#endif
#ifndef STAYS /* the byte stays in the pipe until init reads it */
#define STAYS 1
#endif
#ifndef PROOF /* the GPU is the job's before the order, and others' only after a refusal */
#define PROOF 1
#endif
#ifndef NUMBER /* results are compared with the order that is meant */
#define NUMBER 1
#endif
#ifndef COPIES /* orders that are older than the one in the spool are ignored */
#define COPIES 1
#endif
#ifndef RESEND /* a new agent is given the order again */
#define RESEND 1
#endif
#ifndef ORDERS
#define ORDERS 3
#endif
#ifndef TROUBLES
#define TROUBLES 2 /* deaths of agents */
#endif

mtype = { FREE, OURS, OTHERS };
mtype = { WAITING, RESTORING, RUNNING };
mtype = { NOTHING, DONE, REFUSED };
mtype = { COMPUTES, ASKS, HAS };

/* The controller, durably. */
mtype phase = WAITING, gpu = OTHERS;
byte number;
/* Under way, the newest and the one before. */
byte order[2], result[2];
mtype outcome[2];
/* The node: the spool, the filter, the pipe, the process, the agent. */
byte spool_number;
mtype spool_outcome = NOTHING;
bool is_open = !BORN_DENIED, has_byte, is_told;
mtype process_is = COMPUTES;
bool is_agent = true, is_due;
byte troubles;

bool is_busy; /* the agent carries out an order */

inline send_result(n, came)
{
    result[1] = result[0]; outcome[1] = outcome[0];
    result[0] = n; outcome[0] = came
}

/* One order; the agent may die between two steps. */
inline grant(n)
{
    atomic {
        if
        :: n < spool_number && COPIES -> goto done
        :: n == spool_number && spool_outcome != NOTHING -> send_result(n, spool_outcome); goto done
        :: else -> spool_number = n; spool_outcome = NOTHING
        fi
    }
    if
    :: atomic { !FILTER_FIRST -> has_byte = true }
    :: atomic { FILTER_FIRST -> skip }
    fi;
    if
    :: atomic { is_agent -> is_open = true }
    :: atomic { is_agent -> /* it cannot be changed, and an earlier agent may have opened it */
        if :: UNDO -> is_open = false :: else fi;
        spool_outcome = REFUSED; send_result(n, REFUSED); goto done }
    :: atomic { !is_agent -> goto done }
    fi;
    if
    :: atomic { is_agent -> has_byte = true; spool_outcome = DONE; send_result(n, DONE) }
    :: atomic { is_agent -> /* nor can the pipe be written */
        if :: UNDO -> is_open = false :: else fi;
        spool_outcome = REFUSED; send_result(n, REFUSED) }
    :: atomic { !is_agent -> goto done }
    fi;
done:
    skip
}

/* It carries out one order after the other, newest or late. */
active proctype agent()
{
    byte n;
end: do
    :: atomic { is_agent && order[0] != 0 -> n = order[0]; is_due = false; is_busy = true };
        grant(n); is_busy = false
    :: atomic { is_agent && order[1] != 0 -> n = order[1]; is_busy = true };
        grant(n); is_busy = false
    od
}

active proctype death()
{
end: do
    :: atomic { is_agent && troubles < TROUBLES -> troubles++; is_agent = false;
        order[0] = 0; order[1] = 0; result[0] = 0; result[1] = 0 }
    :: atomic { !is_agent && !is_busy -> is_agent = true;
        if
        :: RESEND && phase == RESTORING -> order[0] = number; is_due = true
        :: else
        fi }
    od
}

/* Of the job: it computes, and then opens the GPU; init lets it go on when it has read the byte. */
active proctype process()
{
    atomic { process_is == COMPUTES -> process_is = ASKS };
end: atomic { is_told -> assert(is_open); process_is = HAS }
}

active proctype init_of_the_job()
{
end: do
    :: atomic { has_byte && !is_told -> is_told = true }
    :: atomic { !STAYS && has_byte && !is_told -> has_byte = false }
    od
}

#define IS_MEANT(i) (result[i] != 0 && (result[i] == number || !NUMBER))

inline take(i)
{
    if
    :: phase == RESTORING && outcome[i] == DONE -> phase = RUNNING
    :: phase == RESTORING && outcome[i] == REFUSED -> phase = WAITING; gpu = FREE
    :: else
    fi
}

active proctype controller()
{
end: do
    :: atomic { phase == WAITING && (gpu == FREE || !PROOF) && number < ORDERS ->
        number++; phase = RESTORING;
        if :: gpu == FREE -> gpu = OURS :: else fi;
        if
        :: is_agent -> order[1] = order[0]; order[0] = number; is_due = true
        :: else
        fi }
    :: atomic { gpu == FREE -> gpu = OTHERS }
    :: atomic { gpu == OTHERS -> gpu = FREE }
    :: atomic { IS_MEANT(0) -> take(0) }
    :: atomic { IS_MEANT(1) -> take(1) }
    od
}

active proctype judge()
{
end: do
    :: atomic { gpu == OTHERS -> assert(!is_open) }
    /* Nothing is under way. */
    :: atomic { phase == RESTORING && is_agent && !is_busy -> assert(order[0] == number) }
    :: atomic { phase == RUNNING && is_agent && !is_busy && !is_due -> assert(is_open && gpu == OURS && (has_byte || is_told)) }
    od
}
