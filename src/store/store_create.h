/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"

struct store;

/* Creates DIR/mgpu.db with its tables atomically: after a crash it is complete or absent. */
int store_create(struct store *store, struct error *err);
