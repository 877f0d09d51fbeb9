/* SPDX-License-Identifier: MIT */
/* The resource request of a job: part of its spec, kept with every job, and editable while the job waits. */
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
#define ASK_PID_MAX       0x3fffffU   // the largest pid of Linux
#define ASK_CPUS_MAX      65536U      // whole CPUs of one node
#define ASK_MEMORY_MIN    (16U << 20) // bytes; commands do not start with less
#define ASK_LOG_MIN       (64U << 10) // of --log-max
#define ASK_IDLE_MIN_MS   1000        // GPUs are sampled once a second
#define ASK_AFTER_MAX     1000U       // dependencies of one job
#define ASK_REQUEUES      10U         // default limit of requeues after lost nodes
#define ASK_REQUEUES_MAX  1000U
#define ASK_RETRY_MAX     100U
#define ASK_NOTIFY_MAX    16384U // bytes of all notification targets
#define ASK_WARN_MAX      64U
#define ASK_SLURM_MAX     8192U // bytes of all notes of Slurm's commands
#define ASK_WARN_MS       60000 // default of warn_signal without a time
#define ASK_GRACE_MAX_MS  (24LL * 3600 * 1000)
#define ASK_GRACE_DEFAULT "30s" // default of mgpud's --grace; a string, for help and the table of settings
#define ASK_YEAR_9999_MS  253402300799999LL // the last millisecond that RFC 3339 can represent

struct job_ask {
    char *gpu_ids;             // "0,2-3" or "node1:0,1;node2:0": exactly these, in this order; NULL: any
    char *gpu_model;           // "h200", "a100|h100": only such models; NULL: any
    char *gpu_allow;           // "0-3,5": only GPUs with these indexes; NULL: any
    char *after;               // "41:ok,42:any": dependencies; NULL: none
    char *partition;           // "debug", or "a,b": its node is in one of these; NULL: the default one
    char *nodelist;            // "gpu1,gpu3": only these nodes; NULL: any
    char *exclude;             // "gpu2": not these nodes; NULL: none
    char *array;               // "0-99:2%8": one element per index, at most 8 at a time; NULL: a single job
    uint64_t gpu_mem;          // bytes needed on each GPU, which may then be shared; 0: not requested
    uint64_t memory;           // host memory on each node, bytes; 0: not requested
    int64_t time_limit_ms;     // 0: none
    bool no_time_limit;        // no default in place of a missing limit; a maximum of the site applies
    int64_t begin_ms;          // not before, wall clock; 0: at once
    int64_t deadline_ms;       // latest start, wall clock; 0: none
    uint32_t gpus;             // of the whole job
    uint32_t gpu_share;        // thousandths of its one GPU; 0: no fraction requested
    uint32_t cpu_milli;        // thousandths of a CPU on each node; 0: not requested
    uint32_t nodes;            // exact number; 0: any
    uint32_t gpus_per_node;    // 0: any distribution
    int32_t priority;          // higher runs first
    bool own_priority;         // a priority above 0 orders only its owner's jobs
    bool exclusive;            // its nodes run no other job
    bool preemptible;          // may be requeued when other jobs need its GPUs
    bool cancel_if_never;      // ends when its dependency can never be satisfied
    bool idle_ok;              // may leave its GPUs unused
    bool park_on_timeout;      // parked when it reaches its time limit, and runs again later
    bool park_on_preempt;      // parked instead of requeued when other jobs need its GPUs
    bool park_anywhere;        // a parked one may return on other GPUs of its node
    bool no_park;              // never parked: not at a request, a preemption or its time limit
    bool no_restart;           // never starts where it might have to start again (sched/sched_guest.c)
    bool early;                // starts on the CPU while the GPUs that it gets next are still used
    bool no_early;             // never, whatever the site's setting is
    bool private_tmp;          // /tmp, /var/tmp, /dev/shm and System V IPC are its own: base/private_places.h
    uint64_t log_max;          // bytes of each file of output that are kept; 0: all
    bool split_log;            // standard error has its own log: launch_error_log()
    bool requeue_on_timeout;   // requeued when it reaches its time limit
    bool requeue_on_node_lost; // requeued when its node is lost or rebooted
    int64_t idle_timeout_ms;   // ends after its GPUs were unused for this time; 0: the site's default
    int64_t tty_idle_ms;       // ends after no input or output on its terminal for this time; 0: never
    int64_t grace_ms;          // between SIGTERM and SIGKILL; 0: the site's default
    char *warn_signal;         // "USR1@60": signal and seconds before the time limit; NULL: none
    char *retry_on;            // "75,137": exit codes that cause a retry; NULL: none
    char *retry_oom;           // "x1.5,max=80G": retried with more GPU memory; NULL: never (job/gpu_oom.h)
    char *share;               // "auto", "mps": how its share of a GPU is enforced; NULL: not (job/share.h)
    bool checkpoint;           // saves its work when asked to, and reports CHECKPOINTED
    uint32_t max_requeues;     // at time limits and after losses; 0: unlimited, and ASK_REQUEUES
    struct strings notify;     // notification targets: job/notify.h; may be empty
    char *notify_on;           // events: "start,end"; NULL: its end
    struct strings slurm;      // NAME=value: options of Slurm's commands, kept for display; job/slurm.h
    uint32_t retry;            // retries after failures not caused by the command, or matching `retry_on`
    /* An adoption: no command is started; the GPUs are reserved while this process lives. */
    uint32_t adopted_pid;   // as its node's agent sees it; 0: no adoption
    uint64_t adopted_start; // its start time; a pid alone is not unique
    char *adopted_boot;     // the boot of the node that pid and start time belong to
};

