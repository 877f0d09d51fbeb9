/* SPDX-License-Identifier: MIT */
/* The course of a replay: jobs waiting and GPUs in use over time, and how long jobs waited. */
#pragma once

#include "sim/engine.h"

/* The engine must have run with `plots`. */
int svg_plot(const struct engine *engine, const char *title, const char *path, struct error *err);
