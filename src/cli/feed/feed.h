/* SPDX-License-Identifier: MIT */
/* `scheduler start`: what it was told, what it knows, and its parts. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/feed/command.h"
#include "cli/feed/daemon.h"
#include "cli/api/feed_events.h"
#include "cli/feed/jobs_file.h"
#include "cli/feed/llm.h"
#include "cli/feed/log.h"
#include "cli/feed/output.h"
#include "cli/feed/state.h"

#define FEED_REASON "scheduler pause" // of the GPUs that are paused here

struct feed_settings {
    int64_t gpus;          // only the first so many; 0: all
    const char *jobs_path; // "": none is watched
    const char *llm_path, *state_path;
    const char *mem_threshold, *load_threshold; // NULL: not said
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
    json_t *hashes; // of the lines, by the id of their job
    json_t *news;   // ids of jobs that something happened to

    struct feed_line *lines; // to be handed to mgpud, from `at` on
    size_t n_lines, at;
    int64_t attempts; // to hand over the one at `at`
    uint64_t content; // of the jobs file as it was read last; 0: never
    bool wants_again; // lines wait for something that is not in the file
    json_t *told;     // what was wrong with its lines then
    json_t *in_file;  // hashes of its lines then; NULL: never read
    char said[512];   // the problem of a file, or of mgpud, that was said last

    bool is_enforced; // nodes keep jobs from GPUs that are not theirs
    bool is_spread;   // some nodes are other machines
    bool has_screen;
    bool is_gpu_news; // the GPUs are to be looked at
    int inotify_fd, jobs_watch, state_watch;
    /* Boot clock; 0: at once, INT64_MAX: never. */
    int64_t connect_ms, read_ms, hand_ms, sync_ms, save_ms, missing_ms;
    int64_t delay_ms; // of connect_ms
    bool is_away;
    bool is_fresh; // there was no state file: pauses of before are to be ended
};

/* feed/lines.c: reads the jobs file when it has changed, or when lines wait for something else. */
void feed_lines_read(struct feed *feed);

/* Hands the next line to mgpud. -errno when mgpud was lost. */
int feed_lines_hand(struct feed *feed, struct error *err);
void feed_lines_clear(struct feed *feed);

/* Says a problem unless it was the last that was said so. */
void feed_say_once(struct feed *feed, const struct error *err);

/* feed/request.c: the job of a line as mgpud takes it, with that submit key; the caller releases *ret. */
int feed_request_make(
    const struct feed *feed, const struct feed_line *line, const char *key, json_t **ret, struct error *err);

/* True when there is a program of that name on PATH. */
bool feed_is_on_path(const char *name);

/* feed/jobs.c: takes up what became of jobs. */
void feed_jobs_index(struct feed *feed);
void feed_jobs_note_new(struct feed *feed, int64_t id, const char *hash);
void feed_jobs_note_event(void *feed, const json_t *event);
void feed_jobs_note_all(struct feed *feed);
int feed_jobs_refresh(struct feed *feed, struct error *err);

/* None of the jobs that waited or ran can be asked for any more; their lines may be sent again. */
void feed_jobs_forget(struct feed *feed);

/* feed/loop.c: what the nodes are like. */
int feed_nodes_look(struct feed *feed, struct error *err);

/* feed/gpus.c: hands edits of paused_gpus to mgpud and takes up what is true there. With `is_reset` the GPUs
 * that were paused here are resumed. */
int feed_gpus_sync(struct feed *feed, bool is_reset, struct error *err);

/* What part of a GPU (of GET /gpus) these jobs have: 0 to 1. */
double feed_gpus_allocation(const json_t *jobs, const json_t *gpu);

/* feed/start.c: the verb. */
extern const struct command feed_start_command;

/* feed/status.c */
extern const struct command feed_status_command;

/* feed/watch.c: notes what files have changed. */
int feed_watch_open(struct feed *feed, struct error *err);
void feed_watch_read(struct feed *feed);
void feed_watch_close(struct feed *feed);

/* feed/sync.c: edits of the state file, the GPUs, and the file again; at the end without mgpud. */
int feed_sync(struct feed *feed, int64_t now, struct error *err);
int feed_sync_last(struct feed *feed, struct error *err);

/* feed/loop.c: until SIGINT, SIGTERM or SIGHUP. */
int feed_run(struct feed *feed, struct error *err);
