/* SPDX-License-Identifier: MIT */
/* What a job says of itself, in words and as a bar. */
#pragma once

#include <jansson.h>

#include "cli/term/screen.h"
#include "cli/term/time_text.h"

/* "███░░░░░ 40%", for the caller to free; NULL: it has not said how far it is. */
char *progress_bar(const struct screen *screen, const json_t *job);

/* "40%, epoch 3", the line of show; NULL: it has said neither. */
char *progress_sentence(const struct screen *screen, const json_t *job);
