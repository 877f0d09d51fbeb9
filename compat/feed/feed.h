/* SPDX-License-Identifier: MIT */
/* `scheduler start`: its options, its state, and its parts. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/api/feed_events.h"
#include "cli/options/call.h"
#include "compat/feed/command.h"
#include "compat/feed/daemon.h"
#include "compat/feed/jobs_file.h"
#include "compat/feed/llm.h"
#include "compat/feed/log.h"
#include "compat/feed/output.h"
#include "compat/feed/state.h"

#define FEED_REASON "scheduler pause" // reason of GPUs paused by this program

struct feed_settings {
    int64_t gpus;          // only the first of them; 0: all
    const char *jobs_path; // "": none
    const char *llm_path, *state_path;
    const char *mem_threshold, *load_threshold; // NULL: not specified
    int64_t monitor_ms, state_ms, max_attempts, retry_wait_ms;
    enum feed_inject inject;
    bool is_screen;
};

struct feed {
    struct call *call;
    const struct feed_settings *settings;
    struct feed_log log;
    struct feed_state state;
    struct feed_llm llm;
    struct feed_events events;
    struct feed_daemon daemon;
    struct feed_outputs outputs;
    json_t *hashes; // of the lines, by job id
    json_t *news;   // ids of jobs that have changed

    struct feed_line *lines; // to be submitted, from `at` on
    size_t n_lines, at;
    int64_t attempts;       // to submit the line at `at`
    uint64_t content;       // hash of the jobs file when last read; 0: never
    bool wants_again;       // some lines wait for something outside the file
    json_t *reported;       // problems of its lines at that time
    json_t *in_file;        // hashes of its lines at that time; NULL: never read
    char last_problem[512]; // the last problem reported

    bool is_enforced; // nodes restrict jobs to their own GPUs
    bool is_spread;   // some nodes are other machines
    bool has_screen;
    bool is_gpu_news; // the GPUs must be queried
    int inotify_fd, jobs_watch, state_watch;
    /* Boot clock; 0: at once, INT64_MAX: never. */
    int64_t connect_ms, read_ms, hand_ms, sync_ms, save_ms, missing_ms;
    int64_t delay_ms; // of connect_ms
    bool is_away;
    bool is_fresh; // there was no state file: earlier pauses are to be ended
};

/* feed/lines.c: reads the jobs file if it has changed, or if lines wait for something else. */
void feed_lines_read(struct feed *feed);

/* Submits the next line. -errno if the connection to mgpud was lost. */
int feed_lines_hand(struct feed *feed, struct error *err);
void feed_lines_clear(struct feed *feed);

/* Reports a problem, unless it was also the last one reported. */
void feed_say_once(struct feed *feed, const struct error *err);

/* feed/request.c: the request for a line, with this submit key; the caller releases *ret. */
int feed_request_make(
    const struct feed *feed, const struct feed_line *line, const char *key, json_t **ret, struct error *err);

/* True if PATH has a program with that name. */
bool feed_is_on_path(const char *name);

/* feed/jobs.c: processes changes of jobs. */
void feed_jobs_index(struct feed *feed);
void feed_jobs_note_new(struct feed *feed, int64_t id, const char *hash);
void feed_jobs_note_event(void *feed, const json_t *event);
void feed_jobs_note_all(struct feed *feed);
int feed_jobs_refresh(struct feed *feed, struct error *err);

/* mgpud does not have the jobs that waited or ran any more; their lines may be submitted again. */
void feed_jobs_forget(struct feed *feed);

/* feed/loop.c: queries the nodes. */
int feed_nodes_query(struct feed *feed, struct error *err);

/* feed/gpus.c: sends edits of paused_gpus to mgpud and stores the resulting state. With `is_reset`, GPUs
 * paused by this program are resumed. */
int feed_gpus_sync(struct feed *feed, bool is_reset, struct error *err);

/* The fraction of a GPU (of GET /gpus) allocated to these jobs: 0 to 1. */
double feed_gpus_allocation(const json_t *jobs, const json_t *gpu);

/* feed/start.c: the verb. */
extern const struct command feed_start_command;

/* feed/status.c */
extern const struct command feed_status_command;

/* feed/watch.c: detects changed files. */
int feed_watch_open(struct feed *feed, struct error *err);
void feed_watch_read(struct feed *feed);
void feed_watch_close(struct feed *feed);

/* feed/sync.c: applies edits of the state file, synchronizes GPUs, and writes the file; at the end without
 * mgpud. */
int feed_sync(struct feed *feed, int64_t now, struct error *err);
int feed_sync_last(struct feed *feed, struct error *err);

/* feed/loop.c: runs until SIGINT, SIGTERM or SIGHUP. */
int feed_run(struct feed *feed, struct error *err);
