/* SPDX-License-Identifier: MIT */
/* What mgpud answers again and again while somebody waits for something else: the question is asked when its
 * answer is to be shown, and never holds up the wait. */
#pragma once

#include <stdbool.h>

#include "cli/api/stream.h"
#include "cli/show/job_end.h"

struct job_news {
    const struct job_end_news *wanted; // NULL: none
    struct stream stream;
    bool is_asked;
};

/* Asks for this path of the API when it is time, and tells the answer once it is there; where that fails
 * there is no more news: the wait itself finds out why. Returns the milliseconds until the next turn, or -1.
 */
int job_news_turn(struct job_news *news, struct call *call, const char *path, bool is_readable);

/* What poll(2) watches for the answer; -1: none is expected. */
int job_news_fd(const struct job_news *news);

void job_news_clear(struct job_news *news);
