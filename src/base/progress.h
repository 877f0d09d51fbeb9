/* SPDX-License-Identifier: MIT */
/* Progress values as programs and users write them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_WHOLE 1000000U

/* Parses "0.4", ".4", "1", "40%" or "12.5 %" into millionths; digits after the sixth decimal place are
 * ignored. False for anything else and for values above 1. Independent of the locale. */
bool progress_parse(const char *text, size_t length, uint32_t *ret_ppm);
