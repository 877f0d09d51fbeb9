/* SPDX-License-Identifier: MIT */
#include "lab/sim/by_id.h"

#include <stdlib.h>

static int compare(const void *key, const void *item)
{
    uint64_t id = *(const uint64_t *)key, other = *(const uint64_t *)item;
    return (id > other) - (id < other);
}

void *by_id_find(const void *items, size_t count, size_t size, uint64_t id)
{
    return count > 0 ? bsearch(&id, items, count, size, compare) : NULL;
}
