/* SPDX-License-Identifier: MIT */
/* Separate from the client's configuration, which belongs to the user and is never written by a program. */
#include "cli/top/prefs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/parse.h"

#define FILE_NAME      "top"
#define FILE_BYTES_MAX (64U << 10)

void top_prefs_init(struct top_prefs *prefs)
{
    *prefs = (struct top_prefs){ .columns = xstrdup(TOP_COLUMNS), .refresh_ms = REFRESH_MS };
    (void)order_parse(TOP_ORDER, &prefs->order, NULL);
}

static void take_theme(struct top_prefs *prefs, const char *value)
{
    int theme = top_theme_find(value);
    prefs->theme = theme >= 0 ? theme : prefs->theme;
}

static void take_graph(struct top_prefs *prefs, const char *value)
{
    if (graph_parse(value, &prefs->graph, NULL) == 0)
        prefs->has_graph = true;
}

static void take_columns(struct top_prefs *prefs, const char *value)
{
    if (*value == '\0')
        return;
    free(prefs->columns);
    prefs->columns = xstrdup(value);
}

static void take_order(struct top_prefs *prefs, const char *value)
{
    (void)order_parse(value, &prefs->order, NULL);
}

static void take_refresh(struct top_prefs *prefs, const char *value)
{
    int64_t seconds = 0;
    if (parse_integer(value, "refresh", REFRESH_MIN_MS / 1000, REFRESH_MAX_MS / 1000, &seconds, NULL) == 0)
        prefs->refresh_ms = seconds * 1000;
}

static void take_jobs(struct top_prefs *prefs, const char *value)
{
    prefs->is_mine = strcmp(value, "mine") == 0;
}

static const struct {
    const char *key;
    void (*take)(struct top_prefs *prefs, const char *value);
} keys[] = {
    { "theme", take_theme },
    { "graph", take_graph },
    { "columns", take_columns },
    { "sort", take_order },
    { "refresh", take_refresh },
    { "jobs", take_jobs },
};

void top_prefs_read(struct top_prefs *prefs, const char *text)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;) {
        char *value = strstr(line, ": ");
        if (value == NULL)
            continue;
        *value = '\0';
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            if (strcmp(line, keys[i].key) == 0)
                keys[i].take(prefs, value + 2);
    }
}

char *top_prefs_text(const struct top_prefs *prefs)
{
    struct buffer out = { 0 };
    _cleanup_free_ char *order = order_text(&prefs->order);
    buffer_printf(&out, "theme: %s\n", top_themes[prefs->theme].name);
    if (prefs->has_graph)
        buffer_printf(&out, "graph: %s\n", graph_name(prefs->graph));
    buffer_printf(&out, "columns: %s\nsort: %s\nrefresh: %d\njobs: %s\n", prefs->columns, order,
        (int)(prefs->refresh_ms / 1000), prefs->is_mine ? "mine" : "all");
    return buffer_take(&out);
}

/* The caller frees it; NULL without a home. */
static char *directory(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state != NULL && state[0] == '/')
        return xasprintf("%s/mgpu", state);
    return home == NULL || home[0] != '/' ? NULL : xasprintf("%s/.local/state/mgpu", home);
}

void top_prefs_load(struct top_prefs *prefs)
{
    _cleanup_free_ char *place = directory();
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_(closep) int fd = place == NULL ? -1 : open(place, O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && file_read(fd, FILE_NAME, FILE_BYTES_MAX, &text) >= 0)
        top_prefs_read(prefs, buffer_text(&text));
}

int top_prefs_save(const struct top_prefs *prefs, struct error *err)
{
    _cleanup_free_ char *place = directory(), *text = top_prefs_text(prefs);
    if (place == NULL)
        return error_set(err, -ENOENT, "no home directory to store this in");
    int r = make_directories(place, 0700);
    _cleanup_(closep) int fd = r < 0 ? -1 : open(place, O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && fd < 0)
        r = -errno;
    if (r == 0)
        r = file_write(fd, FILE_NAME, text, strlen(text), false);
    return r < 0 ? error_set_errno(err, r, "cannot write %s/" FILE_NAME, place) : 0;
}

void top_prefs_clear(struct top_prefs *prefs)
{
    free(prefs->columns);
    *prefs = (struct top_prefs){ 0 };
}
