/* SPDX-License-Identifier: MIT */
#include "cli/show/enforced.h"

#include <stdlib.h>

#include "base/json/field.h"
#include "base/memory.h"

/* Resource limits and the corresponding features of a node. */
static const struct {
    const char *field, *feature, *what, *option;
} rows[] = {
    { "memory", "memory", "memory is", "-M" },
    { "cpus", "cpu", "CPUs are", "-c" },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const json_t *find_named(const json_t *list, const char *name)
{
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(list, index, item)
    {
        if (field_is(item, "name", name))
            return item;
    }
    return NULL;
}

bool enforced_is_asked(const json_t *job)
{
    for (size_t i = 0; i < ROWS; i++)
        if (field_is_known(job, rows[i].field))
            return field_is_known(job, "node");
    return false;
}

char *enforced_warning(const json_t *job, const json_t *nodes)
{
    const char *name = field_text(job, "node");
    const json_t *node = name == NULL ? NULL : find_named(nodes, name);
    for (size_t i = 0; i < ROWS; i++) {
        const json_t *feature = find_named(json_object_get(node, "features"), rows[i].feature);
        if (!field_is_known(job, rows[i].field) || feature == NULL ||
            json_is_true(json_object_get(feature, "on")))
            continue;
        _cleanup_free_ char *shown = field_shown(job, "node");
        return xasprintf("its %s not enforced: node %s only uses %s for placement (see mgpu doctor)",
            rows[i].what, shown, rows[i].option);
    }
    return NULL;
}
