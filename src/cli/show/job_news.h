/* SPDX-License-Identifier: MIT */
/* A request that is repeated while the program waits for something else. It is sent when its answer is to be
 * displayed, and never delays the wait. */
#pragma once

#include <stdbool.h>

#include "cli/api/stream.h"
#include "cli/show/job_end.h"

struct job_news {
    const struct job_end_news *wanted; // NULL: none
    struct stream stream;
    bool is_asked;
};

/* Requests this path of the API when it is due, and reports the answer when it has arrived. After a failure
 * there are no more news: the wait itself determines the reason. Returns the milliseconds until the next
 * turn, or -1. */
int job_news_turn(struct job_news *news, struct call *call, const char *path, bool is_readable);

/* What poll(2) watches for the answer; -1: none is expected. */
int job_news_fd(const struct job_news *news);

void job_news_clear(struct job_news *news);
