/* SPDX-License-Identifier: MIT */
/*
 * The controller's core: jobs, queue, nodes and what follows from a message. It knows no socket, no file, no
 * thread and no clock: every input carries the time, every output goes through struct core_effects. One turn
 * of the event loop is any number of inputs followed by core_turn(), which schedules and hands one batch to
 * the store.
 *
 * The rule that makes acknowledgements true: whatever would let the outside know of a change (a reply, a
 * frame that acts on it, an event) waits in the batch until the batch is durable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "controller/core/gpu_watch.h"
#include "controller/core/rights.h"
#include "job/cluster_change.h"
#include "job/idle.h"
#include "job/job.h"
#include "sched/why.h"
#include "store/store.h"
#include "wire/message.h"

struct core;

/* Who asks. Made from the kernel's word or a verified token, never from a request's fields. */
struct identity {
    bool is_known;
    uint32_t uid, gid;
    enum role role;     // root and the user mgpud itself runs as are administrators
    bool may_raise;     // its priorities count before the jobs of all users, whatever the role
    uint64_t first_job; // earlier jobs of this number are those of its former user, see core_first_own()
};

/* What became of a request. `code` is 0 or a negative errno with a sentence in `err`. */
struct core_answer {
    int code;
    struct error err;
    uint64_t job;     // the job, or the reservation, that it is about
    uint32_t step;    // of the job that it is about
    bool is_repeated; // submit: this key was seen before; `job` is the one made then
};

struct core_effects {
    void *arg;
    void (*commit)(void *arg, struct store_batch *batch);
    void (*send)(void *arg, uint32_t link, const struct record_type *type, const void *message);
    void (*close_link)(void *arg, uint32_t link); // soon; nothing that still comes on it counts
    void (*reply)(void *arg, void *request, const struct core_answer *answer);
    void (*publish)(void *arg, const struct job_event *event, const struct job *job);
    void (*fetch_spec)(void *arg, uint64_t job); // core_on_spec() answers
    void (*fetch_end)(void *arg, uint64_t job); // of a job that is no longer in memory: core_on_end() answers
    void (*arm)(
        void *arg, int64_t boot_ms); // one timer: call core_timer() at that time; the last call counts
    uint64_t (*random)(void *arg);
    /* The job as the API shows it, as text that the caller frees; NULL: notifications go without it. */
    char *(*describe)(void *arg, const struct job *job);
    /* The name of a user on this machine, valid until the next call; NULL when there is none. May be NULL:
     * then nodes are told no names. */
    const char *(*user_name)(void *arg, uint32_t uid);
};

/* What to say to somebody whose role does not suffice. */
#define CORE_ROLES_HINT                                                                                      \
    "roles are set in mgpud's configuration (`roles`); root and the user mgpud runs as are administrators"

/* Limits and weight of one user or group that differ from the usual ones. */
struct core_account {
    bool is_group;
    uint32_t id;
    double shares;
    struct account_limits limits;
};

/* What jobs may tell people outside. */
struct notification_settings {
    bool is_off;
    uint32_t per_hour; // of one user
    int64_t time_ms;   // that one may take
};

/* When nothing is heard of a node. */
struct loss_settings {
    int64_t timeout_ms; // without a word: it is unreachable; 0: it never is
    int64_t
        lease_ms; // what may go on elsewhere is given up on a node that hears nothing for so long; 0: never
};

struct core_options {
    const char *boot_id;     // of this machine, so that time goes on over restarts; NULL: not known
    uint32_t admin_uid;      // besides root
    size_t queue_max;        // jobs not done, of all users
    size_t user_queue_max;   // the same of one user; 0: any number
    uint64_t user_day_bytes; // of requests that one user may have stored within a day; 0: any number
    size_t recent_done_max;  // ended jobs kept in memory
    int64_t grace_ms;        // between SIGTERM and SIGKILL when a cancel names none
    int64_t max_time_ms;     // the longest time limit; 0: any
    int64_t default_time_ms; // of jobs that ask for none; 0: none
    struct sched_settings sched;
    struct external_settings external;
    struct health_settings health;
    struct idle_policy idle;
    struct notification_settings notifications;
    struct loss_settings loss;
    const struct core_account *accounts; // the caller's, as long as the core lives
    size_t n_accounts;
};

