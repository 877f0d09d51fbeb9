/* SPDX-License-Identifier: MIT */
/*
 * A job on two nodes is parked and returned: on all of them, or on none. park.pml shows that one node carries out an
 * order once, whatever dies; here a node is an agent that answers, and a helper that survives it. The controller keeps
 * phase and number durably. What the nodes have answered it forgets when it dies, and asks again.
 *
 *   park     SAVE to all ──all are saved──> parked
 *               └──one refuses──> runs: RETURN with the same number to all, which undoes what was saved
 *   return   CHECK to all ──all could──> RETURN to all ──all are back──> runs
 *               └──one could not, and none is back──> parked
 *
 * While others have the GPUs, every node is saved. No node is restored unless the GPUs are the job's. When nothing is
 * under way, all nodes are saved, or all run, as the controller says. Each rule can be taken away (-DRULE=0).
 */
#ifndef ALL /* parked when all are saved, not when the first is */
#define ALL 1
#endif
#ifndef UNDO /* a refusal makes the others return */
#define UNDO 1
#endif
#ifndef FIRST /* all are asked before the first returns */
#define FIRST 1
#endif
#ifndef BACK_COUNTS /* a node that is back already says so when it is asked */
#define BACK_COUNTS 1
#endif
#ifndef WRITTEN /* the agent writes that it restores before the helper that does so exists */
#define WRITTEN 1
#endif
#ifndef CANCEL /* an order to return reaches a node that is still saving */
#define CANCEL 1
#endif
#ifndef STILL /* what an earlier order has saved, and nothing has restored, is not refused */
#define STILL 1
#endif
#ifndef RESEND /* orders are sent again on a new connection */
#define RESEND 1
#endif
#ifndef ORDERS
#define ORDERS 3
#endif
#ifndef TROUBLES
#define TROUBLES 2 /* deaths of agents and of the controller */
#endif
#ifndef REFUSALS
#define REFUSALS 2
#endif

mtype = { FREE, OURS, OTHERS };
mtype = { RUNNING, SAVING, PARKED, RESTORING };
mtype = { SAVE, CHECK, RETURN };
mtype = { NOTHING, DONE, REFUSED, BACK };

mtype phase = RUNNING, gpu = OURS;
byte number;
mtype answer[2] = NOTHING;
bool is_checked;
/* Nodes: the spool, the processes, the helper, and what the agent remembers. */
byte spool_number[2];
mtype spool_action[2] = RETURN, spool_outcome[2] = DONE;
bool is_saved[2], is_busy[2], is_cancelled[2], is_owed[2], is_unwritten[2];
byte troubles, refusals;

chan to0 = [4] of { byte, mtype };
chan to1 = [4] of { byte, mtype };
chan from0 = [4] of { byte, mtype, mtype };
chan from1 = [4] of { byte, mtype, mtype };

#define REFUSES (refusals < REFUSALS)
#define CAN_SEND (nfull(to0) && nfull(to1))

inline order(i, action)
{
    if
    :: i == 0 -> to0!number,action
    :: else -> to1!number,action
    fi
}

/* What a node is to do now, on a new connection too. */
inline tell(i)
{
    if
    :: phase == SAVING -> order(i, SAVE)
    :: phase == RESTORING && !is_checked && FIRST -> order(i, CHECK)
    :: phase == RESTORING && (is_checked || !FIRST) -> order(i, RETURN)
    :: phase == RUNNING && number > 0 && UNDO -> order(i, RETURN)
    :: else
    fi
}

inline forget() { answer[0] = NOTHING; answer[1] = NOTHING; is_checked = false }

inline run_again()
{
    phase = RUNNING; forget(); tell(0); tell(1)
}

