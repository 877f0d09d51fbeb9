/* SPDX-License-Identifier: MIT */
/*
 * A cluster in one process: the real core of a controller, and places, each a node with the real core of an
 * agent and the connections between the two. sim_box.c has the controller's life, box_clients.c and
 * box_admin.c who asks it for something, box_config.c its configuration, box_backup.c a store that is put
 * back, box_places.c what happens to nodes and connections. box_fold.c has the jobs as the events tell of
 * them, box_starts.c, box_park.c and box_devices.c what must be true of these events, box_judge.c what must
 * be true when all is at rest.
 */
#pragma once

#include "controller/core/core.h"
#include "memory_store.h"
#include "node.h"
#include "tally.h"
#include "world.h"

#define PLACES_MAX 3U
#define ASKS_MAX   400U

#define BOX_SINGLETON "one" // the name of jobs of which one runs at a time
#define BOX_PARTITION "first"
#define BOX_ELEMENTS  2U // of an array, which run at a time, of some that are committed behind others, too

struct ask { // one submit that a client insists on
    struct box *box;
    const struct identity *who;
    char key[16];
    uint64_t job;      // acknowledged as this one, 0 before
    bool is_waiting;   // for an answer
    bool is_asked;     // it was submitted before
    bool is_fence;     // no submit: its place is to be fenced
    bool is_fenced;    // and that was acknowledged
    bool is_cancelled; // somebody asked to cancel it, perhaps without an answer
    bool is_sizeable;  // it was asked when the sizes of all nodes were durable
    bool is_over;      // the client knows that its job is done
    uint64_t undone;   // its job, which is not in the backup that was restored: it has none any more
    uint64_t after[2]; // the jobs it waits for, 0: none
    bool is_paired;    // an array, each element of which waits for that of the first of these
    int64_t made_ms;   // by a wall clock that is right
};

struct place {
    struct box *box;
    struct ask fence; // of an administrator who knows that it is off
    struct node node;
    struct line *line; // what the agent takes for its connection, NULL: it has none
    bool is_dialling;
    bool is_gone;         // it went off and never comes back
    bool was_new;         // at a restore: its agent had accepted no controller yet
    int64_t cut_until_ms; // its connections do not come about till then
};

/* What the events have told of the first use of GPUs by a user's command: box_early.c. */
struct box_command {
    uint32_t uid;
    uint64_t command_hash;
    uint64_t runs_ms[3]; // the latest one first
    size_t n_runs;
    bool has_failed; // without its GPUs, when it was started so without having asked
};

/* In this time something kept nodes or the controller from parking jobs, or from returning them, in time. */
struct box_disturbance {
    int64_t from_ms, until_ms;
    const struct place *place; // NULL: all
};

#define BOX_PARTITIONS 2U
#define BOX_ACCOUNTS   6U

struct box_config { // what is in the configuration file
    struct sched_settings settings;
    struct early_settings early;
    uint64_t park_max;
    struct core_account accounts[BOX_ACCOUNTS];
    size_t n_accounts;
    struct core_partition partitions[BOX_PARTITIONS];
};

struct box {
    struct world world;
    struct place places[PLACES_MAX];
    size_t n_places;
    struct line *lines; // every connection of this history
    uint32_t last_line;
    struct core *core; // NULL while the controller is dead
    uint64_t life;     // of the controller
    struct {
        uint64_t life;
        int64_t boot_ms, wall_ms;
    } first_event;       // of a life of the controller
    uint64_t last_timer; // the one that counts
    uint64_t epoch;
    bool is_storm;
    bool has_behind; // elements of arrays are committed behind others
    bool are_plain;  // most jobs are such as the scheduler parks by its own rule, and it does; the storm is
                     // mild
    int64_t late_ms; // the last node is back by then
    struct change *events;
    size_t n_events;
    struct state_change *rows; // as they were written, one after the other
    size_t n_rows;
    struct store_batch *committing;
    struct {
        size_t n_events, n_rows;
        uint64_t epoch, last_job, last_event;
    } backup;
    size_t n_looked_at;            // events, for a moment at which a backup matters
    bool is_old_copy;              // the store, until it is opened
    uint64_t last_job, last_event; // at least: ids and events before a gap are not in the store
    uint64_t *undone;              // tokens of attempts that it does not know
    size_t n_undone;
    bool *was_open; // at the backup, by index; NULL: none was restored
    size_t n_known;
    struct ask asks[ASKS_MAX];
    size_t n_asks;
    bool has_copies; // frames may come twice, which no stream allows
    struct box_config config;
    struct box_command commands[1024]; // by the events that were judged so far
    size_t n_commands;
    bool was_auto;                        // jobs may have started early without having asked
    const char *settings;                 // as the events have told them so far; borrowed from these
    bool has_half_open;                   // nodes give connections up whose other end notices late
    struct box_disturbance *disturbances; // where jobs are parked by the rule, in order
    size_t n_disturbances;
    struct {
        uint64_t command_hash;
        int64_t until_ms; // wall clock
    } refusing[256];      // commands that were asked to be parked, and refused or were lost
    size_t n_refusing;
    struct tally tally;
    const char *broken;
    char detail[256];
};

