/* SPDX-License-Identifier: MIT */
/* Programs that the kit runs: with a time limit, and with their output read. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child_output {
    char *out, *err; // at most 1 MiB each
    int status;      // exit status, or 128 and the signal
    bool is_late;    // it was killed at the time limit
    int64_t us;      // how long it ran
};

/* Runs argv[0] and waits. Returns 0, or a negative errno if it cannot be started. */
int child_run(const char *const *argv, int64_t timeout_ms, struct child_output *ret);

/* The same as another user, for root; uid -1: unchanged. */
int child_run_as(int64_t uid, const char *const *argv, int64_t timeout_ms, struct child_output *ret);
void child_output_clear(struct child_output *output);
#define _cleanup_output_ __attribute__((cleanup(child_output_clear)))

/* Starts argv[0] in the background with its output in the file `log`; its pid, or a negative errno. `uid` is
 * the user it becomes, for root; -1: unchanged. */
pid_t child_start(const char *const *argv, const char *log, int64_t uid);

/* Waits for a child; its status as above, -1 if it is still running then. */
int child_wait(pid_t pid, int64_t timeout_ms);

/* Sends the signal, waits, and kills it if it does not end. */
int child_stop(pid_t pid, int signal, int64_t timeout_ms);

/* The last line of `text` that is a JSON object; NULL if there is none. */
json_t *json_last_line(const char *text);

/* The last line that is not empty, cut at `size`. */
void text_last_line(const char *text, char *line, size_t size);
