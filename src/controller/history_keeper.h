/* SPDX-License-Identifier: MIT */
/* Adds the nodes' latest reports to the history of GPUs, once a second, and stores it in files. */
#pragma once

#include "controller/controller.h"

struct history_keeper;

/* Loads the files in `dir`, sets controller->history, and runs once a second. Read and write errors are
 * logged; nothing else depends on the history. */
struct history_keeper *history_keeper_new(struct controller *controller, const char *dir);

/* Saves the whole history and frees controller->history. NULL is allowed. */
void history_keeper_free(struct history_keeper *keeper);
