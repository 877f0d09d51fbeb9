/* SPDX-License-Identifier: MIT */
/*
 * The controller's core: jobs, queue, nodes, and the reactions to messages. It uses no socket, file, thread
 * or clock: every input includes the time, and every output is a call of struct core_effects. A turn of the
 * event loop consists of any number of inputs followed by core_turn(), which runs the scheduler and passes
 * one batch to the store.
 *
 * Durability rule: everything that would reveal a change (a reply, a frame that acts on it, an event) is
 * deferred until the batch with the change is durable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "controller/core/gpu.h"
#include "controller/core/partition.h"
#include "controller/core/rights.h"
#include "job/cluster_change.h"
#include "job/idle.h"
#include "job/job.h"
#include "sched/why.h"
#include "store/store.h"
#include "wire/message.h"

struct core;

/* The API token that identified a caller, or what limits a command in a job like one. */
struct identity_token {
    uint64_t id;         // 0: none; JOB_TOKEN and the job's number: a command in that job
    unsigned scopes;     // SCOPE_ bits
    uint64_t max_gpu_ms; // GPU time that its jobs may use together; 0: unlimited
    int64_t expires_ms;  // wall clock
};

/* The caller, as identified by the kernel or a verified token, never by fields of a request. */
struct identity {
    bool is_known;
    uint32_t uid, gid;
    enum role role;     // root and the user mgpud runs as are administrators
    bool is_guest;      // takes GPUs for processes from a mgpud without root, and does nothing else there
    bool may_raise;     // its priorities count against the jobs of all users, regardless of role
    uint64_t first_job; // earlier jobs of this uid belong to its former user, see core_first_own()
    struct identity_token token;
};

/* The result of a request. `code` is 0, or a negative errno with a sentence in `err`. */
struct core_answer {
    int code;
    struct error err;
    uint64_t job;     // the job or reservation concerned
    uint32_t step;    // of the job that it is about
    bool is_repeated; // submit: this key was used before; `job` is the existing job
};

struct core_effects {
    void *arg;
    void (*commit)(void *arg, struct store_batch *batch);
    void (*send)(void *arg, uint32_t link, const struct record_type *type, const void *message);
    void (*close_link)(void *arg, uint32_t link); // soon; anything still received on it is ignored
    void (*reply)(void *arg, void *request, const struct core_answer *answer);
    void (*publish)(void *arg, const struct job_event *event, const struct job *job);
    void (*fetch_spec)(void *arg, uint64_t job); // answered by core_on_spec()
    void (*fetch_end)(void *arg, uint64_t job);  // for a job no longer in memory; answered by core_on_end()
    void (*arm)(void *arg,
        int64_t boot_ms); // one timer: call core_timer() at that time; replaces the previous setting
    uint64_t (*random)(void *arg);
    /* The job in the API's form, as text that the caller frees; NULL: notifications are sent without it. */
    char *(*describe)(void *arg, const struct job *job);
    /* The name of a user on this machine, valid until the next call; NULL if it has none. May be NULL: nodes
     * are then sent no names. */
    const char *(*user_name)(void *arg, uint32_t uid);
    /* The group whose limits and shares count for new jobs of a user whose process has the group `gid`. May
     * be NULL: that group. */
    uint32_t (*group_of)(void *arg, uint32_t uid, uint32_t gid);
};

/* The hint for callers whose role does not suffice. */
#define CORE_ROLES_HINT                                                                                      \
    "roles are set in mgpud's configuration (`roles`); root and the user mgpud runs as are administrators"

/* The hint for callers whose token does not permit it, with the scopes that would. */
#define CORE_SCOPES_HINT "create a token with this scope: mgpu token create --scope %s"

#define DEPARTMENT_NAME_MAX 64U

/* Limits and weight of a user or group that differ from the defaults, or a department, which has no limits.
 */
struct core_account {
    enum account_kind kind;
    uint32_t id;   // departments are numbered from 1
    double shares; // 0: not configured, as one
    struct account_limits limits;
    uint32_t department;            // of a group; 0: none
    char name[DEPARTMENT_NAME_MAX]; // of a department
};

/* Settings of notifications. */
struct notification_settings {
    bool is_off;
    uint32_t per_hour; // per user
    int64_t time_ms;   // timeout of one
};

/* Settings for unreachable nodes. */
struct loss_settings {
    int64_t timeout_ms; // after this silence a node is unreachable; 0: never
    int64_t lease_ms;   // an attempt that may run elsewhere ends after its node has had no contact for this
                        // time; 0: never
};

