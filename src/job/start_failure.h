/* SPDX-License-Identifier: MIT */
/*
 * Causes of failed starts, and their consequences. A program that detects a failure reports only its cause;
 * this table, shown in docs/start-failures.md, decides whether the job ends, is retried immediately or
 * waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of records and messages: they never change. */
enum start_cause {
    START_UNNAMED = 0, // of an older agent, or no failure
    START_REQUEST = 1,
    START_COMMAND = 2,
    START_PLACE = 3,
    START_FILES = 4,
    START_FEATURE = 5,
    START_ACCOUNT = 6,
    START_USER = 7,
    START_LOOKUP = 8,
    START_HOME = 9,
    START_SLOW = 10,
    START_SPAWN = 11,
    START_INIT = 12,
    START_GPU = 13,
    START_CGROUP = 14,
    START_DEVICE = 15,
    START_SPOOL = 16,
    START_PROCESS = 17,
    START_RIGHTS = 18,
    START_SHEPHERD = 19,
    START_CAUSES,
};

enum start_class {
    START_FINAL, // the job's own fault: the job ends as start_failed
    START_SOON,  // its files may appear a moment later: the node retries for START_FILES_MS, then as below
    START_ELSEWHERE, // this node cannot run it: another one is tried, and it ends if there is none
    START_WAITS, // the fault of a node or of the site: the job waits, and the node is left alone for a while
};

/* The jobs that avoid a node. */
enum start_scope {
    START_OF_JOB,  // none: the job is retried after its own delay
    START_OF_USER, // the jobs of this user
    START_OF_NODE, // for all jobs
};

/* How long a node waits for the files of a job: working directory, output, input, and the command. */
#define START_FILES_MS 3000

struct start_row {
    const char *name; // as in the API and the documentation
    enum start_class class;
    enum start_scope scope; // of START_WAITS
    bool is_met_by_all;     // for every start in that scope: a successful one shows that the cause is gone
    const char *meaning;    // a line of the documentation
};

/* The row of a cause. A number of a newer agent has that of START_UNNAMED. */
const struct start_row *start_row(uint32_t cause);

const char *start_class_name(enum start_class class);
const char *start_scope_name(enum start_scope scope);

/* True for errors (positive errnos) of a path that may be temporary: the file is being created, or its file
 * server does not have it yet. */
bool start_error_may_pass(int error);
