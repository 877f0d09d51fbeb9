/* SPDX-License-Identifier: MIT */
/* What a job asks of the cluster and of the queue: part of the request, kept with every job, and editable
 * while the job waits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"
#include "base/strings.h"

#define ASK_TEXT_MAX      4096U // bytes of each text
#define ASK_GPUS_MAX      1024U
#define ASK_NODES_MAX     1024U
#define ASK_GPU_INDEX_MAX 255U
#define ASK_NODE_NAME_MAX 128U
#define ASK_BOOT_MAX      64U
#define ASK_SHARE_WHOLE   1000U // thousandths of one GPU
#define ASK_PRIORITY_MAX  1000
#define ASK_PID_MAX       0x3fffffU   // as many as Linux can number
#define ASK_CPUS_MAX      65536U      // whole CPUs of one node
#define ASK_MEMORY_MIN    (16U << 20) // bytes; with less no command starts
#define ASK_IDLE_MIN_MS   1000        // the GPUs are looked at once a second
#define ASK_AFTER_MAX     1000U       // jobs one job can wait for
#define ASK_REQUEUES      10U         // after losses, when the job says nothing
#define ASK_REQUEUES_MAX  1000U
#define ASK_RETRY_MAX     100U
#define ASK_NOTIFY_MAX    16384U // bytes of all whom it tells
#define ASK_WARN_MAX      64U
#define ASK_WARN_MS       60000 // before the end, when only a signal is named
#define ASK_GRACE_MAX_MS  (24LL * 3600 * 1000)
#define ASK_GRACE_DEFAULT "30s" // of mgpud's --grace; in words, for help and the table of settings
#define ASK_YEAR_9999_MS  253402300799999LL // the last millisecond that RFC 3339 can write

struct job_ask {
    char *gpu_ids;             // "0,2-3" or "node1:0,1;node2:0": exactly these, in this order; NULL: any
    char *gpu_model;           // "h200", "a100|h100": only such models; NULL: any
    char *gpu_allow;           // "0-3,5": only GPUs with these indexes; NULL: any
    char *after;               // "41:ok,42:any": the jobs it waits for; NULL: none
    char *array;               // "0-99:2%8": one element per index, at most 8 at a time; NULL: a single job
    uint64_t gpu_mem;          // bytes needed on each GPU, which may then be shared; 0: none asked
    uint64_t memory;           // host memory on each node, bytes; 0: not asked
    int64_t time_limit_ms;     // 0: none
    int64_t begin_ms;          // not before, wall clock; 0: at once
    int64_t deadline_ms;       // start no later than this, wall clock; 0: never too late
    uint32_t gpus;             // of the whole job
    uint32_t gpu_share;        // thousandths of its one GPU; 0: no fraction asked
    uint32_t cpu_milli;        // thousandths of a CPU on each node; 0: not asked
    uint32_t nodes;            // exactly so many; 0: any number
    uint32_t gpus_per_node;    // 0: any division
    int32_t priority;          // higher runs first
    bool own_priority;         // a priority above 0 counts among its owner's jobs alone
    bool preemptible;          // may be put back into the queue when others need its GPUs
    bool cancel_if_never;      // ended when its dependency can never be satisfied
    bool idle_ok;              // may leave its GPUs unused
    bool requeue_on_timeout;   // goes back to the queue when its time is up
    bool requeue_on_node_lost; // goes back to the queue when its node is lost or started anew
    int64_t idle_timeout_ms;   // ended when it has not used its GPUs for so long; 0: as the site says
    int64_t tty_idle_ms;       // ended when nothing goes through its terminal for so long; 0: never
    int64_t grace_ms;          // between SIGTERM and SIGKILL; 0: as the site says
    char *warn_signal;         // "USR1@60": this signal so many seconds before its time is up; NULL: none
    char *retry_on;            // "75,137": exit codes after which it is tried again; NULL: none
    bool checkpoint;           // saves its work when it is told to, and says CHECKPOINTED
    uint32_t max_requeues;     // at time limits, and after losses; 0: any number, and ASK_REQUEUES
    struct strings notify;     // whom to tell: job/notify.h; empty: nobody
    char *notify_on;           // of what: "start,end"; NULL: of its end
    uint32_t retry; // tries after the first that failed by no fault of its command, or by `retry_on`
    /* A lease: no command is run, the GPUs are booked for as long as this process lives. */
    uint32_t lease_pid;   // as the agent of its node sees it; 0: no lease
    uint64_t lease_start; // its start time, without which a pid names nobody
    char *lease_boot;     // the boot of the node that both belong to
};