/* Settings for parked jobs. */
struct park_settings {
    uint64_t bytes_max; // GPU memory of parked jobs that a node keeps in its memory; 0: half of that memory
    int64_t timeout_ms; // to save a job's GPU memory
};

/* Which jobs start on the CPU while the GPUs that they get next are still used. */
enum early_mode {
    EARLY_NEVER,
    EARLY_ASKED, // those that request it
    EARLY_AUTO,  // also those whose command used its GPUs late in earlier runs (concerns/early_commands.c)
    EARLY_MODES,
};

struct early_settings {
    enum early_mode mode;
    int64_t within_ms;   // how long before its GPUs are probably free
    int64_t elements_ms; // how long before the end of an element the next one is committed; 0: after it
};

struct core_options {
    const char *boot_id;     // of this machine, so that time continues across restarts; NULL: unknown
    uint32_t admin_uid;      // in addition to root
    size_t queue_max;        // jobs of all users that are not done
    size_t user_queue_max;   // the same per user; 0: unlimited
    uint64_t user_day_bytes; // bytes of requests stored per user and day; 0: unlimited
    size_t recent_done_max;  // ended jobs kept in memory
    int64_t grace_ms;        // between SIGTERM and SIGKILL, unless a cancel specifies it
    int64_t
        start_patience_ms; // for which a job waits while its starts fail through no fault of it; 0: for ever
    int64_t max_time_ms;   // maximum time limit; 0: none
    bool are_priorities_of_all; // those above 0 that any user requests count against the jobs of all users
    int64_t default_time_ms;    // for jobs without a time limit; 0: none
    struct sched_settings sched;
    struct external_settings external;
    struct health_settings health;
    struct idle_policy idle;
    struct notification_settings notifications;
    struct loss_settings loss;
    struct park_settings park;
    struct early_settings early;
    uint64_t log_max;                    // bytes of each file of output that are kept; 0: all
    bool is_tmp_private;                 // each job has its own /tmp
    const struct core_account *accounts; // borrowed while the core exists
    size_t n_accounts;
    const struct core_partition *partitions; // likewise: controller/core/partition.h
    size_t n_partitions;
};

/* Changes the settings; limits apply from the next start on, running jobs are not affected. `admin_uid` is
 * kept. */
void core_configure(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct core_options *options);

struct core *core_new(const struct core_options *options, const struct core_effects *effects);
void core_free(struct core *core);

/* --- loading before the first turn, in this order --- */
void core_load_summary(struct core *core, const struct store_summary *summary);
#define CORE_OWNER     "owner"     // kind of the rows with the user names of uids
#define CORE_NODE_SIZE "node-size" // kind of the rows with the last known hardware of each node
/* Loads a row of cluster_state: -EBADMSG if it is invalid. */
int core_load_state(struct core *core, const char *kind, const char *key, const uint8_t *bytes, size_t length,
    struct error *err);
void core_load_job(struct core *core, struct job *job); // takes ownership
void core_load_key(struct core *core, uint64_t key_hash, uint64_t job, uint64_t spec_hash);
/* Ends loading: the scheduler gets running and waiting jobs. */
void core_load_end(struct core *core, int64_t boot_ms, int64_t wall_ms);
/* Instead, for a core that is only read: it decides nothing, and has nothing to store. */
void core_load_end_for_reading(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* --- requests: each is answered exactly once through reply(), unless core_forget() is called first --- */

/* How a job that is no longer in memory has ended. */
struct core_fact {
    uint64_t job;
    bool is_ok;       // exit status 0
    int64_t began_ms; // its start, or its end without one; 0: not known
};

struct core_facts {
    struct core_fact *items;
    size_t count;
    bool may_lack; // jobs without a fact are waited for until the store reports their end; otherwise they do
                   // not exist
};

/* Takes ownership of the spec. `facts`: for dependencies unknown to core_job(); may be NULL. -EINVAL, -E2BIG,
 * -ERANGE, -ELOOP: invalid request; -EPERM: priority; -EEXIST: key used for another spec; -EDQUOT: queue
 * full, or one of the user's quotas. */
void core_submit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request);

/* The same for an adoption (spec->ask.adopted_pid), after its node has identified the process. `gpus` 0:
 * those it is using. The job belongs to the caller. -ENOENT: no such process; -EPERM: it belongs to another
 * user; -EEXIST: already adopted; -EBUSY: it uses a GPU allocated to another job; -EHOSTDOWN. */
