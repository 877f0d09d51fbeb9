/* SPDX-License-Identifier: MIT */
/* Lines of output with the number of their task before them: srun --label. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "cli/slurm/step.h"

struct labels {
    struct pollfd *sources; // of the tasks in order, and the signals last
    struct buffer *lines;   // of each task what has no end yet
    uint32_t count;         // of the tasks
    int width;              // of their numbers
};

void labels_init(struct labels *labels, const struct step *step);

/* Some task may still write. */
bool labels_are_open(const struct labels *labels);

/* Waits for output or a signal, and prints the lines that are complete. */
void labels_wait(struct labels *labels, int signal_fd);

void labels_clear(struct labels *labels);
