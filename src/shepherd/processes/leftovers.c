/* SPDX-License-Identifier: MIT */
/*
 * A file does not show which program created it. A file that was created while the job ran, belongs to its
 * user, and is no longer used by any process is attributed to the job; it may also come from another of the
 * user's programs that has ended meanwhile.
 */
#include "shepherd/processes/leftovers.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define TICK_MS 10 // the times of files may lag by this much

static void take_name(struct leftovers *leftovers, const char *name)
{
    (void)snprintf(leftovers->name, sizeof(leftovers->name), "%.*s", SHARED_MEMORY_NAME - 1, name);
    for (char *p = leftovers->name; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
}

void leftovers_find(const struct launch_spec *spec, int64_t started_wall_ms, struct leftovers *ret)
{
    static struct shared_memory found[SHARED_MEMORY_MAX];
    bool has_own = launch_ask(spec)->private_tmp && spec->mps == NULL;
    uint64_t largest = 0;
    *ret = (struct leftovers){ 0 };
    if (spec->is_exec_step || has_own || started_wall_ms == 0)
        return;
    size_t count = shared_memory_find(spec->uid, started_wall_ms - TICK_MS, found);
    for (size_t i = 0; i < count; i++) {
        ret->bytes += found[i].bytes;
        if (i > 0 && found[i].bytes <= largest)
            continue;
        largest = found[i].bytes;
        take_name(ret, found[i].name);
    }
    ret->count = (uint32_t)count;
}

void leftovers_describe(const struct leftovers *leftovers, char *text, size_t size)
{
    char bytes[32];
    size_t used = strlen(text);
    if (leftovers->bytes < SHARED_MEMORY_MIN)
        return;
    format_size(leftovers->bytes, bytes, sizeof(bytes));
    (void)snprintf(text + used, size - used, "%s%s of shared memory left on the node: %s%s%s",
        used > 0 ? "; " : "", bytes, leftovers->name, leftovers->count > 1 ? " and others" : "",
        strncmp(leftovers->name, "segment ", 8) == 0 ? "" : " in /dev/shm");
}