void core_adopt(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request);

/* -ENOENT, -EPERM, -EALREADY (already done). `grace_ms` < 0: the default. For a job that is already being
 * stopped, changes the grace. */
void core_cancel(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, void *request);

/* The same, but also kills the process of an adoption, if `who` may do that, instead of releasing it. Other
 * jobs are killed in any case. */
void core_cancel_process(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, void *request);

/* Only what waits: a job that has not been started, or the elements of an array that have not. -EALREADY:
 * nothing waits any more. */
void core_cancel_waiting(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, void *request);

/* For waiting jobs and those that go back to the queue. Holds are the owner's, or an administrator's if set
 * by another user; a release removes those the caller may remove. -ENOENT, -EPERM, -EALREADY (not waiting any
 * more). Idempotent. */
void core_hold(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    bool is_release, void *request);

/*
 * For running jobs: a signal to all processes (SIGSTOP and SIGCONT are core_suspend), suspend and continue,
 * and requeue to the end of the queue, where it waits until it is released if `is_held`. For an array,
 * applies to the elements for which it is possible. -ENOENT, -EPERM, -EINVAL (an adoption), -EALREADY (not
 * running), -EHOSTDOWN (its node is not connected: signals are not kept).
 */
void core_signal(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int signal, uint32_t scope, void *request);
void core_suspend(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, bool is_continue, void *request);
void core_requeue(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, bool is_held, void *request); // `grace_ms` < 0: the default

/*
 * Parks a running job: saves its GPU memory, stops it, and gives its GPUs to other jobs. Answered when that
 * is requested; the result is an event (`parked`, or `unparked` with the reason). `for_ms`: it returns by
 * itself after this time; 0: it does not. core_unpark returns it as soon as its GPUs are free.
 * Errors as for core_signal; also -EINVAL: this job, or its node, cannot do that.
 */
void core_park(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    int64_t for_ms, void *request);
void core_unpark(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, void *request);

/* Replaces the request of a queued job, or the time limit of a running one; `name` NULL: unchanged. Errors as
 * for core_hold and core_submit. */
void core_edit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    const struct job_ask *ask, const char *name, const struct core_facts *facts, void *request);

/* Asks the node of an element that waits behind another one for it (job/behind.h), because `who` wants to
 * change it. True: the caller waits for the outcome with core_wait_outcome(), and then has some time to
 * change it before it starts again. False: it is not behind another, may not be changed by `who`, or cannot
 * be asked for now. */
bool core_take_back(
    struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job);

/* The job of this element: 0 if there is none with this index (in memory). With `is_split`, a waiting element
 * first becomes a separate job; otherwise *ret_waits tells that it is still part of the array. */
uint64_t core_element(struct core *core, int64_t boot_ms, int64_t wall_ms, uint64_t array, uint32_t index,
    bool is_split, bool *ret_waits);

/* --- administration: -EPERM, -ENOENT, -EINVAL, -EBUSY, -ERANGE, answered like requests --- */

enum gpu_action {
    GPU_ACTION_RESUME,
    GPU_ACTION_PAUSE,   // no new job starts on it
    GPU_ACTION_RELEASE, // mgpu closes it too; refused while a job uses it
};

/* `gpus`: "node:0", or "0" for the only node. `until_ms` 0: until resumed. */
void core_pause(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *reason, int64_t until_ms, enum gpu_action action, void *request);
void core_drain(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const char *reason, int64_t until_ms, bool is_resume, void *request);

/* Sets the policy for external processes on these GPUs: an external_policy by name, or "default". */
void core_set_policy(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *policy, void *request);

/* `asked`: gpus or gpu_ids, users (uids), from_ms (0: now), until_ms, text (its name). The answer's `job` is
 * the reservation. */
void core_reserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct cluster_change *asked, void *request);
void core_unreserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t reservation, void *request);

/* An administrator has confirmed that this node is off, or that nothing of mgpu runs on it: its attempts end
 * (END_NODE_LOST). It stays drained until core_drain() resumes it. -EISCONN: it is up. */
void core_fence(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const char *reason, void *request);

/* A node has joined (CHANGE_NODE_JOIN), which is recorded only, or was removed (CHANGE_NODE_FORGET): no
 * request can use it until it reports again. `uid` requested it. */
void core_note_node(struct core *core, int64_t boot_ms, int64_t wall_ms, enum change_kind kind, uint32_t uid,
    const char *name);