/* How an answer shows a field. */
#define ASK_SHOWN                .is_hidden = false  // null if not requested
#define ASK_SHOWN_WITH_ZERO      .has_zero = true    // 0 is a value
#define ASK_SHOWN_ALSO_AS(name_) .old_name = (name_) // also under its former name
#define ASK_HIDDEN               .is_hidden = true

/*
 * The rows of these fields: X(base, tag, kind, member, name, limit, help, display in answers). Records with a
 * job_ask at `base` contain them all, with tags 7 to 10 and from 32 on. The name is the API's key in requests
 * and answers. The help text is used by the API's documentation, the options of run and submit, and the keys
 * of edit.
 */
#define JOB_ASK_TABLE(X, base)                                                                               \
    X(base, 7, RECORD_U32, gpus, gpus, 0, "number of GPUs", ASK_SHOWN_WITH_ZERO),                            \
        X(base, 8, RECORD_STRING, gpu_ids, gpu_ids, ASK_TEXT_MAX,                                            \
            "exactly these GPUs, in this order: 0,2-3 or gpu1:0,1;gpu2:0", ASK_SHOWN),                       \
        X(base, 9, RECORD_SIZE, gpu_mem, gpu_mem, 0,                                                         \
            "memory needed on each GPU, which can then be shared: 8G", ASK_SHOWN),                           \
        X(base, 10, RECORD_I32, priority, priority, 0, "priority, higher runs first (0)",                    \
            ASK_SHOWN_WITH_ZERO),                                                                            \
        X(base, 32, RECORD_U32, gpu_share, gpu_share, 0, "thousandths of a GPU, if it shares one",           \
            ASK_SHOWN),                                                                                      \
        X(base, 33, RECORD_STRING, gpu_model, gpu_model, ASK_TEXT_MAX,                                       \
            "only GPUs of this model: h200, or a100|h100", ASK_SHOWN),                                       \
        X(base, 34, RECORD_STRING, gpu_allow, gpu_allow, ASK_TEXT_MAX,                                       \
            "only GPUs with these numbers: 0-3,5", ASK_SHOWN),                                               \
        X(base, 35, RECORD_MILLI, cpu_milli, cpus, 0, "CPUs per node: 8, 2.5", ASK_SHOWN),                   \
        X(base, 36, RECORD_SIZE, memory, memory, 0, "host memory per node: 64G", ASK_SHOWN),                 \
        X(base, 37, RECORD_U32, nodes, nodes, 0, "exact number of nodes (default: as few as possible)",      \
            ASK_SHOWN),                                                                                      \
        X(base, 38, RECORD_U32, gpus_per_node, gpus_per_node, 0, "GPUs per node", ASK_SHOWN),                \
        X(base, 39, RECORD_DURATION, time_limit_ms, time_limit, 0,                                           \
            "time limit: 90m, 4h, 2-00:00:00; plain = seconds", ASK_SHOWN_ALSO_AS("time_limit_s")),          \
        X(base, 393, RECORD_BOOL, no_time_limit, no_time_limit, 0,                                           \
            "no time limit in place of the default one of the partition or the site", ASK_SHOWN),            \
        X(base, 40, RECORD_TIME, begin_ms, begin, 0, "earliest start", ASK_SHOWN_ALSO_AS("begin_at")),       \
        X(base, 41, RECORD_TIME, deadline_ms, deadline, 0, "give up if not started by then",                 \
            ASK_SHOWN_ALSO_AS("deadline_at")),                                                               \
        X(base, 42, RECORD_STRING, after, after, ASK_AFTER_TEXT_MAX,                                         \
            "jobs it depends on, each with ok, any, fail, start, start+10m or corr", ASK_SHOWN),             \
        X(base, 43, RECORD_STRING, array, array, ASK_TEXT_MAX,                                               \
            "array of jobs: 0-99, 0-99:2, at most 8 at a time: 0-99%8", ASK_SHOWN),                          \
        X(base, 44, RECORD_BOOL, preemptible, preemptible, 0, "use idle resources, and yield to other jobs", \
            ASK_SHOWN),                                                                                      \
        X(base, 45, RECORD_BOOL, cancel_if_never, cancel_if_never, 0,                                        \
            "end the job if its dependency can never be satisfied", ASK_SHOWN),                              \
        X(base, 46, RECORD_DURATION, idle_timeout_ms, idle_timeout, 0,                                       \
            "end the job if it leaves its GPUs unused for this long: 30m",                                   \
            ASK_SHOWN_ALSO_AS("idle_timeout_s")),                                                            \
        X(base, 47, RECORD_BOOL, idle_ok, idle_ok, 0, "exempt from idle handling: no mark, no end",          \
            ASK_SHOWN),                                                                                      \
        X(base, 50, RECORD_U32, adopted_pid, adopted_pid, 0,                                                 \
            "process id of the [adopted process](#adopted-processes)", ASK_SHOWN),                           \
        X(base, 51, RECORD_U64, adopted_start, adopted_start, 0, "start time of the adopted process",        \
            ASK_HIDDEN),                                                                                     \
        X(base, 52, RECORD_STRING, adopted_boot, adopted_boot, ASK_BOOT_MAX,                                 \
            "boot id of the adopted process's node", ASK_HIDDEN),                                            \
        X(base, 60, RECORD_DURATION, grace_ms, grace, 0,                                                     \
            "time between SIGTERM and SIGKILL when it is ended (mgpud's: " ASK_GRACE_DEFAULT ")",            \
            ASK_SHOWN_ALSO_AS("grace_s")),                                                                   \
        X(base, 61, RECORD_STRING, warn_signal, warn_signal, ASK_WARN_MAX,                                   \
            "signal before the time limit: USR1@60 (60s)", ASK_SHOWN),                                       \
        X(base, 62, RECORD_BOOL, requeue_on_timeout, requeue_on_timeout, 0, "requeue at the time limit",     \
            ASK_SHOWN),                                                                                      \
        X(base, 63, RECORD_U32, max_requeues, max_requeues, 0,                                               \
            "maximum requeues at the time limit (unlimited), and after lost nodes (10)", ASK_SHOWN),         \
        X(base, 64, RECORD_U32, retry, retry, 0, "retry if the start, the node or a GPU failed", ASK_SHOWN), \
        X(base, 65, RECORD_STRING, retry_on, retry_on, ASK_TEXT_MAX,                                         \
            "also retry after these exit codes: 75,137", ASK_SHOWN),                                         \
        X(base, 94, RECORD_STRING, retry_oom, retry_oom, ASK_TEXT_MAX,                                       \
            "retry a share of a GPU with more GPU memory if it ran out: x1.5,max=40G", ASK_SHOWN),           \
        X(base, 330, RECORD_STRING, share, share, ASK_TEXT_MAX,                                              \
            "enforce its share of a GPU: auto, dmem, mps, time or none (none)", ASK_SHOWN),                  \
        X(base, 70, RECORD_BOOL, checkpoint, checkpoint, 0,                                                  \
            "the job saves its work on request, and reports CHECKPOINTED", ASK_SHOWN),                       \
        X(base, 71, RECORD_STRINGS, notify, notify, ASK_NOTIFY_MAX,                                          \
            "notify at the end: mail, mail:ADDRESS, a URL, a command; can be repeated", ASK_HIDDEN),         \
        X(base, 72, RECORD_STRING, notify_on, notify_on, ASK_TEXT_MAX,                                       \
            "events to notify of: start,end,fail,requeue,preempt,park,unpark (end)", ASK_HIDDEN),            \
        X(base, 73, RECORD_DURATION, tty_idle_ms, tty_idle, 0,                                               \
            "end the job if its terminal is unused for this long, or none",                                  \
            ASK_SHOWN_ALSO_AS("tty_idle_s")),                                                                \
        X(base, 90, RECORD_STRINGS, slurm, slurm, ASK_SLURM_MAX,                                             \
            "[notes of the commands of Slurm](slurm.md): ntasks=4, account=lab", ASK_SHOWN),                 \
        X(base, 80, RECORD_BOOL, requeue_on_node_lost, requeue_on_node_lost, 0,                              \
            "requeue if the node is lost", ASK_SHOWN),                                                       \
        X(base, 343, RECORD_BOOL, park_on_timeout, park_on_timeout, 0, "park the job at its time limit",     \
            ASK_SHOWN),                                                                                      \
        X(base, 344, RECORD_BOOL, park_on_preempt, park_on_preempt, 0,                                       \
            "park the job when it is preempted, so that it keeps its work", ASK_SHOWN),                      \
        X(base, 345, RECORD_BOOL, park_anywhere, park_anywhere, 0,                                           \
            "let the parked job return on other GPUs of its node", ASK_SHOWN),                               \
        X(base, 395, RECORD_BOOL, no_park, no_park, 0, "never park the job, whoever requests it",            \
            ASK_SHOWN),                                                                                      \
        X(base, 399, RECORD_BOOL, no_restart, no_restart, 0,                                                 \
            "never start on GPUs owed to a parked job, where it might have to start again", ASK_SHOWN),      \
        X(base, 398, RECORD_BOOL, early, early, 0,                                                           \
            "start on the CPU before its GPUs are free; opening one of them waits", ASK_SHOWN),              \
        X(base, 397, RECORD_BOOL, no_early, no_early, 0, "start only when its GPUs are free", ASK_SHOWN),    \
        X(base, 392, RECORD_BOOL, private_tmp, private_tmp, 0,                                               \
            "private /tmp, /var/tmp, /dev/shm and System V IPC, removed when the job ends", ASK_SHOWN),      \
        X(base, 394, RECORD_SIZE, log_max, log_max, 0,                                                       \
            "keep this much of the output, its beginning and its end: 100M", ASK_SHOWN),                     \
        X(base, 396, RECORD_BOOL, split_log, split_log, 0,                                                   \
            "standard error in a separate log, beside that of standard output", ASK_SHOWN),                  \
        X(base, 370, RECORD_STRING, partition, partition, ASK_TEXT_MAX,                                      \
            "partition: debug, or one of several: a,b", ASK_SHOWN),                                          \
        X(base, 380, RECORD_STRING, nodelist, nodelist, ASK_TEXT_MAX, "only nodes of this list: gpu1,gpu3",  \
            ASK_SHOWN),                                                                                      \
        X(base, 381, RECORD_STRING, exclude, exclude, ASK_TEXT_MAX, "no node of this list: gpu2,gpu4",       \
            ASK_SHOWN),                                                                                      \
        X(base, 371, RECORD_BOOL, exclusive, exclusive, 0, "no other job on its nodes", ASK_SHOWN),          \
        X(base, 81, RECORD_BOOL, own_priority, own_priority, 0, "the priority orders its owner's jobs only", \
            ASK_SHOWN)

