/* SPDX-License-Identifier: MIT */
/*
 * The spool: what a node records about an attempt, so that any process may die. It is in the runtime
 * directory (tmpfs): it survives all processes but no reboot, because a reboot ends every attempt anyway.
 *
 *   RUN/spool/                   root (or the rootless user), 0700; the agent's working directory
 *     hints                      datagram socket of the agent: "NAME WORD", a hint to check NAME
 *     JOB.ATTEMPT.STEP.RANK/     one directory per shepherd; integers assigned by the controller
 *       lock                     OFD lock held by the running shepherd: proves that it is alive
 *       spec                     struct launch_spec, written by the agent
 *       verdict                  "go" or "nogo", created once by link(2): the first to link decides
 *       started                  struct launch_started, written by the shepherd when the gate opens
 *       status                   raw wait status of the command, by the user's init (shepherd/init.h)
 *       said                     struct spool_report: status reports of the job (shepherds outlive updates,
 * so the name stays) exit                     struct launch_exit: no process of the step is left ctl datagram
 * socket of the shepherd: struct spool_command tty                      datagram socket of the terminal:
 * struct terminal_visit RUN/notify/                  the same owner, 0711: jobs can pass through but not list
 * it JOB.ATTEMPT.STEP.RANK      pipe of the job's user, 0600: the job's MGPU_NOTIFY RUN/hosts/ the same
 *     JOB.ATTEMPT.STEP.RANK      the job's MGPU_HOSTFILE, 0400 of its user (agent/host/hostfile.h)
 *
 * The files are authoritative; datagrams only trigger a new check.
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
#define SPOOL_TTY_SEEN  "tty-seen"  // time of the terminal's last input or output (shepherd/terminal_idle.h)
#define SPOOL_USAGE     "usage"     // resource usage of the attempt so far (agent/usage/meter.h)
#define SPOOL_ADOPTED   "lease"     // adopted process, without a shepherd (agent/launch/adopted.h)
#define SPOOL_TERMS     "terms"     // struct spool_terms: changes to the attempt since its spec was written
#define SPOOL_READY     "ready"     // struct launch_started of a shepherd that waits for GO (is_gated)
#define SPOOL_RENEWED   "renewed"   // struct spool_renewed: the current lease of the attempt
#define SPOOL_STOP      "stop"      // of a shepherd of the last version: it was ending the step
#define SPOOL_PARK      "park"      // struct park_entry of a job that is parked (agent/park/helper.h)
#define SPOOL_PARK_LOCK "park-lock" // OFD lock held by the process that parks or restores it
#define SPOOL_GRANT     "grant"     // pipe with a byte in it once a job that started early has its GPUs
#define SPOOL_ASKED     "asked"     // struct spool_asked of such a job
#define SPOOL_HINTS     "hints"
#define SPOOL_REPORT    "said"                // struct spool_report
#define SPOOL_PIPES_DIR "notify"              // directory of the pipes, below RUN
#define SPOOL_PIPES     "../" SPOOL_PIPES_DIR // the same, from the spool

#define SPOOL_HINT_STARTED "started" // the word after its name, when the gate of a step is open

enum spool_verdict { VERDICT_NONE, VERDICT_GO, VERDICT_NOGO };

/* A command from the agent to a shepherd: one datagram on ctl. */
struct spool_command {
    uint32_t magic; // SPOOL_COMMAND_MAGIC
    uint32_t signal;
    int64_t grace_ms; // SIGKILL follows after this time; < 0: only the signal is sent and the job continues
    union {
        uint64_t port;  // of SPOOL_GO_MAGIC: rendezvous port; 0: as in the environment
        uint64_t scope; // of a signal that ends nothing: enum signal_scope (job/launch.h)
    };
};
#define SPOOL_COMMAND_MAGIC 0x6d67706bU
#define SPOOL_LOOK_MAGIC    0x6d67706cU // instead of a signal: the file "terms" has changed
/* A stop that uses the checkpoint signal of the spec and ends when the job reports CHECKPOINTED. */
#define SPOOL_CHECKPOINT_MAGIC 0x6d67706eU
#define SPOOL_GO_MAGIC         0x6d677070U // to a shepherd that waits for GO: decide the verdict now
#define SPOOL_REMOVED_MAGIC    0x6d677074U // to a shepherd that has ended the step: the agent removed its entry

