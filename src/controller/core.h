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
#include "job/job.h"
#include "store/store.h"
#include "wire/message.h"

struct core;

/* Who asks. Made from the kernel's word or a verified token, never from a request's fields. */
struct identity {
    bool is_known;
    uint32_t uid, gid;
    bool is_admin; // root, or the user mgpud itself runs as
};

/* What became of a request. `code` is 0 or a negative errno with a sentence in `err`. */
struct core_answer {
    int code;
    struct error err;
    uint64_t job;     // submit, cancel, wait: the job it is about
    bool is_repeated; // submit: this key was seen before; `job` is the one made then
};

struct core_effects {
    void *arg;
    void (*commit)(void *arg, struct store_batch *batch);
    void (*send)(void *arg, uint32_t link, const struct record_type *type, const void *message);
    void (*reply)(void *arg, void *request, const struct core_answer *answer);
    void (*publish)(void *arg, const struct job_event *event, const struct job *job);
    void (*fetch_spec)(void *arg, uint64_t job);
    void (*arm)(
        void *arg, int64_t boot_ms); // one timer: call core_timer() at that time; the last call counts
    uint64_t (*random)(void *arg);
};

struct core_options {
    uint32_t admin_uid;     // besides root
    size_t queue_max;       // jobs not done, of all users
    size_t recent_done_max; // ended jobs kept in memory
    int64_t grace_ms;       // between SIGTERM and SIGKILL when a cancel names none
};

struct core *core_new(const struct core_options *options, const struct core_effects *effects);
void core_free(struct core *core);

/* --- before the first turn: what the store knows --- */
void core_load_summary(struct core *core, const struct store_summary *summary);
void core_load_job(struct core *core, struct job *job); // takes it over
void core_load_key(struct core *core, uint64_t key_hash, uint64_t job, uint64_t spec_hash);

/* --- requests: each is answered exactly once through reply(), unless core_forget() came first --- */

/* Takes the spec over. -EINVAL, -E2BIG, -ERANGE: bad request; -EEXIST: key used for another spec; -EDQUOT:
 * queue full. */
void core_submit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, void *request);

/* -ENOENT, -EPERM, -EALREADY (already done). `grace_ms` < 0: the default. */
void core_cancel(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, void *request);

/* Answers when the job's state is one of the bits in `states` (1U << JOB_DONE, ...). */
void core_wait(struct core *core, uint64_t job, uint32_t states, void *request);

/* Answers when everything applied so far is durable: a reader never sees what a crash could take back. */
void core_barrier(struct core *core, void *request);

/* The asker is gone: no reply() for this request any more. Harmless when it was answered. */
void core_forget(struct core *core, void *request);

/* --- nodes --- */

/* HELLO on a link. -EPROTO, -EEXIST (node name is connected already): the caller closes the link. */
int core_link_up(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link,
    const struct message_hello *hello, struct error *err);
void core_link_down(struct core *core, uint32_t link);
/* Any later message; one the agent may not send is refused with -EPROTO and the caller closes the link. */
int core_link_message(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link, uint16_t id,
    const void *message, struct error *err);

/* --- the outside's answers --- */
void core_on_durable(struct core *core, uint64_t batch);
void core_on_spec(struct core *core, uint64_t job, struct job_spec *spec); // takes it over; NULL: no such row
void core_timer(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* End of a turn: schedules when something changed, hands the batch over when none is under way. */
void core_turn(struct core *core, int64_t boot_ms, int64_t wall_ms);

/* --- reading, for the API; pointers are good until the next input --- */
const struct job *core_job(const struct core *core, uint64_t id);
void core_each_job(const struct core *core, void (*visit)(void *arg, const struct job *job), void *arg);
size_t core_queue_position(const struct core *core, uint64_t id); // 1 is next; 0: not queued
const char *core_wait_reason(
    const struct core *core, uint64_t id, char *text, size_t size); // "" when not queued

struct core_node {
    char *name;
    bool is_up;
    uint32_t link;              // meaningful while it is up
    struct message_hello hello; // what it said last, gpus kept up to date by GPUS
};
void core_each_node(
    const struct core *core, void (*visit)(void *arg, const struct core_node *node), void *arg);
const struct core_node *core_node(const struct core *core, const char *name);
/* Ids of the jobs on this GPU of this node; writes at most `max` and returns how many there are. */
size_t core_gpu_jobs(
    const struct core *core, const char *node, uint32_t gpu_index, uint64_t *jobs, size_t max);

/* The highest id given out; no job in memory needs to have it any more. */
uint64_t core_last_job(const struct core *core);
uint64_t core_last_event(const struct core *core); // highest durable event seq
/* May this identity act on the job (cancel, read its log and its environment)? */
bool core_may_control(const struct identity *who, const struct job *job, uint32_t admin_uid);
