/* SPDX-License-Identifier: MIT */
#include "wire/resource_limits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "base/parse.h"
#include "job/launch.h"

#define UNLIMITED "unlimited"
#define COUNT_MAX (INT64_C(1) << 40)

/* Names as in limits.conf(5) and ulimit. Sizes are in bytes, with a unit. */
static const struct {
    const char *name;
    __rlimit_resource_t resource;
    bool is_size;
} resources[] = {
    { "core", RLIMIT_CORE, true },
    { "memlock", RLIMIT_MEMLOCK, true },
    { "nofile", RLIMIT_NOFILE, false },
    { "stack", RLIMIT_STACK, true },
};
#define RESOURCES (sizeof(resources) / sizeof(resources[0]))

static int read_value(const char *text, const char *option, bool is_size, rlim_t *ret, struct error *err)
{
    uint64_t bytes = 0;
    int64_t count = 0;
    int r = 0;
    *ret = RLIM_INFINITY;
    if (strcmp(text, UNLIMITED) == 0)
        return 0;
    if (strcmp(text, "0") != 0)
        r = is_size ? parse_size(text, option, &bytes, err)
                    : parse_integer(text, option, 1, COUNT_MAX, &count, err);
    *ret = is_size ? bytes : (rlim_t)count;
    return r;
}

/* "nofile=4096:65536"; `entry` is changed. */
static int read_entry(
    char *entry, const char *option, size_t *ret_index, struct rlimit *ret, struct error *err)
{
    char *value = strchr(entry, '=');
    size_t index = 0, length = value != NULL ? (size_t)(value - entry) : strlen(entry);
    while (index < RESOURCES &&
           (strlen(resources[index].name) != length || strncmp(resources[index].name, entry, length) != 0))
        index++;
    if (value == NULL || index == RESOURCES) {
        (void)error_set(err, -EINVAL, "%s: '%.60s' is not a limit", option, entry);
        return error_hint(err, "for example: memlock=unlimited,nofile=4096:65536,stack=64M,core=0");
    }
    char *hard = strchr(++value, ':');
    if (hard != NULL)
        *hard++ = '\0';
    int r = read_value(value, option, resources[index].is_size, &ret->rlim_cur, err);
    if (r == 0)
        r = read_value(hard != NULL ? hard : value, option, resources[index].is_size, &ret->rlim_max, err);
    if (r == 0 && ret->rlim_cur > ret->rlim_max)
        return error_set(err, -EINVAL, "%s: the soft limit %s of %s is above the hard limit %s", option,
            value, resources[index].name, hard);
    *ret_index = index;
    return r;
}

int resource_limits_parse(const char *list, const char *option, struct record_list *ret, struct error *err)
{
    _cleanup_free_ struct launch_limit *limits = NULL;
    _cleanup_free_ char *copy = xstrdup(list);
    char *rest = copy;
    size_t count = 0;
    for (char *entry = NULL; (entry = strsep(&rest, ",")) != NULL; count++) {
        struct rlimit limit;
        size_t index = 0;
        int r = count < LAUNCH_LIMITS_MAX
                    ? read_entry(entry, option, &index, &limit, err)
                    : error_set(err, -E2BIG, "%s: more than %u limits", option, LAUNCH_LIMITS_MAX);
        if (r < 0)
            return r;
        limits = xreallocarray(limits, count + 1, sizeof(*limits));
        limits[count] =
            (struct launch_limit){ (uint32_t)resources[index].resource, limit.rlim_cur, limit.rlim_max };
    }
    if (ret != NULL)
        *ret = (struct record_list){ take_ptr(limits), count };
    return 0;
}
