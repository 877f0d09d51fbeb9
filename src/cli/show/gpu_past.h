/* SPDX-License-Identifier: MIT */
/* What GPUs did: rows for `gpus --history`, and the last minutes of each for its column in lists. */
#pragma once

#include "cli/api/client.h"
#include "cli/options/list.h"

extern const struct list_kind gpu_past_list;

/* What is asked for; NULL: the server's own. */
struct gpu_past_question {
    const char *gpu, *since, *step;
};

/* An answer with the member "points", one object for each GPU and point of which something is known. */
int gpu_past_get(
    struct client *client, const struct gpu_past_question *question, json_t **ret, struct error *err);

/* True when the reader's columns have the one that needs gpu_past_attach(). */
bool gpu_past_is_shown(const struct call *call);

/* Gives each GPU of the list the member "recent": how busy it was, oldest first. Without an answer there is
 * none, as of an older mgpud. */
void gpu_past_attach(struct client *client, json_t *gpus);

/* That as bars, for list_column. */
char *gpu_past_render(const struct view *view, const json_t *gpu, enum color *color);
