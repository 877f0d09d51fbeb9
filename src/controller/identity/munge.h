/* SPDX-License-Identifier: MIT */
/* Identifies the caller by `Authorization: MUNGE`. */
#pragma once

#include <stdbool.h>

struct request;

bool munge_is_scheme(const char *authorization);

/* Like tokens_identify(): sets request->who and calls `next`, or answers itself. */
void munge_identify(
    struct request *request, const char *authorization, void (*next)(struct request *request));