inline settle()
{
    if
    :: phase == SAVING && (answer[0] == REFUSED || answer[1] == REFUSED) -> run_again()
    :: phase == SAVING && ((answer[0] == DONE && answer[1] == DONE) ||
                           (!ALL && (answer[0] == DONE || answer[1] == DONE))) ->
        phase = PARKED; gpu = FREE; forget()
    :: phase == RESTORING && !is_checked && FIRST && answer[0] != NOTHING && answer[1] != NOTHING &&
       !(answer[0] == BACK && answer[1] == BACK) ->
        if
        :: (answer[0] == REFUSED || answer[1] == REFUSED) && answer[0] != BACK && answer[1] != BACK ->
            phase = PARKED; gpu = FREE; forget()
        :: else ->
            is_checked = true;
            if :: answer[0] != BACK -> answer[0] = NOTHING; tell(0) :: else fi;
            if :: answer[1] != BACK -> answer[1] = NOTHING; tell(1) :: else fi
        fi
    :: phase == RESTORING && !FIRST && (answer[0] == REFUSED || answer[1] == REFUSED) ->
        phase = PARKED; gpu = FREE; forget()
    :: phase == RESTORING && answer[0] == BACK && answer[1] == BACK -> phase = RUNNING; forget()
    :: else
    fi
}

inline take(i, n, action, outcome)
{
    if
    :: n == number && phase == SAVING && action == SAVE -> answer[i] = outcome; settle()
    :: n == number && phase == RESTORING && action == RETURN && outcome == DONE -> answer[i] = BACK; settle()
    :: n == number && phase == RESTORING && action == CHECK && !is_checked -> answer[i] = outcome; settle()
    :: n == number && phase == RESTORING && action == RETURN && outcome == REFUSED && (is_checked || !FIRST) ->
        answer[i] = REFUSED; settle()
    :: else
    fi
}

active proctype controller()
{
    byte n;
    mtype action, outcome;
    do
    :: atomic { phase == RUNNING && number < ORDERS && CAN_SEND ->
        number++; phase = SAVING; forget(); tell(0); tell(1) }
    :: atomic { phase == PARKED && gpu == FREE && number < ORDERS && CAN_SEND ->
        number++; phase = RESTORING; gpu = OURS; forget(); tell(0); tell(1) }
    :: atomic { gpu == FREE -> gpu = OTHERS }
    :: atomic { gpu == OTHERS -> gpu = FREE }
    :: atomic { CAN_SEND && nempty(from0) -> from0?n,action,outcome; take(0, n, action, outcome) }
    :: atomic { CAN_SEND && nempty(from1) -> from1?n,action,outcome; take(1, n, action, outcome) }
    /* One could not return after all: it is tried again. */
    :: atomic { phase == RESTORING && is_checked && answer[0] == REFUSED && nfull(to0) -> answer[0] = NOTHING; tell(0) }
    :: atomic { phase == RESTORING && is_checked && answer[1] == REFUSED && nfull(to1) -> answer[1] = NOTHING; tell(1) }
    od
}

inline reply(i, n, action, outcome)
{
    if
    :: i == 0 -> from0!n,action,outcome
    :: else -> from1!n,action,outcome
    fi
}

inline begin(i, n, action)
{
    is_busy[i] = true; is_owed[i] = true; is_cancelled[i] = false;
    if
    :: action == RETURN && !WRITTEN -> is_unwritten[i] = true /* by the helper, once it has begun */
    :: else -> spool_number[i] = n; spool_action[i] = action; spool_outcome[i] = NOTHING
    fi
}

inline obey(i, n, action)
{
    if
    :: n < spool_number[i] -> skip
    :: n == spool_number[i] && action == SAVE && spool_action[i] == SAVE ->
        if
        :: is_busy[i] -> is_owed[i] = true
        :: else -> reply(i, n, SAVE, spool_outcome[i])
        fi
    :: n == spool_number[i] && action == SAVE && spool_action[i] == RETURN -> skip
    :: n == spool_number[i] && action == RETURN && spool_action[i] == SAVE ->
        if
        :: is_busy[i] && CANCEL -> is_cancelled[i] = true
        :: is_busy[i] && !CANCEL -> skip
        :: !is_busy[i] && spool_outcome[i] == REFUSED -> spool_action[i] = RETURN; spool_outcome[i] = DONE
        :: else -> begin(i, n, RETURN)
        fi
    :: n == spool_number[i] && action != SAVE && spool_action[i] == RETURN && (action == RETURN || BACK_COUNTS) ->
        if
        :: is_busy[i] -> is_owed[i] = true
        :: else -> reply(i, n, RETURN, spool_outcome[i])
        fi
    :: n == spool_number[i] && action == CHECK && !BACK_COUNTS -> reply(i, n, CHECK, DONE)
    :: n > spool_number[i] && action == SAVE -> begin(i, n, SAVE)
    :: n > spool_number[i] && action == CHECK ->
        if
        :: reply(i, n, CHECK, DONE)
        :: REFUSES -> refusals++; reply(i, n, CHECK, REFUSED)
        fi
    :: n > spool_number[i] && action == RETURN ->
        if
        :: begin(i, n, RETURN)
        :: REFUSES -> refusals++; reply(i, n, RETURN, REFUSED)
        fi
    fi
}

