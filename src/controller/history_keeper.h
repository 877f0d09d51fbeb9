/* SPDX-License-Identifier: MIT */
/* Feeds the history of GPUs from what the nodes said last, once a second, and keeps it in files. */
#pragma once

#include "controller/controller.h"

struct history_keeper;

/* Takes up what was kept in `dir`, sets controller->history, and goes on once a second. What cannot be read
 * or written is told in the log; nothing else depends on it. */
struct history_keeper *history_keeper_new(struct controller *controller, const char *dir);

/* Keeps the whole of it; controller->history is gone afterwards. NULL is fine. */
void history_keeper_free(struct history_keeper *keeper);
