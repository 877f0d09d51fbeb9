/* SPDX-License-Identifier: MIT */
/*
 * The launch of a job (ARCHITECTURE.md, "The life of a job"): a controller D with a durable database, a shepherd S
 * with a durable spool. Either may be killed at any point; a shepherd may also be slow. One GPU, three attempts at
 * most. A command is executed once in an attempt, one at a time, and no exit code is invented. Each rule can be
 * taken away (-DRULE=0).
 */
#ifndef ARBITER            /* 1: GO/NOGO settled by one link()ed file */
#define ARBITER 1
#endif
#ifndef FENCE              /* 1: a new attempt only after cgroup.kill + cgroup empty */
#define FENCE 1
#endif
#ifndef INTENT             /* 1: STARTING(attempt) committed before the spawn */
#define INTENT 1
#endif
#define GO 1
#define NOGO 2
mtype = { QUEUED, STARTING, RUNNING, DONE };
mtype db = QUEUED;  byte att = 0;          /* durable */
byte verdict[4];  bool exitrec[4];         /* durable, in the spool */
bool alive[4], sup[4];  byte execs[4], spawned[4], kills = 0;
bool known = false, ran = false;
#define MAXKILL 3
#define LIVE (alive[0]+alive[1]+alive[2]+alive[3])
#define die(x) :: kills < MAXKILL -> atomic { kills++; sup[x] = false }; goto end :: true -> skip

proctype Sup(byte a) {
  if die(a) fi;
  atomic { if :: !ARBITER -> verdict[a] = GO
              :: ARBITER && verdict[a] == 0 -> verdict[a] = GO
              :: ARBITER && verdict[a] != 0 -> sup[a] = false; goto end fi };
  if die(a) fi;
  atomic { alive[a] = true; execs[a]++; ran = true;
           assert(execs[a] == 1); assert(LIVE == 1) };
  if die(a) fi;
  atomic { if :: alive[a] -> alive[a] = false; exitrec[a] = true :: else -> skip fi; sup[a] = false };
end: skip
}
proctype D() {
again:
  do
  :: db == DONE -> break
  :: db == QUEUED && (att < 3 || !INTENT) ->
     if :: INTENT -> atomic { att++; db = STARTING }
        :: !INTENT -> if :: att == 0 -> att = 1 :: else -> skip fi fi;
     if :: kills < MAXKILL -> kills++; goto again :: skip fi;
     atomic { if :: spawned[att] < 2 -> spawned[att]++; sup[att] = true; run Sup(att) :: else -> skip fi };
     if :: kills < MAXKILL -> kills++; goto again :: skip fi;
     if :: !INTENT -> db = STARTING :: else -> skip fi
  :: db == QUEUED && att >= 3 && INTENT -> db = DONE
  :: db == STARTING ->
     if :: exitrec[att] -> atomic { db = DONE; known = true }
        :: verdict[att] == GO && !exitrec[att] -> db = RUNNING
        :: atomic { verdict[att] == 0 -> if :: ARBITER -> verdict[att] = NOGO :: else -> skip fi }; db = QUEUED
        :: verdict[att] == NOGO -> db = QUEUED      /* D was killed after NOGO */
     fi
  :: db == RUNNING ->
     if :: exitrec[att] -> atomic { db = DONE; known = true }
        :: !sup[att] && !exitrec[att] ->
           if :: FENCE -> alive[att] = false :: else -> skip fi;
           if :: exitrec[att] -> skip :: else -> db = QUEUED fi   /* requeue policy on */
     fi
  od;
  assert(!FENCE || LIVE == 0);
  assert(!known || ran)                     /* an exit code is never invented */
}
init { run D() }
