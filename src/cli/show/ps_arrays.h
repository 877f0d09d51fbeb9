/* SPDX-License-Identifier: MIT */
/* How the elements of an array are doing, in words. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* The number of elements that have ended; 0 for a job that is no array. */
int64_t elements_ended(const json_t *job);

/* "10 done, 2 failed"; NULL: none has ended, or it is no array. The caller frees it. */
char *elements_counts(const json_t *job);

/* "12 elements ended: 10 done, 2 failed"; NULL as above. The caller frees it. */
char *elements_text(const json_t *job);

/* For a list made with `fold=1`: arrays that are listed only for their ended elements get the state of the
 * worst of these. `states` is the list that was requested, NULL: any. An array whose elements are all listed
 * themselves is removed. */
void ps_describe_arrays(json_t *jobs, const char *states);
