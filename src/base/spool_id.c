/* SPDX-License-Identifier: MIT */
#include "base/spool_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int spool_id_compare(const struct spool_id *a, const struct spool_id *b)
{
    if (a->job != b->job)
        return a->job < b->job ? -1 : 1;
    if (a->attempt != b->attempt)
        return a->attempt < b->attempt ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return a->rank == b->rank ? 0 : a->rank < b->rank ? -1 : 1;
}

bool spool_id_equal(const struct spool_id *a, const struct spool_id *b)
{
    return a->job == b->job && a->attempt == b->attempt && a->step == b->step && a->rank == b->rank;
}

size_t spool_id_position(const void *list, size_t count,
    const struct spool_id *(*id_at)(const void *list, size_t index), const struct spool_id *id)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spool_id_compare(id_at(list, middle), id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void spool_name(const struct spool_id *id, char name[SPOOL_NAME_SIZE])
{
    (void)snprintf(name, SPOOL_NAME_SIZE, "%" PRIu64 ".%u.%u.%u", id->job, id->attempt, id->step, id->rank);
}

/* Parses the number at *text and advances *text past it and past the dot that must follow. */
static uint64_t take_number(const char **text, char closing)
{
    char *end = NULL;
    uint64_t number = strtoull(*text, &end, 10);
    *text = *end == closing && closing != '\0' ? end + 1 : end;
    return number;
}

bool spool_parse_name(const char *name, struct spool_id *ret_id)
{
    const char *at = name;
    struct spool_id id = { .job = take_number(&at, '.') };
    id.attempt = (uint32_t)take_number(&at, '.');
    id.step = (uint32_t)take_number(&at, '.');
    id.rank = (uint32_t)take_number(&at, '\0');
    /* Rejects everything that spool_name() would not write: signs, blanks, leading zeros, overflow. */
    char again[SPOOL_NAME_SIZE];
    spool_name(&id, again);
    if (strcmp(name, again) != 0)
        return false;
    *ret_id = id;
    return true;
}
