/* SPDX-License-Identifier: MIT */
/* mgpud's record of a step: mgpud numbers the step, decides when it may begin, and displays its end. */
#pragma once

#include "cli/api/stream.h"
#include "compat/step/step.h"

struct step_record {
    struct client client;
    struct stream stream; // open while the step runs
    char *path, *key, *begin_text, *resume_text;
    json_t *step; // as displayed by mgpud; NULL: the step is not recorded
    size_t taken; // bytes of the response that were read
    bool is_cancelled;
};

/*
 * Waits until the step may begin. If mgpud does not answer, a step with all its tasks on this node runs
 * without a record. Errors use Slurm's messages.
 */
int step_record_begin(struct step_record *record, const struct step *step, struct error *err);

/* The descriptor to poll. Call step_record_keep() when it is readable or after step_record_wait_ms(), to keep
 * the connection. */
int step_record_fd(const struct step_record *record);
int step_record_wait_ms(const struct step_record *record); // -1: no time
void step_record_keep(struct step_record *record, bool is_readable);

/* A signal that a user sent to the step (scancel 42.0), each returned once; SIGKILL some time after the step
 * was cancelled. 0: none. */
int step_record_signal(struct step_record *record);

/* Reports what the tasks have used so far. */
void step_record_report(struct step_record *record, const struct step *step);

/* True if the job has reached its time limit according to mgpud; false if mgpud does not answer. */
bool step_record_is_late(struct step_record *record, const struct step *step);

/* The highest exit status of its tasks; above 128 a task was ended by a signal. */
void step_record_end(struct step_record *record, const struct step *step, int status);
void step_record_clear(struct step_record *record);
