/* SPDX-License-Identifier: MIT */
#include "base/containers/resend.h"

#include <string.h>

void resend_init(struct resend *resend, uint8_t *ring, size_t size)
{
    *resend = (struct resend){ .ring = ring, .size = size };
}

size_t resend_room(const struct resend *resend)
{
    return resend->size - (size_t)(resend->end - resend->begin);
}

bool resend_put(struct resend *resend, const void *bytes, size_t length)
{
    if (length > resend_room(resend))
        return false;
    size_t at = (size_t)(resend->end % resend->size), first = resend->size - at;
    if (first > length)
        first = length;
    if (length > 0)
        memcpy(resend->ring + at, bytes, first);
    if (length > first)
        memcpy(resend->ring, (const uint8_t *)bytes + first, length - first);
    resend->end += length;
    return true;
}

size_t resend_next(const struct resend *resend, const uint8_t **ret)
{
    size_t at = (size_t)(resend->sent % resend->size), left = (size_t)(resend->end - resend->sent);
    *ret = resend->ring + at;
    return left < resend->size - at ? left : resend->size - at;
}

void resend_sent(struct resend *resend, size_t length)
{
    resend->sent += length;
}

bool resend_confirm(struct resend *resend, uint64_t position)
{
    if (position > resend->sent)
        return false;
    if (position > resend->begin)
        resend->begin = position;
    return true;
}

bool resend_rewind(struct resend *resend, uint64_t position)
{
    if (position < resend->begin || position > resend->sent)
        return false;
    resend->begin = resend->sent = position;
    return true;
}
