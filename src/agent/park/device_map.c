/* SPDX-License-Identifier: MIT */
#include "agent/park/device_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "job/event.h"
#include "wire/message.h"

#define UUID_PREFIX "GPU-"
#define UUID_DIGITS 32U

/* "GPU-1b2c...": 32 hexadecimal digits, with hyphens between some. */
static bool parse_uuid(const char *text, unsigned char bytes[16])
{
    size_t n = 0;
    if (text == NULL || strncmp(text, UUID_PREFIX, strlen(UUID_PREFIX)) != 0)
        return false;
    memset(bytes, 0, 16);
    for (text += strlen(UUID_PREFIX); *text != '\0'; text++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *text | 0x20);
        if (*text == '-')
            continue;
        if (digit == NULL || n == UUID_DIGITS)
            return false;
        bytes[n / 2] = (unsigned char)(bytes[n / 2] << 4 | (digit - digits));
        n++;
    }
    return n == UUID_DIGITS;
}

static size_t find_home(const struct strings *home, const char *uuid)
{
    size_t i = 0;
    while (i < home->count && !text_equal(home->items[i], uuid))
        i++;
    return i;
}

static size_t find_grant(const struct record_list *grants, const char *uuid)
{
    const struct gpu_grant *items = grants->items;
    size_t i = 0;
    while (i < grants->count && !text_equal(items[i].uuid, uuid))
        i++;
    return i;
}

/* The next GPU that the job has left, which is mapped to one that it has now. */
static const char *next_left(const struct strings *home, const struct record_list *grants, size_t *at)
{
    while (*at < home->count && find_grant(grants, home->items[*at]) < grants->count)
        ++*at;
    return *at < home->count ? home->items[(*at)++] : NULL;
}

static int add_pair(struct cuda_gpu_pair *pair, const char *from, const char *to, struct error *err)
{
    if (!parse_uuid(from, pair->from))
        return error_set(err, -EOPNOTSUPP, "GPU %s has no UUID that can be passed to the driver",
            from != NULL ? from : "without a name");
    return parse_uuid(to, pair->to)
               ? 0
               : error_set(err, -EOPNOTSUPP, "GPU %s has no UUID that can be passed to the driver",
                     to != NULL ? to : "without a name");
}

int device_map_make(const struct record_list *gpus, const struct strings *home,
    const struct record_list *grants, struct cuda_gpu_pair **ret, size_t *ret_count, struct error *err)
{
    const struct gpu_state *states = gpus->items;
    const struct gpu_grant *now = grants->items;
    _cleanup_free_ struct cuda_gpu_pair *pairs = xcalloc(gpus->count + 1, sizeof(*pairs));
    size_t count = 0, at = 0;
    bool is_moving = false;
    if (home->count == 0)
        return 0;
    if (home->count != grants->count)
        return error_set(err, -EIO, "it had %zu GPUs, and has %zu now", home->count, grants->count);
    for (size_t i = 0; i < gpus->count; i++) {
        const char *uuid = states[i].uuid, *to = uuid;
        size_t was = find_home(home, uuid);
        if (!gpu_vendor_of(states[i].vendor)->can_park || states[i].parent != NULL)
            continue;
        if (was < home->count)
            to = now[was].uuid;
        else if (find_grant(grants, uuid) < grants->count)
            to = next_left(home, grants, &at);
        is_moving = is_moving || !text_equal(uuid, to);
        int r = add_pair(&pairs[count++], uuid, to, err);
        if (r < 0)
            return r;
    }
    if (!is_moving)
        return 0;
    *ret = take_ptr(pairs);
    *ret_count = count;
    return 0;
}
