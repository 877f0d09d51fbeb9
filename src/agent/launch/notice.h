/* SPDX-License-Identifier: MIT */
/* Notices to a running job ($MGPU_NOTICES), of which most jobs never get one: their file is made with the
 * first. */
#pragma once

#include "base/spool_id.h"

struct launcher;

/* Adds a line to the notices of this attempt: `subject` is one word, `text` a sentence. A negative errno: it
 * could not be written, or there is no such attempt. */
int notice_add(
    const struct launcher *launcher, const struct spool_id *id, const char *subject, const char *text);
