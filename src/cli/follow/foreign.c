/* SPDX-License-Identifier: MIT */
#include "cli/follow/foreign.h"

#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"

static int64_t owner_of(struct call *call, const char *path, const json_t *job)
{
    _cleanup_json_ json_t *found = NULL;
    struct error ignored = { 0 };
    if (job != NULL)
        return field_integer(job, "uid", -1);
    _cleanup_free_ char *request = xasprintf(API_PATH "/jobs/%s", path);
    return client_get(&call->client, request, &found, &ignored) == 0 ? field_integer(found, "uid", -1) : -1;
}

enum foreign_mode foreign_mode(struct call *call, const char *path, const json_t *job, int fd, bool is_screen)
{
    _cleanup_json_ json_t *self = NULL;
    struct error ignored = { 0 };
    if (isatty(fd) != 1)
        return FOREIGN_PASS;
    int64_t owner = owner_of(call, path, job);
    bool is_known = owner >= 0 && client_get(&call->client, API_PATH "/whoami", &self, &ignored) == 0;
    if (is_known && field_integer(self, "uid", -1) == owner)
        return FOREIGN_PASS;
    return is_screen ? FOREIGN_CONFINE : FOREIGN_STRIP;
}

void foreign_append(struct foreign *foreign, struct buffer *out, const void *bytes, size_t length)
{
    if (foreign->mode == FOREIGN_PASS)
        buffer_append(out, bytes, length);
    else if (foreign->mode == FOREIGN_STRIP)
        escapes_strip(&foreign->escapes, bytes, length, out);
    else
        escapes_confine(&foreign->escapes, bytes, length, out);
}

void foreign_filter(struct foreign *foreign, struct buffer *out, const void **bytes, size_t *length)
{
    if (foreign->mode == FOREIGN_PASS)
        return;
    out->length = 0;
    foreign_append(foreign, out, *bytes, *length);
    *bytes = out->bytes;
    *length = out->length;
}

void foreign_init(struct foreign foreign[2], struct call *call, const char *path, bool is_screen)
{
    for (int i = 0; i < 2; i++)
        foreign[i].mode = foreign_mode(call, path, NULL, i == 0 ? STDOUT_FILENO : STDERR_FILENO, is_screen);
}
