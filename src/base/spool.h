/* SPDX-License-Identifier: MIT */
/*
 * The spool: what the node knows of an attempt while every process may die. It lies in the runtime directory
 * (tmpfs) and survives all processes, not a reboot, because a new boot ends an attempt anyway.
 *
 *   RUN/spool/                      root (or the rootless user), 0700; the agent's working directory
 *     notify                        datagram socket of the agent: "JOB.ATTEMPT.STEP.TASK WORD", a hint to
 * look JOB.ATTEMPT.STEP.TASK/        one directory per shepherd; the names are integers made by the
 * controller lock                        OFD lock held by the living shepherd: the proof of life spec struct
 * launch_spec, written by the agent verdict                     "go" or "nogo", settled once by link(2):
 * whoever links first decides started                     struct launch_started, written by the shepherd when
 * the gate is open status                      raw wait status of the command, written by the user's init
 * (see shepherd/init.h) exit                        struct launch_exit: nothing of the step runs any more ctl
 * datagram socket of the shepherd: struct spool_command tty                       datagram socket of the
 * terminal: struct terminal_visit
 *
 * Truth is in the files; datagrams only say "look again". (reliability: launch protocol, steps 1 to 6)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SPOOL_NAME_SIZE 64
#define SPOOL_LOCK      "lock"
#define SPOOL_SPEC      "spec"
#define SPOOL_VERDICT   "verdict"
#define SPOOL_STARTED   "started"
#define SPOOL_STATUS    "status"
#define SPOOL_EXIT      "exit"
#define SPOOL_CTL       "ctl"
#define SPOOL_TTY       "tty" // datagram socket of the step's terminal: struct terminal_visit (base/terminal.h)
#define SPOOL_USAGE     "usage" // what the attempt made of its GPUs so far (agent/usage_meter.h)
#define SPOOL_LEASE     "lease" // there: the entry is a lease, and no shepherd belongs to it (agent/lease.h)
#define SPOOL_TERMS     "terms" // struct spool_terms: what was changed about the attempt since its spec
#define SPOOL_READY     "ready" // struct launch_started of the shepherd that waits to be let go (is_gated)
#define SPOOL_RENEWED   "renewed" // struct spool_renewed: the lease that the attempt has of its node, by now
#define SPOOL_NOTIFY    "notify"

struct spool_id {
    uint64_t job;
    uint32_t attempt, step, task;
};

enum spool_verdict { VERDICT_NONE, VERDICT_GO, VERDICT_NOGO };

/* What the agent asks of a shepherd, one datagram on ctl. */
struct spool_command {
    uint32_t magic;   // SPOOL_COMMAND_MAGIC
    uint32_t signal;  // sent to every process of the step at once
    int64_t grace_ms; // then SIGKILL after this long; < 0: only the signal, the job goes on
};
#define SPOOL_COMMAND_MAGIC 0x6d67706bU
#define SPOOL_LOOK_MAGIC    0x6d67706cU // instead of a signal: the file "terms" is a new one
#define SPOOL_GO_MAGIC      0x6d67706eU // to one that waits to be let go: settle the verdict now

/* Host byte order: it never leaves the boot. */
struct spool_terms {
    uint32_t magic; // SPOOL_TERMS_MAGIC
    uint32_t is_suspended;
    int64_t time_limit_ms; // from the start; 0: none
};
#define SPOOL_TERMS_MAGIC 0x6d67706dU

/* The attempt may run until then: the node has heard of the controller since its spec was written. */
struct spool_renewed {
    uint32_t magic;   // SPOOL_RENEWED_MAGIC
    int64_t until_ms; // boot clock
};
#define SPOOL_RENEWED_MAGIC 0x6d67706eU

/* "42.1.0.0" */
void spool_name(const struct spool_id *id, char name[SPOOL_NAME_SIZE]);

/* Reads a name back; false when it is not exactly what spool_name would write. */
bool spool_parse_name(const char *name, struct spool_id *ret_id);

/*
 * Settles the verdict of the attempt whose directory is `dirfd`: makes a file with the word and link(2)s it
 * to "verdict". Returns the verdict that stands, which is another's when another was first, or a negative
 * errno.
 */
int spool_settle(int dirfd, enum spool_verdict wanted);

/* The verdict that stands, VERDICT_NONE when there is none yet, or a negative errno. */
int spool_verdict(int dirfd);

/* True when a living shepherd holds the lock of this attempt. */
bool spool_is_alive(int dirfd);

/* Removes the directory NAME below `spoolfd` with the files listed above and nothing else. */
int spool_remove(int spoolfd, const char *name);