void box_break(struct box *box, const char *rule, uint64_t job);
/* Runs this history and adds up what happened; false when a rule was broken, which is printed. */
bool box_run_seed(uint64_t seed, struct tally *tally);
/* The end of a turn of the controller's loop. */
void box_turn(struct box *box);
void box_kill_controller(struct box *box); // if it is alive; it will be started again

/* --- box_clients.c --- */
void box_open_clients(struct box *box);
/* An effect of the controller's core. */
void box_reply(void *arg, void *request, const struct core_answer *answer);
void box_restore_clients(struct box *box); // the store was: some jobs are unknown, others go on

/* --- box_backup.c --- */
void box_open_backup(struct box *box);
void box_skip(struct box *box, uint64_t gap); // numbers go on above it; 0: nothing
size_t box_index(uint64_t job); // its place in a table of all jobs; after a restore ids go on far above

/* --- box_config.c --- */
void box_vary_config(struct box *box);
struct core_options box_options(const struct box *box); // as the file says at the moment
void box_open_config(struct box *box);                  // it changes

/* --- box_admin.c --- */
void box_open_admins(struct box *box);

/* --- box_places.c --- */
void box_open_places(struct box *box);       // as many as the seed says, with their agents
void box_close_places(struct box *box);      // frees them, and all lines
void box_storm_place(struct box *box);       // something happens to a node or to a connection
bool box_has_met_all(const struct box *box); // the store knows what each node has
void box_restore_places(struct box *box);    // what administrators had said of them may be unknown

/* --- box_lines.c --- */
void box_lose_controller(struct box *box); // it has died: every connection breaks
/* Effects of the controller's core. */
void box_close_link(void *arg, uint32_t link);
void box_send(void *arg, uint32_t link, const struct record_type *type, const void *message);

/* --- box_wide.c --- */
#define ATTEMPTS_SEEN_MAX 200U // of one job
bool box_is_running(const struct box *box, uint64_t job, uint32_t attempt);
void box_check_execution(struct box *box, const struct spooled *begun);
/* How many attempts of a job executed something that nobody disowned, and which one was the last of all. */
uint32_t box_executed_attempts(const struct box *box, uint64_t job, uint32_t *ret_latest);
/* The command of a part on some node was ended, or went down with its node: the others will miss it. */
void box_miss_rank(struct box *box, const struct spooled *gone);
/* A part of this attempt failed by itself, and not because another was gone; or nobody can know. */
bool box_has_own_failure(const struct box *box, uint64_t job, uint32_t attempt);
bool box_is_true_exit(const struct box *box, uint64_t job, uint32_t attempt, int32_t exit_code);

/* --- box_fold.c --- */
/* Called before each event: of the cluster, or of a job, which exists. `highest`: the last job so far. */
typedef void (*box_look)(
    struct box *box, struct job *const *jobs, size_t highest, const struct job_event *event);
/* Every job that the events tell of, by index; the caller frees them. `look` may be NULL. */
struct job **box_fold(struct box *box, box_look look, size_t *ret_count);
struct core_fact box_fact(const struct box *box, uint64_t id); // of one job

/* --- box_early.c --- */
/* An event is judged, and noted, with its job as it was before. */
void box_judge_early(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event);
void box_note_early(struct box *box, const struct job *job, const struct job_event *event);

/* --- box_park.c --- */
/* Whose times of return are not judged: `place` from now on for `for_ms`; NULL: all places. */
void box_disturb(struct box *box, const struct place *place, int64_t for_ms);
/* An event, of a job or of the cluster, is judged with the jobs as they were before. */
void box_judge_park(struct box *box, struct job *const *jobs, size_t highest, const struct job_event *event);

/* --- box_behind.c --- */
uint32_t box_elements(const struct box *box); // of an array
/* An element is committed behind another; and how many were, in the end. */
void box_judge_behind(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event);
void box_count_behind(struct box *box);

/* --- box_judge.c, box_starts.c, box_devices.c --- */
/* What the controller says to an agent. */
void box_check_sent(
    struct box *box, struct place *place, const struct record_type *type, const void *message);
void box_judge(struct box *box);
void box_judge_event(struct box *box, struct job *const *jobs, size_t highest, const struct job_event *event);
void box_judge_devices(struct box *box);
