/* SPDX-License-Identifier: MIT */
/* Sums by user, largest first; the files of one user serve as an example of what to remove. */
#include "cli/cluster/shared_memory_text.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/node/shared_memory.h"
#include "base/parse.h"
#include "base/strings.h"

#define USERS_SHOWN 3
#define NAME_SHOWN  (4 * SHARED_MEMORY_NAME) // bytes of an escaped name

static int by_size(const void *a, const void *b)
{
    const struct shared_memory *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static char *name_of(uint32_t uid)
{
    const struct passwd *user = getpwuid((uid_t)uid);
    return user != NULL ? text_escape(user->pw_name, NAME_SHOWN) : xasprintf("uid %" PRIu32, uid);
}

/* "mgpu-ta 1.5 GiB in 2 (torch_4711)" for the owner of the first item; removes the owner's other items from
 * the list. */
static size_t write_user(struct buffer *text, struct shared_memory *items, size_t count)
{
    const struct shared_memory first = items[0];
    uint64_t bytes = 0;
    size_t left = 0, owned = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].uid != first.uid) {
            items[left++] = items[i];
            continue;
        }
        bytes += items[i].bytes;
        owned++;
    }
    char size[32];
    format_size(bytes, size, sizeof(size));
    _cleanup_free_ char *user = name_of(first.uid);
    _cleanup_free_ char *name = text_escape(first.name, NAME_SHOWN);
    buffer_printf(text, "%s %s in %zu (%s%s)", user, size, owned, name, owned > 1 ? ", ..." : "");
    return left;
}

static uint64_t bytes_of(const struct shared_memory *items, size_t count, uint32_t uid)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += items[i].uid == uid ? items[i].bytes : 0;
    return bytes;
}

/* Users with small amounts, such as the locks that podman keeps there, are not listed. */
static size_t leave_out_little(struct shared_memory *items, size_t count)
{
    _cleanup_free_ bool *is_little = xcalloc(count + 1, sizeof(*is_little));
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        is_little[i] = bytes_of(items, count, items[i].uid) < SHARED_MEMORY_MIN;
    for (size_t i = 0; i < count; i++)
        if (!is_little[i])
            items[kept++] = items[i];
    return kept;
}

char *shared_memory_text(void)
{
    _cleanup_free_ struct shared_memory *items = xcalloc(SHARED_MEMORY_MAX, sizeof(*items));
    size_t count = shared_memory_find(geteuid() == 0 ? SHARED_MEMORY_ALL : geteuid(), 0, items);
    struct buffer text = { 0 };
    count = leave_out_little(items, count);
    if (count == 0)
        return NULL;
    qsort(items, count, sizeof(*items), by_size);
    buffer_append_text(&text, "on this machine, no process uses: ");
    for (size_t shown = 0; count > 0 && shown < USERS_SHOWN; shown++) {
        buffer_append_text(&text, shown > 0 ? ", " : "");
        count = write_user(&text, items, count);
    }
    if (count > 0)
        buffer_printf(&text, ", and %zu of other users", count);
    return buffer_take(&text);
}