/* Takes up other settings; limits hold from the next start on, what runs goes on. `admin_uid` stays. */
void core_configure(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct core_options *options);

struct core *core_new(const struct core_options *options, const struct core_effects *effects);
void core_free(struct core *core);

/* --- before the first turn: what the store knows, in this order --- */
void core_load_summary(struct core *core, const struct store_summary *summary);
#define CORE_OWNER     "owner"     // kind of the rows that say which users a number was
#define CORE_NODE_SIZE "node-size" // kind of the rows that say what each node had when it was last there
/* A row of cluster_state: -EBADMSG when it cannot be read. */
int core_load_state(struct core *core, const char *kind, const char *key, const uint8_t *bytes, size_t length,
    struct error *err);
void core_load_job(struct core *core, struct job *job); // takes it over
void core_load_key(struct core *core, uint64_t key_hash, uint64_t job, uint64_t spec_hash);
/* All is said: the scheduler takes up what ran and waited. */
void core_load_end(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* --- requests: each is answered exactly once through reply(), unless core_forget() came first --- */

/* How a job ended that is no longer in memory. */
struct core_fact {
    uint64_t job;
    bool is_ok; // exit status 0
};

struct core_facts {
    struct core_fact *items;
    size_t count;
    bool may_lack; // others are waited for until the store says how they ended; else they do not exist
};

/* Takes the spec over. `facts`: of the jobs it waits for, those that core_job() does not know; may be NULL.
 * -EINVAL, -E2BIG, -ERANGE, -ELOOP: bad request; -EPERM: priority; -EEXIST: key used for another spec;
 * -EDQUOT: queue full, or one of the user's quotas. */
void core_submit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request);

/* The same for an adoption (spec->ask.adopted_pid), once its node has said who the process is. `gpus` 0:
 * those that it is seen on. The job is its owner's. -ENOENT: there is no such process; -EPERM: it is
 * another's; -EEXIST: a job has it already; -EBUSY: it is on a GPU that was given to another job; -EHOSTDOWN.
 */
void core_adopt(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request);

/* -ENOENT, -EPERM, -EALREADY (already done). `grace_ms` < 0: the default. Of a job that is being stopped it
 * changes the grace. */
void core_cancel(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, void *request);

/* The same, and the process of an adoption is ended instead of let go, if `who` may do that. Others are ended
 * anyway. */
void core_cancel_process(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, void *request);

/* A hold is its owner's, or an administrator's when another gives it; a release takes away what the asker
 * may. -ENOENT, -EPERM, -EALREADY (it waits no more). Harmless when it is so already. */
void core_hold(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    bool is_release, void *request);

/*
 * What runs: a signal to all of it (SIGSTOP and SIGCONT are core_suspend), standing still and going on, and
 * back to the end of the queue. Of an array, the elements to which that can be done. -ENOENT, -EPERM, -EINVAL
 * (an adoption), -EALREADY (it does not run), -EHOSTDOWN (its node is away: a signal is not kept for later).
 */
void core_signal(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int signal, void *request);
void core_suspend(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, bool is_continue, void *request);
void core_requeue(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, void *request); // `grace_ms` < 0: the default

/* Replaces what a queued job asks for, or the time limit of a running one; `name` NULL: it stays. As
 * core_hold, and as core_submit. */
void core_edit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    const struct job_ask *ask, const char *name, const struct core_facts *facts, void *request);

/* The job of an element of this array: 0 when there is none of this index (any more, in memory). With
 * `is_split` one that waits becomes a job of its own first; else *ret_waits says that it is still a part of
 * the array. */
uint64_t core_element(struct core *core, int64_t boot_ms, int64_t wall_ms, uint64_t array, uint32_t index,
    bool is_split, bool *ret_waits);

/* --- administration: -EPERM, -ENOENT, -EINVAL, -EBUSY, -ERANGE, answered as requests are --- */

