/* SPDX-License-Identifier: MIT */
/* The parts of the watch: watch.c (states, time limit), watch_stop.c (signals and stops), watch_rest.c (the
 * end of the command, and what is left). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shepherd/node_lease.h"
#include "shepherd/record.h"
#include "shepherd/shepherd.h"
#include "shepherd/terminal_idle.h"
#include "shepherd/terms.h"

/* In order of occurrence. */
enum watch_phase { WATCH_INIT, WATCH_LEADER, WATCH_LAST, WATCH_REST, WATCH_OVER };

enum stop_stage { STOP_NONE, STOP_SIGNALLED, STOP_KILLED, STOP_INIT_KILLED };

struct watch {
    struct shepherd *shepherd;
    struct ending *ending;
    enum watch_phase phase;
    enum stop_stage stage;
    int leader_pidfd;
    int events_fd;                // cgroup.events, or -1
    int timer_fd;                 // time of the stop's next stage
    bool is_executed;             // reported by I: signals reach the command
    struct spool_command waiting; // arrived before that; signal 0: none
    bool is_signalled;            // the signal of the stop was sent by another shepherd
    bool is_suspended;            // all processes were suspended
    int stop_signal;              // the latest signal of a stop
    bool is_holding;              // some processes are stopped until others have ended
    int64_t release_ms;           // boot clock: next check of the stopped processes
    int64_t kill_ms;              // boot clock: the end of the grace period
    struct terms terms;
    struct terminal_idle idle;
    struct node_lease lease;
};

/* --- watch_stop.c --- */

/* Sends a signal to every process of the step. True if there was one. */
bool watch_signal(struct watch *watch, int signal);

/* Adds the names of the step's processes, except those that were held, which would only have died. */
void watch_list(struct watch *watch, struct roll *roll);

/* Sends the signal before the time limit to its recipients. */
void watch_warn(struct watch *watch);

/* Carries out a command, or keeps it until the command runs. With a grace it is a stop. */
void watch_obey(struct watch *watch, const struct spool_command *command);

/* Called when the command runs: carries out the command of the agent that was kept. */
void watch_obey_kept(struct watch *watch);

/* Continues a stop that another shepherd began. */
void watch_resume_stop(struct watch *watch, const struct init_stop *stop);

void watch_arm(struct watch *watch, int64_t after_ms);
void watch_on_timer(struct watch *watch);

/* Ends the processes that were held, once no handler below them is left. For poll(2): the maximum wait, or
 * -1. */
void watch_release(struct watch *watch);
int watch_release_wait_ms(const struct watch *watch);

/* Starts a stop that ends as soon as the job reports that its work is saved, and handles that report. */
void watch_stop_when_saved(struct watch *watch, int64_t grace_ms, enum spool_save save);
void watch_await_checkpoint(struct watch *watch, enum spool_save save);
void watch_on_status_pipe(struct watch *watch);
void watch_finish_status_pipe(struct watch *watch);

/* --- watch_rest.c --- */

void watch_on_init_gone(struct watch *watch);
void watch_on_leader_gone(struct watch *watch);

/* In WATCH_LAST: called when the time is up or nothing is left. */
void watch_end_last(struct watch *watch);
void watch_check_last(struct watch *watch);

/* In WATCH_REST: kills what is left. */
void watch_end_rest(struct watch *watch);
