/* SPDX-License-Identifier: MIT */
/* Who stands behind `Authorization: MUNGE`. */
#pragma once

#include <stdbool.h>

struct request;

bool munge_is_scheme(const char *authorization);

/* As tokens_identify(): sets request->who and calls `next`, or answers itself. */
void munge_identify(
    struct request *request, const char *authorization, void (*next)(struct request *request));
