/* SPDX-License-Identifier: MIT */
/* A picture of which job had which GPU when. */
#pragma once

#include "lab/sim/engine.h"

#define GANTT_BARS_MAX 200000U

/* The engine must have run with `draws`. -E2BIG if the picture would be uselessly large. */
int svg_gantt(const struct engine *engine, const char *title, const char *path, struct error *err);
