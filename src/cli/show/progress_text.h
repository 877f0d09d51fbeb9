/* SPDX-License-Identifier: MIT */
/* Status reports of a job, as text and as a bar. */
#pragma once

#include <jansson.h>

#include "cli/term/screen.h"
#include "cli/term/time_text.h"

/* "███░░░░░ 40%", which the caller frees; NULL: no progress reported. */
char *progress_bar(const struct screen *screen, const json_t *job);

/* "40%, epoch 3", the line of show; NULL: nothing reported. */
char *progress_sentence(const struct screen *screen, const json_t *job);
