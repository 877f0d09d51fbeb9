/* SPDX-License-Identifier: MIT */
/* Who had which GPU when, as a picture. */
#pragma once

#include "sim/engine.h"

#define GANTT_BARS_MAX 200000U

/* The engine must have run with `draws`. -E2BIG when the picture would be too large to be of use. */
int svg_gantt(const struct engine *engine, const char *title, const char *path, struct error *err);