enum gpu_wish {
    GPU_WISH_RESUME,
    GPU_WISH_PAUSE,   // nothing new starts there
    GPU_WISH_RELEASE, // nor does mgpu have it open; refused while a job is there
};

/* `gpus`: "node:0", or "0" on the only node. `until_ms` 0: until it is taken back. */
void core_pause(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *reason, int64_t until_ms, enum gpu_wish wish, void *request);
void core_drain(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const char *reason, int64_t until_ms, bool is_resume, void *request);

/* What others on these GPUs mean: a external_policy by name, or "default". */
void core_set_policy(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *policy, void *request);

/* `wish`: gpus or gpu_ids, users (uids), from_ms (0: now), until_ms, text (its name). The answer's `job` is
 * the reservation. */
void core_reserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct cluster_change *wish, void *request);
void core_unreserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t reservation, void *request);

/* Somebody has made sure that this node is off, or that nothing of mgpu runs there: its attempts have ended
 * (END_NODE_LOST). It stays drained until core_drain() resumes it. -EISCONN: it is up. */
void core_fence(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const char *reason, void *request);

/* A remark on a node for those who follow the events, of which nothing follows here: CHANGE_NODE_JOIN or
 * CHANGE_NODE_FORGET, and who wished it. */
void core_note_node(struct core *core, int64_t boot_ms, int64_t wall_ms, enum change_kind kind, uint32_t uid,
    const char *name);

/* What an administrator said of this GPU (uuid) or this node (uuid NULL), NULL: nothing. */
const struct cluster_change *core_mark(const struct core *core, const char *node, const char *uuid);

const struct sched_reservation *core_reservations(const struct core *core, size_t *ret_count);
/* The same by a place in the cluster: of the GPU, or of its node. */
const struct cluster_change *core_gpu_mark(
    const struct core *core, const struct alloc_gpu *gpu, bool is_node);
/* Why mgpu has drained this GPU, since `from_ms`; NULL: it has not. */
const struct cluster_change *core_fault(const struct core *core, const char *node, const char *uuid);
const struct cluster_change *core_gpu_fault(const struct core *core, const struct alloc_gpu *gpu);
/* What its node says of a place in the cluster, NULL: nothing. */
const struct gpu_state *core_gpu_state(const struct core *core, const struct alloc_gpu *gpu);
/* What follows from others on this GPU, and whether it was said of this one. `ret_is_own` may be NULL. */
enum external_policy core_gpu_policy(
    const struct core *core, const char *node, const char *uuid, bool *ret_is_own);
/* "node:0" of a place in the cluster; the caller frees it. */
char *core_gpu_name(const struct core *core, const struct alloc_gpu *gpu);
/* "node:0-2,5;other:0" of several, in their order; NULL for none. The caller frees it. */
char *core_gpu_list(const struct core *core, const struct alloc_gpu *gpus, size_t count);

/* Answers when the job's state is one of the bits in `states` (1U << JOB_DONE, ...). */
void core_wait(struct core *core, uint64_t job, uint32_t states, void *request);

/* The same for an element that is still a part of its array: the answer's `job` is what it has become, or the
 * array when that is over without it. */
void core_wait_element(struct core *core, uint64_t array, uint32_t index, uint32_t states, void *request);
/* The same, and when it is at another level of enum idle_level. */
void core_wait_idle(struct core *core, uint64_t job, uint32_t states, uint32_t idle_level, void *request);

struct job_step;

/* Begins a step of a running job as `wish` says (key, name, CPUs, memory, nodes with tasks and GPUs), which
 * is copied. Answers when it runs, with its number; -EOVERFLOW: the job is too small for it. The request is
 * the step's client: when it is forgotten and no other follows within some seconds, the step ends. A request
 * with the same key follows; `is_resumed`: it is refused when that step has ended. */
void core_step_begin(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *wish, bool is_resumed, void *request);

/* The step `how->id` has ended with this end, exit code and signal. -EALREADY: it does not run. */
void core_step_end(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *how, void *request);

