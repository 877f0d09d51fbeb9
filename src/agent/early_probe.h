/* SPDX-License-Identifier: MIT */
/* Tests whether jobs can start on this node before they have their GPUs. */
#pragma once

#include "base/error.h"

/* Tried once, in child processes (base/node/open_gate.h). Code 0: they can. */
const struct error *early_probe(void);
