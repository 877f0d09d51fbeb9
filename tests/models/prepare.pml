/* SPDX-License-Identifier: MIT */
/*
 * A job that is prepared on a node before it is its turn (docs/decisions/0022-prepared-jobs.md). The controller has
 * the job, its attempt and its GPU durably; the agent has in memory what the controller wants; the spool has the
 * entry, the GPU that it was written for, and the verdict. Each of them dies at any moment, and so does a shepherd.
 * The controller guesses the GPU, and guesses wrong: the other one may come free first, or the job may go elsewhere.
 *
 * A command runs once in an attempt, only when that attempt was committed for this node, only on the GPU of that
 * commit, and only when that GPU was looked at after the job before it. Each rule can be taken away (-DRULE=0).
 */
#ifndef GATE /* a prepared shepherd waits for the word of its agent before the verdict */
#define GATE 1
#endif
#ifndef COMPARE /* the word is given for what was prepared: a launch that differs makes the entry anew */
#define COMPARE 1
#endif
#ifndef SETTLED /* what is dropped gets the verdict nogo before anything is removed */
#define SETTLED 1
#endif
#ifndef REMOVED /* an entry is made anew only when its shepherd is gone */
#define REMOVED 1
#endif
#ifndef FORGOTTEN /* an agent that starts drops what it finds prepared: it does not know for what */
#define FORGOTTEN 1
#endif
#ifndef LOOKED /* the look at the GPU is asked for at the gate, not when the job is prepared */
#define LOOKED 1
#endif
#ifndef TROUBLES
#define TROUBLES 2 /* deaths of controller, agent and shepherds, together */
#endif

#define ATTEMPTS 2
#define GUESSES  2
#define GO       1
#define NOGO     2

mtype = { QUEUED, STARTING, DONE, ELSEWHERE };
mtype = { NOTHING, PREPARED, DROPPED, RUN };
mtype = { PREPARE, LAUNCH, RELEASE };

/* The controller, durably; its guess in memory. */
mtype job = QUEUED;
byte attempt, gpu, guessed, guesses;
/* The GPUs 1 and 2: held by a job before, or not looked at since. */
bool held[3], unclean[3];
/* The spool and the shepherds. */
byte spec[3], verdict[3];
bool is_prepared[3], has_lock[3], word[3], has_exit[3], has_entry[3];
byte shepherds[3], execs[3], entries[3]; /* entries: the number of the entry; a removed one has its own verdict */
/* The agent, in memory. */
mtype want[3] = NOTHING;
byte made_for[3]; /* the GPU of what it has prepared; 0: it does not know */
byte kept[3];     /* the GPU of a launch that waits until another entry is gone */

chan down = [3] of { mtype, byte, byte };
byte troubles;
#define TROUBLE (troubles < TROUBLES)

inline leave() {
  if :: entry == entries[a] -> has_lock[a] = false; shepherds[a]-- :: else -> skip fi
}

proctype Shepherd(byte a, entry) {
  byte mine;
  bool waits;
  atomic { if :: entry != entries[a] -> goto out
              :: entry == entries[a] && (has_lock[a] || verdict[a] != 0) -> shepherds[a]--; goto out
              :: else -> has_lock[a] = true; mine = spec[a]; waits = is_prepared[a] fi }
  if
  :: waits && GATE ->
end_gate:
     if
     :: entry == entries[a] && (word[a] || verdict[a] != 0) -> skip
     :: atomic { TROUBLE -> troubles++; leave(); goto out }
     fi
  :: else -> skip
  fi;
  if :: atomic { TROUBLE -> troubles++; leave(); goto out } :: true -> skip fi;
  atomic { if :: entry != entries[a] -> skip
              :: entry == entries[a] && verdict[a] == 0 -> verdict[a] = GO
                         :: else -> leave(); goto out fi }
  atomic { execs[a]++;
           assert(execs[a] == 1);
           assert(job == STARTING && attempt == a); /* committed, for this node */
           assert(gpu == mine);
           assert(!held[mine] && !unclean[mine]) }
  atomic { has_exit[a] = true; leave() }
out: skip
}

#define CUT atomic { do :: down ? _, _, _ :: empty(down) -> break od }

/* What the agent forgets when it dies, or when its link does: only what was not launched. */
inline forget(a) {
  if :: want[a] == PREPARED -> want[a] = DROPPED :: else -> skip fi
}

inline reborn(a) {
  if :: has_entry[a] && verdict[a] == 0 && is_prepared[a] && FORGOTTEN -> want[a] = DROPPED
     :: has_entry[a] && verdict[a] == 0 && is_prepared[a] && !FORGOTTEN -> want[a] = PREPARED
     :: else -> want[a] = NOTHING fi;
  kept[a] = 0; made_for[a] = 0
}

inline resend() { /* HELLO and WELCOME */
  if :: job == STARTING && !has_exit[attempt] -> down ! LAUNCH, attempt, gpu :: else -> skip fi
}