/* A running step, NULL: there is none. */
const struct job_step *core_step(const struct core *core, uint64_t job, uint32_t id);

/* Answers when everything applied so far is durable: a reader never sees what a crash could take back. */
void core_barrier(struct core *core, void *request);

/* The asker is gone: no reply() for this request any more. Harmless when it was answered. */
void core_forget(struct core *core, void *request);

/* --- nodes --- */

/* HELLO on a link. -EPROTO, -EEXIST (node name is connected already): the caller closes the link. */
int core_link_up(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link,
    const struct message_hello *hello, struct error *err);
/* Where other nodes reach the node of this link, and how that node reaches the machine of the controller
 * (NULL: not known): the ranks of a job are told. Until it is said they are told the names of nodes. A port
 * behind it (10.0.0.1:55804, [fd00::1]:55804) is left out. */
void core_set_address(struct core *core, uint32_t link, const char *address, const char *here);
void core_link_down(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link);
/* Any later message; one the agent may not send is refused with -EPROTO and the caller closes the link. */
int core_link_message(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link, uint16_t id,
    const void *message, struct error *err);

/* --- the outside's answers --- */
void core_on_durable(struct core *core, uint64_t batch);
void core_on_spec(struct core *core, uint64_t job, struct spec_bytes *spec); // drops it; NULL: no such row
void core_on_end(struct core *core, int64_t boot_ms, int64_t wall_ms, uint64_t job, bool is_ok);
void core_timer(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* End of a turn: schedules when something changed, hands the batch over when none is under way. */
void core_turn(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* --- reading, for the API; pointers are good until the next input --- */
const struct job *core_job(const struct core *core, uint64_t id);
void core_each_job(const struct core *core, void (*visit)(void *arg, const struct job *job), void *arg);
/* What it makes of what it was given: while it runs, as its agent said last; then what is in its record.
 * NULL: nothing was measured, or not yet. */
const struct job_usage *core_usage(const struct core *core, uint64_t job);
/* Of a job that is to save its work and go back to the queue: when it is killed at the latest; 0: it is no
 * such job. */
/* Why it has been starting or stopping for longer than that takes: `text`, or NULL when it has not. */
const char *core_delay(
    const struct core *core, int64_t wall_ms, const struct job *job, char *text, size_t size);
int64_t core_checkpoint_until(const struct core *core, uint64_t job);
/* Its parts in order of rank, while an attempt on several nodes is active; else NULL. The caller frees the
 * array, the texts are the core's. */
struct json_rank *core_ranks_look(const struct core *core, uint64_t job);
/* The log of its part of this rank, active or over; NULL: there is none (yet). */
char *core_log_path(const struct core *core, const struct job *job, uint32_t rank);
/* How long it has used none of its GPUs; 0: it does, or it does not run, or nobody knows. */
int64_t core_idle_ms(const struct core *core, uint64_t job);
/* The same of one GPU of it, whatever its others and its CPUs do. */
int64_t core_idle_end_ms(const struct core *core, const struct job *job);
int64_t core_gpu_idle_ms(const struct core *core, uint64_t job, const char *uuid);
/* True when the site wants it to be seen that this job leaves this GPU unused. */
bool core_gpu_is_wasted(const struct core *core, uint64_t job, const char *uuid);
size_t core_queue_position(const struct core *core, uint64_t id); // 1 is next; 0: not queued
/* The foremost reason why a queued job waits: its word, and a sentence in `text`; "" when there is none. */
const char *core_wait_reason(const struct core *core, int64_t wall_ms, uint64_t id, char *text, size_t size);

/* Another number each time that something has happened; 0: in the middle of it. */
int64_t core_version(const struct core *core);
/* Everything that is known of why it waits; why_clear() frees it. False when it is not queued. */
bool core_why(const struct core *core, int64_t wall_ms, uint64_t job, struct why *ret);
/* The same for a job that does not exist yet. Errors as of core_submit. */
int core_why_not_yet(const struct core *core, int64_t wall_ms, const struct identity *who,
    const struct job_spec *spec, const struct core_facts *facts, struct why *ret, struct error *err);
/* When a queued job is expected to start and when at the latest (TIME_NEVER: not known); from a forecast that
 * is up to two seconds old and reaches as far as the first thousand jobs. */
void core_eta(struct core *core, int64_t wall_ms, uint64_t job, int64_t *ret_eta_ms, int64_t *ret_latest_ms);

/* What this job told or is to tell, as far as it is remembered: what is over, then what waits. */
struct notification;
void core_each_notification(const struct core *core, uint64_t job,
    void (*visit)(void *arg, const struct notification *notification, bool is_sending), void *arg);

/* The scheduler, for reading. */
struct sched *core_sched(const struct core *core);
/* What a job runs, as a number: alike jobs of a user take alike times. */
uint64_t core_stem(const struct job *job);
/* Policy, placement and so on as lines "key=value", then what single users and groups have of their own; the
 * caller frees it. */
char *core_settings_text(const struct core *core);

struct core_node {
    char *name;
    bool is_up;
    bool is_unreachable;   // nothing was heard of it for too long
    int64_t heard_ms;      // boot clock: its last word, or our start
    int64_t heard_wall_ms; // the same for people
    int64_t left_ms;       // boot clock: its last word before the HELLO of the present link
    int64_t acked_ms;      // boot clock: it has no later word of ours that it was heard
    struct known_attempt
        *orphaned; // what still runs there and nobody wants: nothing new starts before its end
    size_t n_orphaned;
    uint32_t link;              // meaningful while it is up
    struct message_hello hello; // what it said last, gpus kept up to date by GPUS
    char *boot_before;          // boot id of the HELLOs before the last start of the machine; NULL: not known
    int64_t restarted_ms;       // boot clock: when that start was heard of
    struct buffer told;         // what the scheduler was told of it, encoded; empty while it is down
    struct gpu_watch *watches;  // of its GPUs
    size_t n_watches;
    uint32_t n_sending;    // notifications that it is about to tell
    bool was_held;         // drained because the store is an older copy
    bool is_awaited;       // it had jobs when the controller started
    char *address;         // where other nodes reach it; NULL: by its name
    char *here;            // how it reaches the machine of the controller; NULL: not known
    int64_t health_due_ms; // when its GPUs are to be judged again without a new sample
};
/* An attempt may run there: nobody has proven that it is over. */
bool core_has_attempts_on(const struct core *core, const char *node);
void core_each_node(
    const struct core *core, void (*visit)(void *arg, const struct core_node *node), void *arg);
const struct core_node *core_node_named(
    const struct core *core, const char *name); // NULL: it was never heard of
/* What is known of others on a GPU, NULL: it has not been looked at. */
const struct gpu_watch *core_gpu_watch(const struct core_node *node, const char *uuid);
/* Ids of the jobs on this GPU of this node; writes at most `max` and returns how many there are. */
size_t core_gpu_jobs(
    const struct core *core, const char *node, uint32_t gpu_index, uint64_t *jobs, size_t max);

/* The jobs that others wait for, as in "3,17"; the caller frees it. */
char *core_awaited_jobs(const struct core *core);
/* After loading: the latest time of a job, 0 when there is none. */
int64_t core_newest_ms(const struct core *core);
/* The highest id given out; no job in memory needs to have it any more. */
bool core_is_store_old(const struct core *core); // an older copy: every node is held
uint64_t core_last_job(const struct core *core);
uint64_t core_last_event(const struct core *core); // highest durable event seq
/* The name that the job's number had at its submit; NULL: not known. */
const char *core_owner_name(const struct core *core, const struct job *job);
/* The first job of this number that is its present user's: 0 where all are, UINT64_MAX where none is. */
uint64_t core_first_own(struct core *core, uint32_t uid);

static inline bool core_owns(const struct identity *who, const struct job *job)
{
    return who->is_known && who->uid == job->uid && job_submitted_as(job) >= who->first_job;
}

/* May it do that, with this job where it is about one? */
bool core_may(const struct identity *who, enum action action, const struct job *job);
