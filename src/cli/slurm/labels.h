/* SPDX-License-Identifier: MIT */
/* Output lines with task numbers: srun --label. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "cli/slurm/step.h"

struct labels {
    struct pollfd *sources; // of the tasks in order, then the signals and the record of the step
    struct buffer *lines;   // incomplete line of each task
    uint32_t count;         // of the tasks
    int width;              // of their numbers
};

void labels_init(struct labels *labels, const struct step *step);

/* True while some task may still write. */
bool labels_are_open(const struct labels *labels);

/* Waits for output, a signal, or `record_fd` (-1: none), at most `timeout_ms` (-1: any time), and prints the
 * lines that are complete. True when record_fd is readable. */
bool labels_wait(struct labels *labels, int signal_fd, int record_fd, int timeout_ms);

void labels_clear(struct labels *labels);
