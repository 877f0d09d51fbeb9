/* SPDX-License-Identifier: MIT */
/* scontrol show. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/api/client.h"

/* "show WORD [NAME]"; `name` may be NULL. Returns the exit status, or a negative errno. */
int scontrol_show(
    struct client *client, const char *word, const char *name, bool is_one_line, struct error *err);
