/* SPDX-License-Identifier: MIT */
/* A spool of its own for one test: it writes specs, starts the real mgpu-shepherd, and waits for its files.
 * As root the jobs run as `nobody`, else as ourselves. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agent/confine/confine.h"
#include "base/spool.h"
#include "job/launch.h"
#include "job/state.h"

#define FIXTURE_JOB_UID 65534U
#define FIXTURE_GROUP   4242U // a second group of the job's user

struct fixture {
    char run_dir[64]; // holds spool/ and home/
    char dir[128];    // the spool directory of the step
    char home[96];    // belongs to the job's user; the working directory
    char log[128];
    struct spool_id id;
    struct launch_spec spec;
    struct confine_state *cells; // NULL without a cgroup
    int hints_fd;
    pid_t shepherd;
    struct launch_exit exit; // filled by the functions that wait for the end
    char *output;            // what the job wrote
};

/* The cmocka setup and teardown: *state is the fixture. With `cgroup` the step gets one where that works. */
int fixture_setup(void **state);
int fixture_setup_cgroup(void **state);
int fixture_teardown(void **state);

/* Sets argv; the last argument is NULL. */
void fixture_command(struct fixture *fixture, ...) __attribute__((sentinel));

/* The same for `sh -c SCRIPT`. */
void fixture_script(struct fixture *fixture, const char *script);

/* Writes the spec and starts the shepherd (or an adopting one). */
void fixture_start(struct fixture *fixture);
void fixture_adopt(struct fixture *fixture);

/* Waits for a hint with that word: "started" or "exit". Fails the test after 20 seconds. */
void fixture_await(struct fixture *fixture, const char *word);

/* Waits for a line with that text in the job's output. */
void fixture_await_output(struct fixture *fixture, const char *text);

/* Waits for the exit record and reads it and the output. */
void fixture_finish(struct fixture *fixture);

/* The reading alone, when it is known to be there. */
void fixture_read_exit(struct fixture *fixture);

/* fixture_start() and fixture_finish(). */
void fixture_run(struct fixture *fixture);

/* The record of the end says this. */
void fixture_assert_end(const struct fixture *fixture, enum job_end end, int exit_code);

/* Sends a command to the shepherd, as soon as one listens. */
void fixture_stop(struct fixture *fixture, int signal, int64_t grace_ms);

/* The same for a stop that waits until the job has saved its work. */
void fixture_checkpoint(struct fixture *fixture, int64_t grace_ms);

/* Makes an empty file in the job's directory. */
void fixture_touch(const struct fixture *fixture, const char *name);

/* Takes the spool directory away, as the agent does, and returns the shepherd's exit status. */
int fixture_reap(struct fixture *fixture);

/* Waits for a shepherd that leaves by itself; returns its exit status. */
int fixture_wait(struct fixture *fixture);

/* Kills the shepherd, nothing else. */
void fixture_kill_shepherd(struct fixture *fixture);

/* Number of processes of this fixture's steps whose command line is exactly `sleep SECONDS`. */
int fixture_count_sleepers(const struct fixture *fixture, const char *seconds);

bool is_root(void);
