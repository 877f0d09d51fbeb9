/* SPDX-License-Identifier: MIT */
/* The time in which mgpud is a standby: it waits to become the leader, and tells clients who leads. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct controller;
struct prepared;

/* 1 once this controller leads, 0 if it was told to exit, or a negative errno. */
int standby_run(struct controller *controller, struct prepared *prepared, struct error *err);
