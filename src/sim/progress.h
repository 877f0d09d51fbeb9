/* SPDX-License-Identifier: MIT */
/* Progress of a long run: a line on standard error that is overwritten and removed at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    bool is_on, is_shown;
    uint32_t calls;
    int64_t begin_ms, shown_ms;
};

void progress_begin(struct progress *progress, bool is_on);
void progress_show(
    struct progress *progress, size_t done, size_t total); // cheap: checks the clock only now and then
void progress_end(struct progress *progress);