/* The rows of these fields, for a record that holds a job_ask at `base_`. Their tags are 7 to 10 and from 32
 * on in every record that uses them. */
#define JOB_ASK_FIELD(tag_, kind_, base_, member_, name_, limit_)                                            \
    {                                                                                                        \
        .tag = (tag_), .kind = (kind_), .name = (name_),                                                     \
        .offset = (base_) + offsetof(struct job_ask, member_), .limit = (limit_)                             \
    }
#define JOB_ASK_FIELDS(base_)                                                                                \
    JOB_ASK_FIELD(7, RECORD_U32, base_, gpus, "gpus", 0),                                                    \
        JOB_ASK_FIELD(8, RECORD_STRING, base_, gpu_ids, "gpu_ids", ASK_TEXT_MAX),                            \
        JOB_ASK_FIELD(9, RECORD_SIZE, base_, gpu_mem, "gpu_mem", 0),                                         \
        JOB_ASK_FIELD(10, RECORD_I32, base_, priority, "priority", 0),                                       \
        JOB_ASK_FIELD(32, RECORD_U32, base_, gpu_share, "gpu_share", 0),                                     \
        JOB_ASK_FIELD(33, RECORD_STRING, base_, gpu_model, "gpu_model", ASK_TEXT_MAX),                       \
        JOB_ASK_FIELD(34, RECORD_STRING, base_, gpu_allow, "gpu_allow", ASK_TEXT_MAX),                       \
        JOB_ASK_FIELD(35, RECORD_MILLI, base_, cpu_milli, "cpus", 0),                                        \
        JOB_ASK_FIELD(36, RECORD_SIZE, base_, memory, "memory", 0),                                          \
        JOB_ASK_FIELD(37, RECORD_U32, base_, nodes, "nodes", 0),                                             \
        JOB_ASK_FIELD(38, RECORD_U32, base_, gpus_per_node, "gpus_per_node", 0),                             \
        JOB_ASK_FIELD(39, RECORD_DURATION, base_, time_limit_ms, "time_limit", 0),                           \
        JOB_ASK_FIELD(40, RECORD_TIME, base_, begin_ms, "begin", 0),                                         \
        JOB_ASK_FIELD(41, RECORD_TIME, base_, deadline_ms, "deadline", 0),                                   \
        JOB_ASK_FIELD(42, RECORD_STRING, base_, after, "after", ASK_AFTER_TEXT_MAX),                         \
        JOB_ASK_FIELD(43, RECORD_STRING, base_, array, "array", ASK_TEXT_MAX),                               \
        JOB_ASK_FIELD(44, RECORD_BOOL, base_, preemptible, "preemptible", 0),                                \
        JOB_ASK_FIELD(45, RECORD_BOOL, base_, cancel_if_never, "cancel_if_never", 0),                        \
        JOB_ASK_FIELD(46, RECORD_DURATION, base_, idle_timeout_ms, "idle_timeout", 0),                       \
        JOB_ASK_FIELD(47, RECORD_BOOL, base_, idle_ok, "idle_ok", 0),                                        \
        JOB_ASK_FIELD(50, RECORD_U32, base_, lease_pid, "lease_pid", 0),                                     \
        JOB_ASK_FIELD(51, RECORD_U64, base_, lease_start, "lease_start", 0),                                 \
        JOB_ASK_FIELD(52, RECORD_STRING, base_, lease_boot, "lease_boot", ASK_BOOT_MAX),                     \
        JOB_ASK_FIELD(60, RECORD_DURATION, base_, grace_ms, "grace", 0),                                     \
        JOB_ASK_FIELD(61, RECORD_STRING, base_, warn_signal, "warn_signal", ASK_WARN_MAX),                   \
        JOB_ASK_FIELD(62, RECORD_BOOL, base_, requeue_on_timeout, "requeue_on_timeout", 0),                  \
        JOB_ASK_FIELD(63, RECORD_U32, base_, max_requeues, "max_requeues", 0),                               \
        JOB_ASK_FIELD(64, RECORD_U32, base_, retry, "retry", 0),                                             \
        JOB_ASK_FIELD(65, RECORD_STRING, base_, retry_on, "retry_on", ASK_TEXT_MAX),                         \
        JOB_ASK_FIELD(70, RECORD_BOOL, base_, checkpoint, "checkpoint", 0),                                  \
        JOB_ASK_FIELD(71, RECORD_STRINGS, base_, notify, "notify", ASK_NOTIFY_MAX),                          \
        JOB_ASK_FIELD(72, RECORD_STRING, base_, notify_on, "notify_on", ASK_TEXT_MAX),                       \
        JOB_ASK_FIELD(73, RECORD_DURATION, base_, tty_idle_ms, "tty_idle", 0),                               \
        JOB_ASK_FIELD(80, RECORD_BOOL, base_, requeue_on_node_lost, "requeue_on_node_lost", 0),              \
        JOB_ASK_FIELD(81, RECORD_BOOL, base_, own_priority, "own_priority", 0)
