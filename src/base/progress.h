/* SPDX-License-Identifier: MIT */
/* How much of something is done, as programs and people write it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_WHOLE 1000000U

/* "0.4", ".4", "1", "40%", "12.5 %", in millionths; digits behind the sixth place change nothing. False for
 * what is no number, and above 1. Knows no locale. */
bool progress_parse(const char *text, size_t length, uint32_t *ret_ppm);
