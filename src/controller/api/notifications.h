/* SPDX-License-Identifier: MIT */
/* What a job told people outside, as its owner sees it. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "controller/core/core.h"

/* Adds `notify`, `notify_on` and `notices` to the object of a job. */
void notifications_add(json_t *object, const struct core *core, const struct job *job);
