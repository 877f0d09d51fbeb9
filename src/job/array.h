/* SPDX-License-Identifier: MIT */
/* The indexes of an array, "0-99:2%8". Those that remain are kept as text, from which one index at a time is
 * removed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ARRAY_MAX       100000U     // elements of one array
#define ARRAY_INDEX_MAX 1000000000U // highest index

/* first, first + step, ... up to last, which is one of them. */
struct array_range {
    uint32_t first, last, step;
};

struct array {
    struct array_range *ranges; // ascending, none overlaps the next
    size_t count;
    uint32_t limit; // maximum number of running elements; 0: unlimited
};

/* Overwrites *ret, which the caller clears; it stays empty on failure. Rejects an empty text. */
int parse_array(const char *text, struct array *ret, struct error *err);
void array_clear(struct array *array);

uint32_t array_size(const struct array *array);

/* The lowest index of a text such as "3-99". False if the text is empty. */
bool array_first(const char *text, uint32_t *ret);

/* The text without this index and without a limit, "" if none is left; NULL if the index is not in it. The
 * caller frees it. */
char *array_without(const char *text, uint32_t index);

/* The text without its limit, as a new array starts with; NULL if it is invalid. The caller frees it. */
char *array_indexes(const char *text);
