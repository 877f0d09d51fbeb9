/* SPDX-License-Identifier: MIT */
/* Each update is built in memory and then written over the old one, to avoid flickering. */
#include "cli/follow/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parse.h"

#define INTERVAL_MS     2000
#define INTERVAL_MIN_MS 100

int watch_parse(const char *value, int64_t *ret_ms, struct error *err)
{
    int64_t ms = INTERVAL_MS;
    int r = value == NULL ? 0 : parse_duration(value, "-w", &ms, err);
    if (r < 0)
        return r;
    if (ms < INTERVAL_MIN_MS || ms > INT32_MAX)
        return error_set(err, -ERANGE, "-w: %s is not between 0.1 seconds and 24 days", value);
    *ret_ms = ms;
    return 0;
}

/* Home, every line with its rest cleared, then the rest of the screen. */
static void paint(const char *picture, bool is_tty)
{
    if (is_tty)
        (void)fputs("\033[H", stdout);
    for (const char *line = picture; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        (void)printf("%.*s%s\n", (int)length, line, is_tty ? "\033[K" : "");
        line += length + (line[length] == '\n');
    }
    (void)fputs(is_tty ? "\033[J" : "\n", stdout);
    (void)fflush(stdout);
}

int watch_run(struct call *call, int64_t interval_ms, watch_show_fn show, void *arg, struct error *err)
{
    bool is_tty = isatty(STDOUT_FILENO) == 1;
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    if (is_tty)
        (void)fputs("\033[2J", stdout);
    for (;;) {
        _cleanup_free_ char *picture = NULL;
        size_t size = 0;
        FILE *memory = open_memstream(&picture, &size);
        if (memory == NULL)
            return error_set_errno(err, -errno, "cannot draw the screen");
        int r = show(arg, memory, err);
        (void)fclose(memory);
        if (r < 0)
            return r;
        paint(picture, is_tty);
        if (ferror(stdout) != 0)
            return error_set(err, -EIO, "cannot write the output");
        (void)poll(NULL, 0, (int)interval_ms);
    }
}
