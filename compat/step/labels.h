/* SPDX-License-Identifier: MIT */
/* Output lines with task numbers: srun --label. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "compat/step/step.h"

#define LABEL_STREAMS 2 // standard output and standard error of a task

struct labels {
    const struct step *step;
    bool is_on;           // lines are labelled
    struct buffer *lines; // incomplete lines of each task, one per stream
    uint32_t count;       // of the tasks
    int width;            // of their numbers
};

void labels_init(struct labels *labels, const struct step *step);

/* The pipes of tasks that are children of srun, LABEL_STREAMS for each task, to be polled. True while one may
 * still be written to. */
bool labels_fill(const struct labels *labels, const struct step *step, struct pollfd *sources);

/* Prints complete lines, into the file of the task if it has one. */
void labels_serve(struct labels *labels, struct step *step, const struct pollfd *sources);

/* Output of a task that arrived in another way; `stream` 0: standard output, 1: standard error. */
void labels_add(struct labels *labels, uint32_t task, int stream, const void *bytes, size_t length);

/* Prints the rest of each task's output. */
void labels_end(struct labels *labels);

void labels_clear(struct labels *labels);
