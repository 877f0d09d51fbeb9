/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/error.h"

struct store;

/* Makes DIR/mgpu.db with its tables, as a whole: after a crash it is there complete or not at all. */
int store_create(struct store *store, struct error *err);