#define CAN_TAKE(i, channel) (nempty(channel) && (!is_busy[i] || is_unwritten[i] || channel?[eval(spool_number[i]),_]))

active proctype agents()
{
    byte n;
    mtype action;
    do
    :: atomic { CAN_TAKE(0, to0) && nfull(from0) -> to0?n,action; obey(0, n, action) }
    :: atomic { CAN_TAKE(1, to1) && nfull(from1) -> to1?n,action; obey(1, n, action) }
    od
}

inline work(i)
{
    if
    :: is_unwritten[i] ->
        is_unwritten[i] = false; spool_number[i]++; spool_action[i] = RETURN; spool_outcome[i] = NOTHING
    :: !is_unwritten[i] && spool_action[i] == SAVE && is_cancelled[i] ->
        assert(gpu == OURS); is_saved[i] = false; spool_outcome[i] = REFUSED
    /* The order to return after an earlier save may have been lost: what is saved stays so. */
    :: !is_unwritten[i] && spool_action[i] == SAVE && !is_cancelled[i] && REFUSES && (!is_saved[i] || !STILL) ->
        refusals++; spool_outcome[i] = REFUSED
    :: !is_unwritten[i] && spool_action[i] == SAVE && !is_cancelled[i] -> is_saved[i] = true; spool_outcome[i] = DONE
    :: !is_unwritten[i] && spool_action[i] == RETURN ->
        assert(gpu == OURS); is_saved[i] = false; spool_outcome[i] = DONE
    fi;
    if
    :: spool_outcome[i] != NOTHING ->
        is_busy[i] = false; is_cancelled[i] = false;
        if
        :: is_owed[i] -> is_owed[i] = false; reply(i, spool_number[i], spool_action[i], spool_outcome[i])
        :: else
        fi
    :: else
    fi
}

active proctype helpers()
{
end: do
    :: atomic { is_busy[0] && nfull(from0) -> work(0) }
    :: atomic { is_busy[1] && nfull(from1) -> work(1) }
    od
}

inline drain(channel) { do :: len(channel) > 0 -> channel?_,_ :: len(channel) == 0 -> break od }
inline drain3(channel) { do :: len(channel) > 0 -> channel?_,_,_ :: len(channel) == 0 -> break od }

active proctype death()
{
end: do
    :: atomic { troubles < TROUBLES -> troubles++; /* of the first agent */
        drain(to0); drain3(from0); is_owed[0] = false;
        if :: RESEND -> tell(0) :: else fi }
    :: atomic { troubles < TROUBLES -> troubles++; /* of the controller, and with it of all connections */
        drain(to0); drain(to1); drain3(from0); drain3(from1); forget();
        if :: RESEND -> tell(0); tell(1) :: else fi }
    od
}

active proctype judge()
{
end: do
    :: atomic { gpu != OURS -> assert(is_saved[0] && is_saved[1]) }
    :: atomic { !is_busy[0] && !is_busy[1] && len(to0) + len(to1) + len(from0) + len(from1) == 0 &&
                answer[0] != REFUSED && answer[1] != REFUSED ->
        assert(phase == RUNNING || phase == PARKED);
        assert(phase == PARKED || (!is_saved[0] && !is_saved[1]));
        assert(phase == RUNNING || (is_saved[0] && is_saved[1])) }
    od
}