/* Host byte order: the file does not outlive the boot. */
struct spool_terms {
    uint32_t magic; // SPOOL_TERMS_MAGIC
    uint32_t is_suspended;
    int64_t time_limit_ms; // from the start; 0: none
};
#define SPOOL_TERMS_MAGIC 0x6d67706dU

/* False if the attempt's directory `dirfd` has no such file or an incomplete one; *ret is then unchanged. */
bool spool_read_terms(int dirfd, struct spool_terms *ret);

/* The time since which a process of a job that started early has waited for a GPU. Host byte order. */
struct spool_asked {
    uint32_t magic; // SPOOL_ASKED_MAGIC
    uint32_t reserved;
    int64_t boot_ms;
};
#define SPOOL_ASKED_MAGIC 0x6d677075U

/* 0: none has, or the file is incomplete. */
int64_t spool_read_asked(int dirfd);

#define SPOOL_STATUS_MAX 128U // bytes

/* Why a job was asked to save its work. */
enum spool_save { SAVE_UNASKED, SAVE_AT_STOP, SAVE_AT_LIMIT };

/* The status reports of a job, in host byte order. The status is arbitrary text without newlines. */
struct spool_report {
    uint32_t magic; // SPOOL_REPORT_MAGIC
    uint32_t crc;   // of the struct, computed with 0 here
    uint32_t has_progress;
    uint32_t progress_ppm;             // 0 to 1000000
    int64_t checkpointed_ms;           // wall clock: last report that its work is saved; 0: never
    uint64_t save;                     // enum spool_save
    char status[SPOOL_STATUS_MAX + 8]; // terminated; "": none. Sized so that the struct has no padding
};
#define SPOOL_REPORT_MAGIC 0x6d67706fU

/* The attempt may run until this time, renewed by every message from the controller. Created at staging
 * and then overwritten in place, which needs no space, so a healthy node keeps its leases when RUN is
 * full. */
struct spool_renewed {
    uint32_t magic;   // SPOOL_RENEWED_MAGIC
    uint32_t crc;     // of until_ms; 0: written by an older agent, which replaced the file
    int64_t until_ms; // boot clock
};
#define SPOOL_RENEWED_MAGIC 0x6d677071U

int spool_renew(int dirfd, int64_t until_ms);
/* False if there is no such file or an incomplete one; *ret_ms is then unchanged. */
bool spool_read_renewed(int dirfd, int64_t *ret_ms);

/*
 * Decides the verdict of the attempt in `dirfd`: writes a file with the verdict and link(2)s it to "verdict".
 * Returns the verdict in effect, which may be an earlier one by another process, or a negative errno.
 */
int spool_decide(int dirfd, enum spool_verdict wanted);

/* The verdict in effect, VERDICT_NONE if there is none yet, or a negative errno. */
int spool_verdict(int dirfd);

/* Writes the file in place: a concurrent reader sees a wrong checksum and tries again later. */
int spool_write_report(int fd, const struct spool_report *report);

/* False, with *ret unchanged, if there is no complete file. */
bool spool_read_report(int dirfd, struct spool_report *ret);

/* True if a running shepherd holds the lock of this attempt. */
bool spool_is_alive(int dirfd);

/* Removes the directory NAME below `spoolfd`, only the files listed above, and its pipe. */
int spool_remove(int spoolfd, const char *name);

/* The same, and notifies its shepherd through the datagram socket `fd`. Without the notification the shepherd
 * notices it within a second. */
int spool_remove_and_notify(int spoolfd, const char *name, int fd);
