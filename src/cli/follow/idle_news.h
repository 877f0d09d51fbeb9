/* SPDX-License-Identifier: MIT */
/* Notifies the user in front of a running job when it begins and ceases to leave its GPUs unused, by the
 * levels that `ps` and `show` mark. */
#pragma once

#include <jansson.h>

#include "cli/api/stream.h"
#include "cli/options/call.h"
#include "cli/term/time_text.h"

#define IDLE_LEVEL_SIZE 16

/* Says so on standard error, if the level is not the last one, which is replaced. */
void idle_news_print(const struct call *call, const json_t *job, char last[IDLE_LEVEL_SIZE]);

/* A separate request, for callers without another that reports this. */
struct idle_news {
    struct stream stream;
    char *path;                  // of the job below the API
    char level[IDLE_LEVEL_SIZE]; // last level reported
    enum time_style times;
};

void idle_news_start(struct idle_news *news, struct client *client, const char *path, enum time_style times);

/* Reads on; returns a sentence if there is news, which the caller frees. Errors are ignored. */
char *idle_news_advance(struct idle_news *news, bool is_readable);

void idle_news_clear(struct idle_news *news);
