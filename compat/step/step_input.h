/* SPDX-License-Identifier: MIT */
/* Standard input of a step: srun reads it, and passes it to all tasks or to the one that --input names. */
#pragma once

#include <poll.h>

#include "compat/step/step.h"

struct step_input {
    bool is_open;           // more may come
    uint32_t only;          // the task that gets it, or FRAME_ALL
    struct buffer *pending; // for each task that is a child of srun
    size_t *given;          // number of these bytes that the task has read
};

/* How a child of srun gets its standard input. */
enum step_input_kind {
    STEP_INPUT_SAME, // as srun's own
    STEP_INPUT_NONE,
    STEP_INPUT_FILE, // --input is a file with %t or similar: the task opens it
    STEP_INPUT_PIPE, // from srun
};

enum step_input_kind step_input_kind(const struct step *step, const struct step_task *task);

/* Called before the tasks start: opens the file of --input in place of standard input. */
int step_input_open(struct step_input *input, const struct step *step, struct error *err);

/* To be polled: standard input while no task is behind, and the pipes of tasks that are. `sources` has room
 * for 1 + tasks. */
void step_input_fill(const struct step_input *input, const struct step *step, struct pollfd *sources);
void step_input_serve(struct step_input *input, struct step *step, const struct pollfd *sources);
void step_input_clear(struct step_input *input, struct step *step);
