/* SPDX-License-Identifier: MIT */
/* Tells somebody in front of a running job when it begins, and ceases, to leave its GPUs unused: the levels
 * that `ps` and `show` mark. */
#pragma once

#include <jansson.h>

#include "cli/api/stream.h"
#include "cli/term/time_text.h"

#define IDLE_LEVEL_SIZE 16

/* The level of a job in the words of the API, "none" when it uses its GPUs. */
const char *idle_news_level(const json_t *job);

/* "job 42 has not used its GPUs for 30m00s; it will be ended at 14:05 if it stays idle", or "job 42 uses its
 * GPUs again". The caller frees it. */
char *idle_news_sentence(const json_t *job, enum time_style times);

/* A request of its own, for who has no other that is answered meanwhile. */
struct idle_news {
    struct stream stream;
    char *path;                  // of the job below the API
    char level[IDLE_LEVEL_SIZE]; // that was told
    enum time_style times;
};

void idle_news_start(struct idle_news *news, struct client *client, const char *path, enum time_style times);

/* Reads on; the sentence when there is one, for the caller to free. What fails is given up without a word. */
char *idle_news_advance(struct idle_news *news, bool is_readable);

void idle_news_clear(struct idle_news *news);
