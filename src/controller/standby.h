/* SPDX-License-Identifier: MIT */
/* mgpud as a standby: it waits to become the leader, and refers clients to the leader. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct controller;
struct prepared;

/* 1 once this controller leads, 0 if it must exit, or a negative errno. */
int standby_run(struct controller *controller, struct prepared *prepared, struct error *err);
