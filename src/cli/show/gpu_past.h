/* SPDX-License-Identifier: MIT */
/* History of GPUs: rows for `gpus --history`, and the last minutes of each for its column in lists. */
#pragma once

#include "cli/api/client.h"
#include "cli/options/list.h"

extern const struct list_kind gpu_past_list;

/* Parameters of the query; NULL: the server's defaults. */
struct gpu_past_question {
    const char *gpu, *since, *step;
};

/* The answer with the member "points", one object for each GPU and point with known values. */
int gpu_past_get(
    struct client *client, const struct gpu_past_question *question, json_t **ret, struct error *err);

/* True if the chosen columns include the one that needs gpu_past_attach(). */
bool gpu_past_is_shown(const struct call *call);

/* Adds the member "recent" to each GPU of the list: its utilization, oldest first. Omitted if mgpud, such as
 * an older version, does not provide it. */
void gpu_past_attach(struct client *client, json_t *gpus);

/* Renders it as bars, for list_column. */
char *gpu_past_render(const struct view *view, const json_t *gpu, enum color *color);
