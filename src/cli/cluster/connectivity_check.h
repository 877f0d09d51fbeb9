/* SPDX-License-Identifier: MIT */
/* mgpu doctor --node: checks the connection to a controller on another machine, step by step. */
#pragma once

#include "base/error.h"

/* Texts are valid during the call; `fix` may be empty. "on", "off" or "bad". */
typedef void doctor_step_fn(
    void *arg, const char *verdict, const char *name, const char *text, const char *fix);

/* `where` is HOST[:PORT] or HOST:PORT#TOKEN. Ends with the first step that fails. */
int doctor_walk(const char *where, doctor_step_fn *on_step, void *arg, struct error *err);
