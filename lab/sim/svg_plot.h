/* SPDX-License-Identifier: MIT */
/* A picture of a replay: waiting jobs and GPUs in use over time, and the waiting times of jobs. */
#pragma once

#include "lab/sim/engine.h"

/* The engine must have run with `plots`. */
int svg_plot(const struct engine *engine, const char *title, const char *path, struct error *err);
