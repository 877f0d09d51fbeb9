/* SPDX-License-Identifier: MIT */
/* Any bytes as what lies in the spool or comes from a step: names of entries, heads of terminal frames,
 * numbers in them. The records of spool files are in record.c, status reports of jobs in status_reports.c. */
#include <string.h>

#include "base/memory.h"
#include "base/spool.h"
#include "base/terminal.h"
#include "fuzz.h"

static void try_name(const char *text)
{
    struct spool_id id;
    char name[SPOOL_NAME_SIZE];
    if (!spool_parse_name(text, &id))
        return;
    spool_name(&id, name);
    if (strcmp(name, text) != 0)
        abort();
}

static void try_frames(const uint8_t *bytes, size_t length)
{
    while (length >= TERMINAL_HEAD_SIZE) {
        uint8_t type, head[TERMINAL_HEAD_SIZE];
        size_t n;
        if (!terminal_read_head(bytes, &type, &n))
            return;
        if (n > TERMINAL_PAYLOAD_MAX)
            abort();
        terminal_head(head, (enum terminal_frame)type, n);
        if (memcmp(head, bytes, sizeof(head)) != 0)
            abort();
        bytes += TERMINAL_HEAD_SIZE, length -= TERMINAL_HEAD_SIZE;
        n = n < length ? n : length;
        if (n >= 8) {
            uint8_t again[8];
            terminal_put(again, sizeof(again), terminal_get(bytes, sizeof(again)));
            if (memcmp(again, bytes, sizeof(again)) != 0)
                abort();
        }
        bytes += n, length -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = xstrndup((const char *)bytes, length);
    try_name(text);
    try_frames(bytes, length);
    free(text);
    return 0;
}
