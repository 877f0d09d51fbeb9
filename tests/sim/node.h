/* SPDX-License-Identifier: MIT */
/*
 * A node in the world: the real agent core on a spool, shepherds and jobs that are only modelled. The spool
 * and the jobs outlive agents and shepherds, as on a real node.
 */
#pragma once

#include "agent/core/agent_core.h"
#include "world.h"

#define NODE_GPU_MEMORY (24ULL << 30) // of each of its GPUs
#define NODE_GPUS       4U

/* The spool's word about the last order to park, and the helper at work on it. */
struct node_parking {
    uint32_t number; // 0: there was none
    bool is_return;
    uint64_t bytes_max;        // that it may have in its GPUs, to be saved
    enum park_outcome outcome; // 0: not yet
    uint32_t gpus[NODE_GPUS];  // to return on, if any are named
    size_t n_gpus;
    bool is_helped;          // a helper is at work
    bool is_begun;           // another one has died
    bool is_given_up;        // the save is to be undone
    bool was_away;           // it was parked before the order to be
    bool is_lost;            // the driver has given it up, for good
    uint64_t asked_life;     // of the agent that reports the result
    uint32_t waiting_number; // of an order that is not in the spool yet
    uint64_t waiting_life;   // of the agent that has it
};

/* One attempt as the kernel and the tmpfs of a real node would hold it. */
struct spooled {
    struct spool_id id;
    uint64_t token;
    uint32_t gpus[NODE_GPUS];
    size_t n_gpus;
    uint32_t n_parts; // of its attempt, when these are several
    bool is_ready;    // its shepherd waits to be let go
    bool was_ready;   // or one of them did
    bool is_prepared; // before its turn
    bool is_taken;    // by the LAUNCH of just that
    uint64_t array;   // whose element it is; 0: of none
    bool is_sharing;  // it has a part of each of its GPUs, and others may have the rest
    bool is_removed;
    bool has_spec, has_started, has_status, has_exit;
    enum spool_verdict verdict;
    uint64_t shepherd;      // generation of the living shepherd, 0: none
    uint64_t shepherd_life; // of the agent that started it
    uint64_t let_in_life;   // of the agent that let it have its GPUs; 0: none did
    bool is_gated;          // the user's init waits at the gate
    bool is_running;        // the command was executed and has not ended
    bool is_stopped;        // a stop was asked for
    bool has_terms;         // it was told other settings than its LAUNCH
    bool is_suspended;      // its command stands still
    bool is_early;          // it runs without its GPUs, which it has not had
    bool is_waiting;        // and has tried to open one
    bool was_early;         // it began so
    int64_t waits_from_ms,
        waited_ms;       // time of its first try, and how long it waited afterwards; 0: it did not
    bool is_saved;       // its processes are stopped, and nothing of it is on its GPUs
    bool is_overdue;     // suspended or saved, it would have ended by now
    bool is_lost;        // it was ended because its lease was over
    bool is_peers_fault; // it failed because another part of its attempt was lost
    bool is_untold;      // its exit record went with the machine, or with the spool
    bool is_disowned;    // its node was fenced while it was alive: it may run twice
    bool is_undone;      // and the store does not know of it: it was restored
    int64_t lease_ms, lease_until_ms; // 0: it has none
    bool is_long;                     // its command runs for longer than most
    int32_t exit_code;                // what the command returns
    uint32_t executions;
    struct node_parking park;
    struct launch_exit exit;
    struct job_usage usage; // of its exit
    struct spooled *next;
};

#define NODE_MODEL    "Modelled"
#define NODE_DRIVER   "1.0"
#define NODE_LONG_UID 1002U // whose jobs are long

/* How one of its GPUs is. */
struct condition {
    struct gpu_xid xid; // the last error; number 0: there was none
    bool is_lost, is_unclean;
};