const struct sched_reservation *core_reservations(const struct core *core, size_t *ret_count);
/* The GPU as "node:0"; the caller frees it. */
char *core_gpu_name(const struct core *core, const struct alloc_gpu *gpu);
/* GPUs as "node:0-2,5;other:0", in their order; NULL for none. The caller frees it. */
char *core_gpu_list(const struct core *core, const struct alloc_gpu *gpus, size_t count);

/* Answers when the job is in one of the states (1U << JOB_DONE, ...). */
void core_wait(struct core *core, uint64_t job, uint32_t states, void *request);

/* The same for an element that is still part of its array: the answer's `job` is the resulting job, or the
 * array if that has ended without it. */
void core_wait_element(struct core *core, uint64_t array, uint32_t index, uint32_t states, void *request);
/* The same, or when its enum idle_level differs. */
void core_wait_idle(struct core *core, uint64_t job, uint32_t states, uint32_t idle_level, void *request);

/* Answers when an element that is asked back has begun, or has been given back, or its node is disconnected.
 */
void core_wait_outcome(struct core *core, uint64_t job, void *request);

struct job_step;

/* Begins a step of a running job as `asked` says (key, name, CPUs, memory, nodes with tasks and GPUs), which
 * is copied. Answers when it runs, with its number; -EOVERFLOW: the job is too small for it. The request is
 * the step's client: when it is forgotten and no other follows within some seconds, the step ends. A request
 * with the same key follows; `is_resumed`: it is refused when that step has ended. */
void core_step_begin(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *asked, bool is_resumed, void *request);

/* What the tasks of the running step `usage->id` have used so far. It is not durable. -EALREADY: the step
 * does not run. */
int core_step_usage(struct core *core, const struct identity *who, uint64_t job, const struct job_step *usage,
    struct error *err);

/* The step `how->id` has ended with this end, exit code, signal and usage. -EALREADY: it does not run. */
void core_step_end(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *how, void *request);

/* A running step, NULL: there is none. */
const struct job_step *core_step(const struct core *core, uint64_t job, uint32_t id);

/* Answers when everything applied so far is durable, so that a reader never sees a change that a crash could
 * undo. */
void core_barrier(struct core *core, void *request);

/* The client has left: no reply() for this request any more. No effect if it was answered. */
void core_forget(struct core *core, void *request);

/* --- nodes --- */

/* HELLO on a link. -EPROTO, -EEXIST (a node with this name is connected): the caller closes the link. */
int core_link_up(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link,
    const struct message_hello *hello, struct error *err);
/* Sets the address at which other nodes reach the node of this link, and the controller's address as that
 * node sees it (NULL: unknown); sent to the ranks of jobs. Without it, they use the names of nodes. A port
 * (10.0.0.1:55804, [fd00::1]:55804) is removed. */
void core_set_address(struct core *core, uint32_t link, const char *address, const char *here);
void core_link_down(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link);
/* Any later message; one the agent may not send is refused with -EPROTO, and the caller closes the link. */
int core_link_message(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link, uint16_t id,
    const void *message, struct error *err);