#define JOB_ASK_FIELD(base_, tag_, kind_, member_, name_, limit_, help_, ...)                                \
    {                                                                                                        \
        .tag = (tag_), .kind = (kind_), .name = #name_,                                                      \
        .offset = (base_) + offsetof(struct job_ask, member_), .limit = (limit_), .help = ask_help_##name_,  \
        __VA_ARGS__                                                                                          \
    }
#define JOB_ASK_FIELDS(base) JOB_ASK_TABLE(JOB_ASK_FIELD, base)

/* ask_help_gpus ...: for tables that are initialized at compile time. */
#define ASK_HELP_NAME(base, tag, kind, member, name, ...) ask_help_##name[]
extern const char JOB_ASK_TABLE(ASK_HELP_NAME, 0);

#define ASK_AFTER_TEXT_MAX (ASK_AFTER_MAX * 27U) // 20 digits, ":start" or less, a comma

extern const struct record_type job_ask_record;

void job_ask_init(struct job_ask *ask); // one GPU, priority 0
void job_ask_clear(struct job_ask *ask);
void job_ask_copy(struct job_ask *to, const struct job_ask *from); // into an uninitialised one
bool job_ask_equal(const struct job_ask *a, const struct job_ask *b);

/* The part of its priority that counts against the jobs of all users, and the part that counts only among its
 * owner's jobs. */
