/* SPDX-License-Identifier: MIT */
#include "cli/follow/log_elements.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "job/array.h"

/* Both lists are ascending, and the waiting elements are a part of all. */
static bool is_waiting(const struct array *waiting, uint32_t index)
{
    for (size_t i = 0; i < waiting->count; i++) {
        const struct array_range *range = &waiting->ranges[i];
        if (index >= range->first && index <= range->last)
            return (index - range->first) % range->step == 0;
    }
    return false;
}

static size_t add_elements(
    const char *job, const struct array *all, const struct array *waiting, struct strings *ret)
{
    size_t before = ret->count;
    for (size_t i = 0; i < all->count; i++) {
        const struct array_range *range = &all->ranges[i];
        for (uint64_t index = range->first; index <= range->last; index += range->step)
            if (!is_waiting(waiting, (uint32_t)index))
                strings_take(ret, xasprintf("%s.%" PRIu64, job, index));
    }
    return ret->count - before;
}

static int add_array(
    const char *job, const json_t *object, bool is_follow, struct strings *ret, struct error *err)
{
    struct array all = { 0 }, waiting = { 0 };
    const char *left = is_follow ? "" : field_text(object, "array_left");
    int r = parse_array(field_text(object, "array"), &all, err);
    if (r == 0 && left[0] != '\0')
        r = parse_array(left, &waiting, err);
    if (r == 0 && add_elements(job, &all, &waiting, ret) == 0) {
        r = error_set(err, -ENOENT, "job %s has no output: none of its elements has started", job);
        (void)error_hint(err, "mgpu why %s", job);
    }
    array_clear(&all);
    array_clear(&waiting);
    return r;
}

int log_elements(struct client *client, const struct strings *jobs, bool is_follow, struct strings *ret,
    bool *ret_has_array, struct error *err)
{
    int r = 0;
    *ret_has_array = false;
    for (size_t i = 0; r == 0 && i < jobs->count; i++) {
        const char *job = jobs->items[i];
        _cleanup_json_ json_t *object = NULL;
        _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", job);
        if (strchr(job, '.') == NULL)
            r = client_get(client, path, &object, err);
        bool is_array = r == 0 && json_is_string(json_object_get(object, "array"));
        *ret_has_array |= is_array;
        if (is_array)
            r = add_array(job, object, is_follow, ret, err);
        else if (r == 0)
            strings_add(ret, job);
    }
    return r;
}