/* --- results of effects --- */
void core_on_durable(struct core *core, uint64_t batch);
void core_on_spec(struct core *core, uint64_t job, struct spec_bytes *spec); // drops it; NULL: no such job
void core_on_end(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct core_fact *fact);
void core_timer(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* End of a turn: runs the scheduler if anything changed, and passes the batch to the store if none is in
 * flight. */
void core_turn(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* --- queries, for the API; pointers are valid until the next input --- */
/* The core's time, which those of events are in; after the wall clock was set it differs from that. */
int64_t core_now_ms(const struct core *core, int64_t wall_ms);
const struct job *core_job(const struct core *core, uint64_t id);
void core_each_job(const struct core *core, void (*visit)(void *arg, const struct job *job), void *arg);
/* The same for at most `max` jobs with higher ids than `id`; the id of the last one, 0: there are none. */
uint64_t core_each_job_after(const struct core *core, uint64_t id, size_t max,
    void (*visit)(void *arg, const struct job *job), void *arg);
/* The waiting jobs that no rule keeps out of the queue, next in line first; `uid` NULL: of all users. Ends
 * when `visit` returns false. */
void core_each_in_line(
    const struct core *core, const uint32_t *uid, bool (*visit)(void *arg, const struct job *job), void *arg);
/* What the core knows of a job besides its record is found once, with core_find() (core/tables.h), and then
 * read. */
struct core_entry;
/* Its resource usage: while it runs, the last report of its agent; afterwards its record. NULL: not measured
 * yet. */
const struct job_usage *core_usage(const struct core_entry *entry);
/* When a job that is saving its work to be requeued is killed at the latest; 0: it is not such a job. */
int64_t core_checkpoint_until(const struct core_entry *entry);
/* Why it has been starting or stopping for unusually long: `text`, or NULL if it has not. */
const char *core_delay(
    const struct core *core, int64_t wall_ms, const struct core_entry *entry, char *text, size_t size);
/* Its ranks in order, while an attempt on several nodes is active; else NULL. The caller frees the array, the
 * texts are borrowed. */
struct json_rank *core_ranks_list(const struct core_entry *entry);
/* The log of this rank, active or ended; NULL: none yet. */
const char *core_log_path(const struct core *core, const struct job *job, uint32_t rank);
/* How long it has used none of its GPUs; 0: in use, not running, or unknown. */
int64_t core_idle_ms(const struct core_entry *entry);
/* The same for one of its GPUs, regardless of the others and of its CPUs. */
int64_t core_gpu_idle_ms(const struct core_entry *entry, const char *uuid);
/* The idle time after which it is ended; 0: never. */
int64_t core_idle_end_ms(const struct core *core, const struct job *job);
/* True if the site's settings mark this GPU as wasted by this job. */
bool core_gpu_is_wasted(const struct core *core, const struct core_entry *entry, const char *uuid);
size_t core_queue_position(const struct core *core, uint64_t id); // 1 is next; 0: not queued
/* The first reason why a queued job waits: its code, and a sentence in `text`; "" if there is none. */
const char *core_wait_reason(
    const struct core *core, int64_t wall_ms, const struct core_entry *entry, char *text, size_t size);

/* A number that changes with every input; 0: in the middle of one. */
int64_t core_version(const struct core *core);
/* For a job that is behind another one: that it waits for the end of that one. False: it is not. */
bool core_why_behind(const struct core *core, int64_t wall_ms, const struct job *job, struct why *ret);
/* All reasons why it waits, in parts: see why_begin(). NULL if it is not queued. */
struct why_run *core_why_begin(const struct core *core, int64_t wall_ms, uint64_t job);
bool core_why_advance(struct why_run *run, size_t steps);
void core_why_end(struct why_run *run, struct why *ret);
/* The same for a job that does not exist yet. Errors as for core_submit. */
int core_why_not_yet(const struct core *core, int64_t wall_ms, const struct identity *who,
    const struct job_spec *spec, const struct core_facts *facts, struct why *ret, struct error *err);
/* The expected and the latest start of a queued job (TIME_NEVER: unknown), from a forecast up to two seconds
 * old that covers the first thousand jobs. In a cluster of many nodes that forecast is not made here:
 * core_advance_forecasts() makes it in parts, as forecast_advance(); true: there is one that is new enough.
 */
bool core_advance_forecasts(struct core *core, int64_t wall_ms, size_t steps);

/* How many have been made. One that was completed after a request came is new enough for it, even if it is
 * not for a later one: otherwise requests that come all the time would each have to make their own. */
uint64_t core_forecast_count(const struct core *core);
void core_eta(struct core *core, int64_t wall_ms, uint64_t job, int64_t *ret_eta_ms, int64_t *ret_latest_ms);

/* When a running job is expected to end, or a queued one that starts at `eta_ms` (TIME_NEVER: unknown).
 * TIME_NEVER: unknown. */
/* When a job that the scheduler has parked by its own rule has its GPUs again at the latest; TIME_NEVER: it
 * has not.
 */
int64_t core_latest_return(const struct core *core, uint64_t job);
int64_t core_expected_end(const struct core *core, int64_t wall_ms, uint64_t job, int64_t eta_ms);

/* The notifications of this job that are still in memory: completed ones, then pending ones. */
struct notification;
void core_each_notification(const struct core *core, uint64_t job,
    void (*visit)(void *arg, const struct notification *notification, bool is_sending), void *arg);

/* The scheduler, for reading. */
struct sched *core_sched(const struct core *core);
/* A hash of the job's command: jobs of a user with the same hash take similar times. */
uint64_t core_command_hash(const struct job *job);
/* Whether a job that waits starts early when it is next for its GPUs, and why, as "yes, ..." or "no, ...";
 * NULL: nothing is known or asked. The caller frees it. */
char *core_describe_early(const struct core *core, const struct core_entry *entry);
/* Policy, placement etc. as lines "key=value", then the settings of single users and groups; the caller frees
 * it. */
char *core_settings_text(const struct core *core);

struct core_node {
    char *name;
    bool is_up;
    bool is_unreachable;            // it has been silent for too long
    int64_t last_contact_ms;        // boot clock: its last message, or the controller's start
    int64_t last_contact_wall_ms;   // the same on the wall clock, for display
    int64_t left_ms;                // boot clock: its last message before the HELLO of the current link
    int64_t acked_ms;               // boot clock: last acknowledgement sent to it
    struct known_attempt *orphaned; // orphaned attempts: no job starts there until they have ended
    size_t n_orphaned;
    uint32_t link;              // valid while it is up
    struct message_hello hello; // its last HELLO, with gpus updated by GPUS
    char *boot_before;          // boot id before the machine's last restart; NULL: unknown
    int64_t restarted_ms;       // boot clock: when that restart was noticed
    struct cluster_change
        *described;        // its last description for the scheduler, which borrows; NULL while it is down
    struct strings models; // of its GPUs, each once
    struct core_gpu *gpus; // in the order in which they were first seen
    size_t n_gpus;
    uint32_t *reported; // for each GPU of the last report its position in `gpus`; see gpu.c
    size_t n_reported;
    struct cluster_change *mark; // drained or fenced by an administrator; NULL: not
    uint32_t n_sending;          // notifications being delivered by it
    uint64_t held_in;      // the batch with which it was drained because the store is an older copy; 0: none
    bool is_behind_gap;    // it has not stored an epoch yet of the time since the store was restored
    bool is_awaited;       // it had jobs when the controller started
    char *address;         // its address for other nodes; NULL: its name
    char *here;            // the controller's address as it sees it; NULL: unknown
    int64_t health_due_ms; // when the health of its GPUs must be evaluated without a new sample
};
/* True if an attempt may be running there: its end is not proven. */
bool core_has_attempts_on(const struct core *core, const char *node);
void core_each_node(
    const struct core *core, void (*visit)(void *arg, const struct core_node *node), void *arg);
/* The nodes by number, from 0 in the order in which they were first seen; NULL: there are not so many. None
 * ever goes. */
const struct core_node *core_node_at(const struct core *core, size_t number);
const struct core_node *core_node_named(const struct core *core, const char *name); // NULL: unknown node
/* The jobs on this GPU; writes at most `max` and returns the total number. */
size_t core_gpu_jobs(const struct core *core, const char *node, uint32_t gpu_index,
    const struct core_entry **entries, size_t max);

/* The jobs that other jobs wait for, as in "3,17"; the caller frees it. */
char *core_awaited_jobs(const struct core *core);
/* After loading: the latest time of a job, 0 if there are none. */
int64_t core_newest_ms(const struct core *core);
bool core_is_store_old(const struct core *core); // an older copy: every node is held
/* The highest id assigned; that job may no longer be in memory. */
uint64_t core_last_job(const struct core *core);
uint64_t core_last_event(const struct core *core); // highest durable event seq
/* The job, if this is its current attempt, with this token, which runs on that node with that rank; else
 * NULL. */
const struct job *core_job_at(
    const struct core *core, const char *node, const struct spool_id *id, uint64_t token);
/* The user name of the job's uid at its submit; NULL: unknown. */
const char *core_owner_name(const struct core *core, const struct job *job);
/* The GPU time used so far by the jobs of a token whose GPU time is limited; 0 for other tokens. */
uint64_t core_token_used_ms(const struct core *core, int64_t wall_ms, uint64_t token);
/* The first job of this uid that belongs to its current user: 0 if all do, UINT64_MAX if none does. */
uint64_t core_first_own(struct core *core, uint32_t uid);

static inline bool core_owns(const struct identity *who, const struct job *job)
{
    return who->is_known && who->uid == job->uid && job_submitted_as(job) >= who->first_job;
}

/* True if the caller may do this, with this job if it concerns one: by its role, and by the scopes of its
 * token. */
bool core_may(const struct identity *who, enum action action, const struct job *job);
/* The sentence for a caller whose scopes do not include the lowest of these. */
int core_refuse_scope(const struct identity *who, unsigned needed, struct error *err);
/* True, with a sentence, if only the scopes of the caller's token do not permit this. */
bool core_token_lacks(
    const struct identity *who, enum action action, const struct job *job, struct error *err);