proctype Controller() {
  byte g;
end:
  do
  :: job == QUEUED && guessed == 0 && guesses < GUESSES && attempt < ATTEMPTS && nfull(down) ->
     atomic { guesses++; if :: g = 1 :: g = 2 fi; guessed = g; down ! PREPARE, attempt + 1, g }
  :: job == QUEUED && guessed != 0 && nfull(down) -> atomic { guessed = 0; down ! RELEASE, attempt + 1, 0 }
  :: job == QUEUED && attempt < ATTEMPTS && nfull(down) ->
     atomic { if :: !held[1] -> g = 1 :: !held[2] -> g = 2 :: held[1] && held[2] -> g = 0 fi;
              if :: g != 0 -> attempt++; gpu = g; job = STARTING; guessed = 0; down ! LAUNCH, attempt, g
                 :: else -> skip fi }
  :: atomic { job == QUEUED -> job = ELSEWHERE }
  :: atomic { job == STARTING && has_exit[attempt] -> job = DONE }
  :: atomic { job == STARTING && verdict[attempt] == NOGO && want[attempt] == RUN -> job = QUEUED; want[attempt] = NOTHING }
  :: atomic { held[1] -> held[1] = false; unclean[1] = true }
  :: atomic { held[2] -> held[2] = false; unclean[2] = true }
  /* it dies: what was said on the way is lost, and the agent greets the next one */
  :: atomic { TROUBLE -> troubles++; CUT; guessed = 0; forget(1); forget(2); resend() }
  :: job == DONE || job == ELSEWHERE -> break
  od
}

/* It stages: writes the entry for this GPU, and starts a shepherd. */
inline stage(a, g, ahead) {
  has_entry[a] = true; spec[a] = g; is_prepared[a] = ahead; word[a] = false;
  if :: shepherds[a] < 2 -> shepherds[a]++; run Shepherd(a, entries[a]) :: else -> skip fi
}

inline look(g) { /* at the GPU; asked for when the job before has ended */
  if :: !held[g] -> unclean[g] = false :: else -> skip fi
}

inline launched(a, g) {
  if
  :: verdict[a] != 0 && want[a] != DROPPED -> want[a] = RUN
  :: verdict[a] == GO && want[a] == DROPPED -> want[a] = RUN
  :: verdict[a] == NOGO && want[a] == DROPPED -> kept[a] = g
  :: verdict[a] == 0 && want[a] == PREPARED && (made_for[a] == g || made_for[a] == 0 || !COMPARE) ->
     want[a] = RUN;
     if :: LOOKED -> look(g) :: else -> skip fi;
     word[a] = true
  :: verdict[a] == 0 && want[a] == PREPARED && made_for[a] != g && made_for[a] != 0 && COMPARE ->
     kept[a] = g; want[a] = DROPPED;
     if :: !REMOVED -> want[a] = RUN; look(g); stage(a, g, true); word[a] = true :: else -> skip fi
  :: verdict[a] == 0 && want[a] == DROPPED -> kept[a] = g
  :: verdict[a] == 0 && (want[a] == NOTHING || want[a] == RUN) ->
     want[a] = RUN;
     if :: !has_lock[a] && shepherds[a] == 0 -> look(g); stage(a, g, false) :: else -> skip fi
  fi
}

inline act(a) { /* on what it sees of an attempt that is to be dropped */
  if
  :: want[a] == DROPPED && verdict[a] == 0 && has_entry[a] && SETTLED -> verdict[a] = NOGO
  :: want[a] == DROPPED && verdict[a] == 0 && has_entry[a] && !SETTLED ->
     has_entry[a] = false; has_lock[a] = false; shepherds[a] = 0; entries[a]++; want[a] = NOTHING;
     if :: kept[a] != 0 -> launched(a, kept[a]); kept[a] = 0 :: else -> skip fi
  :: want[a] == DROPPED && verdict[a] == GO -> want[a] = RUN; kept[a] = 0
  :: want[a] == DROPPED && (verdict[a] == NOGO || !has_entry[a]) && shepherds[a] == 0 ->
     has_entry[a] = false; verdict[a] = 0; spec[a] = 0; entries[a]++; want[a] = NOTHING;
     if :: kept[a] != 0 -> launched(a, kept[a]); kept[a] = 0 :: else -> skip fi
  :: want[a] == RUN && verdict[a] == 0 && has_entry[a] && shepherds[a] == 0 -> stage(a, spec[a], is_prepared[a]); word[a] = true
  :: else -> skip
  fi
}

proctype Agent() {
  byte a, g;
  mtype what;
end:
  do
  :: atomic { down ? what, a, g ->
     if
     :: what == PREPARE && want[a] == NOTHING && !has_entry[a] ->
        want[a] = PREPARED;
        if :: LOOKED -> skip :: else -> unclean[g] = false fi;
        made_for[a] = g; stage(a, g, true)
     :: what == LAUNCH -> launched(a, g)
     :: what == RELEASE && want[a] == PREPARED -> want[a] = DROPPED
     :: else -> skip
     fi; what = 0; a = 0; g = 0 }
  :: atomic { want[1] == DROPPED || want[1] == RUN -> act(1) }
  :: atomic { want[2] == DROPPED || want[2] == RUN -> act(2) }
  :: atomic { TROUBLE -> troubles++; CUT; reborn(1); reborn(2); guessed = 0; resend() }
  od
}

init { atomic { held[1] = true; held[2] = true; run Controller(); run Agent() } }