static inline int32_t ask_priority_of_all(const struct job_ask *ask)
{
    return ask->own_priority && ask->priority > 0 ? 0 : ask->priority;
}

static inline int32_t ask_priority_of_own(const struct job_ask *ask)
{
    return ask->own_priority && ask->priority > 0 ? ask->priority : 0;
}

/* Of --log-max. `what` names it in the error. */
int ask_check_log_max(const char *what, uint64_t bytes, struct error *err);

/* Checks everything that needs neither the cluster nor the clock. Sets one sentence and often a hint. */
int job_ask_validate(const struct job_ask *ask, struct error *err);

/* A GPU selected by index. */
struct ask_gpu {
    char *node; // NULL: no node specified
    uint32_t index;
};

/* Parses "0,2-3" or "node1:0,1;node2:0" in the order written; either every GPU has a node or none. The caller
 * frees the list with ask_gpus_free. */
int parse_gpu_ids(const char *text, struct ask_gpu **ret, size_t *ret_count, struct error *err);
void ask_gpus_free(struct ask_gpu *gpus, size_t count);

/* The condition on the job that is waited for: on its end, or (AFTER_START) on its start. AFTER_CORR: an
 * element of an array waits for the element with its index in another array; for everything else it is
 * AFTER_OK. */
enum after_kind { AFTER_OK, AFTER_ANY, AFTER_FAIL, AFTER_START, AFTER_CORR, AFTER_KINDS };

struct ask_after {
    uint64_t job;
    enum after_kind kind;
    bool is_any;      // one of the list suffices; the same in all items
    int64_t delay_ms; // with AFTER_START: not before this time after the start
    int64_t due_ms;   // when that is; 0: it has not started. Set by those who know the job
};

/* Parses "41:ok,42,43:fail", or "41:ok?42:start+10m", of which one suffices; the default kind is ok.
 * "singleton" (job/after.h) names no job. The caller frees *ret. */
int parse_after(const char *text, struct ask_after **ret, size_t *ret_count, struct error *err);
/* Orders two struct ask_after by their jobs: for qsort and bsearch. */
int after_compare(const void *one, const void *other);
const char *after_kind_name(enum after_kind kind);
/* True if the end of a job satisfies the condition. */
bool after_comes_true(enum after_kind kind, bool is_ok);

/* Parses "USR1@60", "SIGUSR1@2m" or "USR1": the signal, and the time before the limit at which it is sent. */
int parse_warn_signal(const char *text, int *ret_signal, int64_t *ret_before_ms, struct error *err);

/* True if the list contains this exit code. */
bool ask_retries_on(const struct job_ask *ask, int32_t exit_code);
