/* SPDX-License-Identifier: MIT */
/*
 * The spool: what the node knows of an attempt while every process may die. It lies in the runtime directory
 * (tmpfs) and survives all processes, not a reboot, because a new boot ends an attempt anyway.
 *
 *   RUN/spool/                   root (or the rootless user), 0700; the agent's working directory
 *     hints                      datagram socket of the agent: "NAME WORD", a hint to look at NAME
 *     JOB.ATTEMPT.STEP.RANK/     one directory per shepherd; integers made by the controller
 *       lock                     OFD lock held by the living shepherd: the proof of life
 *       spec                     struct launch_spec, written by the agent
 *       verdict                  "go" or "nogo", settled once by link(2): whoever links first decides
 *       started                  struct launch_started, written by the shepherd at the open gate
 *       status                   raw wait status of the command, by the user's init (shepherd/init.h)
 *       said                     struct spool_said: what the job has said of itself
 *       exit                     struct launch_exit: nothing of the step runs any more
 *       ctl                      datagram socket of the shepherd: struct spool_command
 *       tty                      datagram socket of the terminal: struct terminal_visit
 *   RUN/notify/                  the same owner, 0711: jobs pass through it and see nothing
 *     JOB.ATTEMPT.STEP.RANK      pipe of the job's user, 0600: the job's MGPU_NOTIFY
 *   RUN/hosts/                   the same
 *     JOB.ATTEMPT.STEP.RANK      the job's MGPU_HOSTFILE, 0400 of its user (agent/host/hostfile.h)
 *
 * Truth is in the files; datagrams only say "look again".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/spool_id.h"

#define SPOOL_LOCK      "lock"
#define SPOOL_SPEC      "spec"
#define SPOOL_VERDICT   "verdict"
#define SPOOL_STARTED   "started"
#define SPOOL_STATUS    "status"
#define SPOOL_EXIT      "exit"
#define SPOOL_CTL       "ctl"
#define SPOOL_TTY       "tty" // datagram socket of the step's terminal: struct terminal_visit (base/terminal.h)
#define SPOOL_TTY_SEEN  "tty-seen" // when a byte last went through that (shepherd/terminal_idle.h)
#define SPOOL_USAGE     "usage"    // what the attempt made of its GPUs so far (agent/usage/meter.h)
#define SPOOL_ADOPTED   "lease"    // present: an adopted process, without a shepherd (agent/launch/adopted.h)
#define SPOOL_TERMS     "terms"    // struct spool_terms: what was changed about the attempt since its spec
#define SPOOL_READY     "ready"    // struct launch_started of the shepherd that waits to be let go (is_gated)
#define SPOOL_RENEWED   "renewed"  // struct spool_renewed: the current lease of the attempt
#define SPOOL_STOP      "stop"     // struct spool_stop: why its shepherd is ending it
#define SPOOL_HINTS     "hints"
#define SPOOL_SAID      "said"                // struct spool_said
#define SPOOL_PIPES_DIR "notify"              // directory of the pipes, below RUN
#define SPOOL_PIPES     "../" SPOOL_PIPES_DIR // the same, from the spool

enum spool_verdict { VERDICT_NONE, VERDICT_GO, VERDICT_NOGO };

/* What the agent asks of a shepherd, one datagram on ctl. */
struct spool_command {
    uint32_t magic;   // SPOOL_COMMAND_MAGIC
    uint32_t signal;  // sent to every process of the step at once
    int64_t grace_ms; // then SIGKILL after this long; < 0: only the signal, the job goes on
    uint64_t port;    // of SPOOL_GO_MAGIC: where the parts meet; 0: as the environment has it
};
#define SPOOL_COMMAND_MAGIC 0x6d67706bU
#define SPOOL_LOOK_MAGIC    0x6d67706cU // instead of a signal: the file "terms" is a new one
/* A stop whose signal is the one that the spec has for it, and which ends when the job says CHECKPOINTED. */
#define SPOOL_CHECKPOINT_MAGIC 0x6d67706eU
#define SPOOL_GO_MAGIC         0x6d677070U // to one that waits to be let go: settle the verdict now

/* Host byte order: it never leaves the boot. */
struct spool_terms {
    uint32_t magic; // SPOOL_TERMS_MAGIC
    uint32_t is_suspended;
    int64_t time_limit_ms; // from the start; 0: none
};
#define SPOOL_TERMS_MAGIC 0x6d67706dU

/* False when the attempt whose directory is `dirfd` has no such file, or none that is whole; then *ret is as
 * it was. */
bool spool_read_terms(int dirfd, struct spool_terms *ret);

#define SPOOL_STATUS_MAX 128U // bytes

/* Why a job was told to save its work. */
enum spool_save { SAVE_UNASKED, SAVE_AT_STOP, SAVE_AT_LIMIT };

/* What a job has said of itself; host byte order. The status is the user's text: no newline, else anything.
 */
struct spool_said {
    uint32_t magic; // SPOOL_SAID_MAGIC
    uint32_t crc;   // of the struct, with 0 here
    uint32_t has_progress;
    uint32_t progress_ppm;             // 0 to 1000000
    int64_t checkpointed_ms;           // wall clock: when it said last that its work is saved; 0: never
    uint64_t save;                     // enum spool_save
    char status[SPOOL_STATUS_MAX + 8]; // terminated; "": none. Fills the struct up: there is no padding
};
#define SPOOL_SAID_MAGIC 0x6d67706fU

/* The attempt may run until then: the node has heard of the controller since its spec was written. It is
 * written at staging and then overwritten where it is, which needs no room: a healthy node keeps its leases
 * when RUN is full. */
struct spool_renewed {
    uint32_t magic;   // SPOOL_RENEWED_MAGIC
    uint32_t crc;     // of until_ms; 0: of an agent that always replaced the file
    int64_t until_ms; // boot clock
};
#define SPOOL_RENEWED_MAGIC 0x6d677071U

int spool_renew(int dirfd, int64_t until_ms);
/* False when there is no such file, or none that is whole; then *ret_ms is as it was. */
bool spool_read_renewed(int dirfd, int64_t *ret_ms);

/* What the shepherd of a step that is being stopped would know at its end. */
struct spool_stop {
    uint32_t magic;  // SPOOL_STOP_MAGIC
    uint32_t signal; // the first one
    uint32_t end;    // enum job_end, as in struct ending
};
#define SPOOL_STOP_MAGIC 0x6d677073U

/*
 * Settles the verdict of the attempt whose directory is `dirfd`: makes a file with the word and link(2)s it
 * to "verdict". Returns the verdict that stands, which is another's when another was first, or a negative
 * errno.
 */
int spool_settle(int dirfd, enum spool_verdict wanted);

/* The verdict that stands, VERDICT_NONE when there is none yet, or a negative errno. */
int spool_verdict(int dirfd);

/* The file is written in place: a reader that comes in between finds a wrong checksum, and looks later. */
int spool_write_said(int fd, const struct spool_said *said);

/* False, with nothing touched, when there is none that is whole. */
bool spool_read_said(int dirfd, struct spool_said *ret);

/* True when a living shepherd holds the lock of this attempt. */
bool spool_is_alive(int dirfd);

/* Removes the directory NAME below `spoolfd` with the files listed above and nothing else, and its pipe. */
int spool_remove(int spoolfd, const char *name);
