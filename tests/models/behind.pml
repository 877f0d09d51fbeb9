/* SPDX-License-Identifier: MIT */
/*
 * An element of an array that is committed behind another on the same GPU (docs/decisions/0053-elements-and-stretches.md):
 * it has its attempt and its LAUNCH durably while the one before it still runs, so its node starts it without waiting
 * for the controller. The controller has elements and bookings durably; the agent remembers nothing but the spool; each
 * of them dies at any moment, and so does a shepherd. What is behind is withdrawn at any moment, as when the element
 * before it runs for longer than expected, and messages arrive late, twice or never. Somebody else wants the GPU too.
 *
 * At most one command is on the GPU, no element runs twice or is lost, nothing runs that is not committed, and the GPU is
 * never another's while an element is on it. Each rule can be taken away (-DRULE=0).
 */
#ifndef WAITS /* a node starts nothing on a GPU before the attempt that is on it has left it */
#define WAITS 1
#endif
#ifndef INHERITS /* the end of an element gives the GPU to the one behind it, in the same transaction */
#define INHERITS 1
#endif
#ifndef WITHDRAWN /* one that is being withdrawn inherits too: it may have begun */
#define WITHDRAWN 1
#endif
#ifndef PROOF /* it waits in the queue again only when its node has said that it never ran */
#define PROOF 1
#endif
#ifndef COMMITTED /* LAUNCH follows the commit */
#define COMMITTED 1
#endif
#ifndef RESEND /* a new agent is told again of what is behind, not only of what has the GPU */
#define RESEND 1
#endif
#ifndef ONCE /* what came from an attempt before the current one counts for nothing */
#define ONCE 1
#endif
#ifndef TROUBLES
#define TROUBLES 2 /* deaths of controller, agent and shepherds, together */
#endif
#ifndef RETURNS
#define RETURNS 1 /* withdrawals */
#endif

#define ELEMENTS 2
#define ATTEMPTS 2
#define A(e, n) ((e) * 2 + (n) - 3) /* of element 1 or 2, its attempt 1 or 2 */
#define GO 1
#define NOGO 2

mtype = { QUEUED, STARTING, STOPPING, DONE };
mtype = { LAUNCH, STOP, RELEASE, EXITED, RETURNED };

/* The controller, durably. */
mtype job[3] = QUEUED;
byte attempt[3];
byte holder, behind; /* elements; 0: none */
bool is_others;      /* the GPU is booked for somebody else */
/* The spool: of each attempt. */
byte verdict[4];
bool has_entry[4], has_shepherd[4], on_gpu[4], has_exit[4], is_told[4];
byte execs[3], running;
/* The agent, in memory. */
bool want_run[4], want_stop[4];
byte troubles, returns;

chan down = [3] of { mtype, byte, byte };
chan up = [2] of { mtype, byte, byte };

#define CUT_DOWN do :: down ? _, _, _ :: empty(down) -> break od
#define CUT_UP do :: up ? _, _, _ :: empty(up) -> break od

/* HELLO and WELCOME: the agent tells everything again, and so does the controller. What is behind may come first. */
inline resend() {
  is_told[0] = false; is_told[1] = false; is_told[2] = false; is_told[3] = false;
  if
  :: RESEND && behind != 0 && job[behind] == STARTING -> down ! LAUNCH, behind, attempt[behind]
  :: RESEND && behind != 0 && job[behind] == STOPPING -> down ! STOP, behind, attempt[behind]
  :: else
  fi;
  if
  :: holder != 0 && job[holder] == STARTING -> down ! LAUNCH, holder, attempt[holder]
  :: holder != 0 && job[holder] == STOPPING -> down ! STOP, holder, attempt[holder]
  :: else
  fi
}

/* The attempt of `e` is over: the GPU goes to who is behind. */
inline leave(e) {
  if
  :: behind == e -> behind = 0
  :: behind != e && holder == e && behind != 0 && INHERITS && (WITHDRAWN || job[behind] != STOPPING) ->
     holder = behind; behind = 0
  :: behind != e && holder == e && behind != 0 && !(INHERITS && (WITHDRAWN || job[behind] != STOPPING)) ->
     holder = 0
  :: behind != e && holder == e && behind == 0 -> holder = 0
  :: else
  fi
}

inline begin(e) {
  attempt[e]++; job[e] = STARTING;
  down ! LAUNCH, e, attempt[e]
}

#define MAY_BEGIN(e) (job[e] == QUEUED && attempt[e] < ATTEMPTS && !is_others && nfull(down))