#define ASK_FIELDS         35U                   // rows of it
#define ASK_AFTER_TEXT_MAX (ASK_AFTER_MAX * 25U) // 20 digits, ":fail" or ":any", a comma

extern const struct record_type job_ask_record;

void job_ask_init(struct job_ask *ask); // one GPU, priority 0
void job_ask_clear(struct job_ask *ask);
void job_ask_copy(struct job_ask *to, const struct job_ask *from); // into an uninitialised one
bool job_ask_equal(const struct job_ask *a, const struct job_ask *b);

/* What its priority counts against the jobs of all users, and against those of its owner alone. */
static inline int32_t ask_priority_of_all(const struct job_ask *ask)
{
    return ask->own_priority && ask->priority > 0 ? 0 : ask->priority;
}

static inline int32_t ask_priority_of_own(const struct job_ask *ask)
{
    return ask->own_priority && ask->priority > 0 ? ask->priority : 0;
}

/* Everything that can be checked without the cluster and the clock. One sentence and often a hint. */
int job_ask_validate(const struct job_ask *ask, struct error *err);

/* One GPU by name. */
struct ask_gpu {
    char *node; // NULL: no node was named
    uint32_t index;
};

/* "0,2-3" or "node1:0,1;node2:0" in the order written; either every GPU has a node or none. The caller frees
 * the list by ask_gpus_free. */
int parse_gpu_ids(const char *text, struct ask_gpu **ret, size_t *ret_count, struct error *err);
void ask_gpus_free(struct ask_gpu *gpus, size_t count);

/* What must be true of the end of a job that is waited for. */
enum after_kind { AFTER_OK, AFTER_ANY, AFTER_FAIL, AFTER_KINDS };

struct ask_after {
    uint64_t job;
    enum after_kind kind;
};

/* "41:ok,42,43:fail"; without a kind it is ok. The caller frees *ret. */
int parse_after(const char *text, struct ask_after **ret, size_t *ret_count, struct error *err);
const char *after_kind_name(enum after_kind kind);

/* "USR1@60", "SIGUSR1@2m" or "USR1": the signal, and how long before the end it comes. */
int parse_warn_signal(const char *text, int *ret_signal, int64_t *ret_before_ms, struct error *err);

/* True when the list names this exit code. */
bool ask_retries_on(const struct job_ask *ask, int32_t exit_code);