struct node {
    struct world *world;
    char name[8];
    bool has_long_jobs; // of NODE_LONG_UID
    struct condition conditions[NODE_GPUS];
    struct agent_core *core;  // NULL while the agent is dead
    uint64_t life;            // of the agent; what was meant for an earlier one is lost
    uint64_t last_timer;      // the one that counts
    int64_t frozen_until_ms;  // its agent is stopped until then
    int64_t clock_off_ms;     // its wall clock is ahead of the right time by so much
    uint64_t epoch;           // durable on the node
    struct persist_seen seen; // in its spool
    uint64_t boot;            // grows with every start of the machine
    uint64_t wipes;           // of its spool
    uint64_t disowned_order;  // of the last LAUNCH before it was fenced while it was alive
    const uint64_t *undone;   // tokens of attempts that the store does not know any more; borrowed
    size_t n_undone;
    uint64_t *behind; // tokens of attempts that wait for another one here
    size_t n_behind;
    int64_t trouble_until_ms; // until then it starts no jobs, or those of one user
    uint32_t trouble;         // enum start_cause
    uint32_t trouble_uid;     // if that concerns only one
    size_t n_troubles;        // starts that it refused for it
    bool is_off;              // the machine
    struct spooled *spool;
    uint64_t last_shepherd;
    size_t executions, n_prepared, n_taken, helper_deaths;
    size_t lease_ends; // by its shepherds
    char *broken;      // the first rule that was broken, in words
    void (*send)(void *arg, const struct record_type *type, const void *message); // towards the controller
    void (*executed)(void *arg, const struct spooled *entry);                     // its command
    void (*gone)(void *arg, const struct spooled *entry); // a part that ran was ended, or its node went off
    void (*hang_up)(void *arg);                           // the agent wants to
    void (*disturbed)(void *arg, int64_t for_ms); // so long it may be late with what it is told, or refuse it
    uint32_t cpus;
    int64_t helper_max_ms; // that a helper needs to park a job
    void *arg;
};

void node_init(struct node *node, struct world *world, size_t number); // its name is "n" and this
void node_clear(struct node *node);

void node_start_agent(struct node *node); // loads the spool; the link is not up yet
void node_kill_agent(struct node *node);
bool node_is_leaderless(const struct node *node); // a command runs there without a shepherd
bool node_kill_shepherd(struct node *node);       // a living one; false: there was none
void node_fail_rank(
    struct node *node, struct spooled *entry); // its command notices that another part is missing
/* What it has by now, and what was launched by now and is on the way, may be given to others. */
void node_disown(struct node *node, uint64_t last_order);
bool node_wipe(struct node *node); // its spool is emptied; false: it is not, because something runs there
void node_power_off(struct node *node); // everything on it ends, and the spool is gone
void node_power_on(struct node *node);
void node_hello(struct node *node);  // the link is up
void node_usages(struct node *node); // says how long what runs has been idle, as chance has it
void node_ail(struct node *node);    // something happens to one of its GPUs
void node_heal(struct node *node);   // nothing ails any of them
void node_sample(struct node *node); // the agent tells how they are

bool node_is_frozen(const struct node *node);

/* The attempt with this token was committed behind another one of its array on its GPUs. */
void node_expect_behind(struct node *node, uint64_t token);
/* The store was restored, and these attempts are unknown, also those that are on their way. */
void node_undo(struct node *node, const uint64_t *tokens, size_t count);

/* The spool entry, NULL: none, or it was removed. */
struct spooled *node_find(const struct node *node, const struct spool_id *id);
void node_restore(struct node *node, struct spooled *entry); // a saved attempt, on its GPUs; others: nothing

void node_grant(struct node *node, struct spooled *entry); // one that began early, its GPUs

/* Where its GPU `index` is, in words that no other GPU has. */
void node_gpu_uuid(const struct node *node, uint32_t index, char uuid[16]);
size_t node_left_over(const struct node *node); // spool entries that were not removed