active proctype controller()
{
  byte e, n;
  mtype what;
end:
  do
  :: atomic { holder == 0 && behind == 0 && MAY_BEGIN(1) -> holder = 1; begin(1) }
  :: atomic { holder == 0 && behind == 0 && MAY_BEGIN(2) -> holder = 2; begin(2) }
  :: atomic { holder == 1 && behind == 0 && job[1] != DONE && MAY_BEGIN(2) -> behind = 2; begin(2) }
  :: atomic { holder == 2 && behind == 0 && job[2] != DONE && MAY_BEGIN(1) -> behind = 1; begin(1) }
  /* The order is on its way, and the commit is lost with the controller. */
  :: atomic { !COMMITTED && holder == 1 && behind == 0 && MAY_BEGIN(2) && troubles < TROUBLES ->
     troubles++; CUT_UP; down ! LAUNCH, 2, attempt[2] + 1 }
  /* Hold, priority, drain, preemption, or the one before it takes long. */
  :: atomic { behind != 0 && job[behind] == STARTING && returns < RETURNS && nfull(down) ->
     returns++;
     if
     :: PROOF -> job[behind] = STOPPING; down ! STOP, behind, attempt[behind]
     :: else -> job[behind] = QUEUED; down ! STOP, behind, attempt[behind]; behind = 0
     fi }
  :: atomic { holder == 0 && !is_others -> is_others = true }
  :: atomic { is_others -> is_others = false }
  :: atomic { up ? what, e, n ->
     if
     :: (n != attempt[e] && ONCE) || job[e] == DONE || job[e] == QUEUED -> skip
     :: else ->
        leave(e);
        if :: what == EXITED -> job[e] = DONE :: else -> job[e] = QUEUED fi
     fi;
     if :: nfull(down) -> down ! RELEASE, e, n :: full(down) -> skip fi;
     e = 0; n = 0; what = 0 }
  :: atomic { troubles < TROUBLES -> troubles++; CUT_DOWN; CUT_UP; resend() }
  od
}

/* A shepherd: the verdict, the command, the exit record; it dies at any moment. */
inline shepherd_step(a, e)
{
  if
  :: verdict[a] == 0 && !on_gpu[a] && (running == 0 || !WAITS) ->
     verdict[a] = GO; on_gpu[a] = true; running++; execs[e]++;
     assert(execs[e] == 1);                            /* started once */
     assert(running == 1);                             /* alone */
     assert(job[e] == STARTING || job[e] == STOPPING); /* committed */
     assert(A(e, attempt[e]) == a);
     assert(!is_others)
  :: verdict[a] == GO && on_gpu[a] -> on_gpu[a] = false; running--; has_exit[a] = true; has_shepherd[a] = false
  :: verdict[a] == NOGO -> has_shepherd[a] = false
  fi
}

#define HAS_STEP(a) (has_shepherd[a] && (verdict[a] == NOGO || on_gpu[a] || (verdict[a] == 0 && (running == 0 || !WAITS))))

active proctype shepherds()
{
end:
  do
  :: atomic { HAS_STEP(0) -> shepherd_step(0, 1) }
  :: atomic { HAS_STEP(1) -> shepherd_step(1, 1) }
  :: atomic { HAS_STEP(2) -> shepherd_step(2, 2) }
  :: atomic { HAS_STEP(3) -> shepherd_step(3, 2) }
  /* It dies: before its verdict the agent starts another; after it, one adopts, which here is the same shepherd. */
  :: atomic { troubles < TROUBLES && has_shepherd[0] && verdict[0] == 0 -> troubles++; has_shepherd[0] = false }
  :: atomic { troubles < TROUBLES && has_shepherd[2] && verdict[2] == 0 -> troubles++; has_shepherd[2] = false }
  od
}

inline act(a, e, n) {
  if
  :: want_run[a] && !want_stop[a] && !has_exit[a] && verdict[a] == 0 && !has_shepherd[a] ->
     has_entry[a] = true; has_shepherd[a] = true
  :: want_stop[a] && verdict[a] == 0 -> verdict[a] = NOGO; has_entry[a] = true
  :: verdict[a] == NOGO && !is_told[a] && nfull(up) -> is_told[a] = true; up ! RETURNED, e, n
  :: has_exit[a] && !is_told[a] && nfull(up) -> is_told[a] = true; up ! EXITED, e, n
  fi
}

#define HAS_ACT(a) ((want_run[a] && !want_stop[a] && !has_exit[a] && verdict[a] == 0 && !has_shepherd[a]) || \
  (want_stop[a] && verdict[a] == 0) || (len(up) < 2 && !is_told[a] && (verdict[a] == NOGO || has_exit[a])))

active proctype agent()
{
  byte e, n;
  mtype what;
end:
  do
  :: atomic { down ? what, e, n ->
     if
     :: what == LAUNCH -> want_run[A(e, n)] = true; is_told[A(e, n)] = false
     :: what == STOP -> want_stop[A(e, n)] = true; is_told[A(e, n)] = false
     :: what == RELEASE -> want_run[A(e, n)] = false
     fi; what = 0; e = 0; n = 0 }
  :: atomic { HAS_ACT(0) -> act(0, 1, 1) }
  :: atomic { HAS_ACT(1) -> act(1, 1, 2) }
  :: atomic { HAS_ACT(2) -> act(2, 2, 1) }
  :: atomic { HAS_ACT(3) -> act(3, 2, 2) }
  :: atomic { troubles < TROUBLES -> troubles++; CUT_DOWN; CUT_UP;
     want_run[0] = false; want_run[1] = false; want_run[2] = false; want_run[3] = false;
     want_stop[0] = false; want_stop[1] = false; want_stop[2] = false; want_stop[3] = false;
     resend() }
  od
}

/* Nothing can happen any more but the others' coming and going: none is lost. */
active proctype judge()
{
end:
  do
  :: atomic { is_others -> assert(running == 0) }
  :: atomic { empty(down) && empty(up) && !HAS_ACT(0) && !HAS_ACT(1) && !HAS_ACT(2) && !HAS_ACT(3) &&
       !HAS_STEP(0) && !HAS_STEP(1) && !HAS_STEP(2) && !HAS_STEP(3) && (holder != 0 || behind != 0) -> assert(false) }
  od
}
