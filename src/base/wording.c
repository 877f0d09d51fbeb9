/* SPDX-License-Identifier: MIT */
/* Passed in one variable: a line for each pair, with a tab between the two. */
#include "base/wording.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define VARIABLE  "MGPU_WORDING"
#define PAIRS_MAX 64 // of what another program wrote

static bool is_word_end(char c)
{
    return c == '\0' || strchr(" ,;:)'`", c) != NULL;
}

static const struct wording *find(const struct wording *wording, const char *text)
{
    for (; wording != NULL && wording->from != NULL; wording++) {
        size_t length = strlen(wording->from);
        if (length > 0 && strncmp(text, wording->from, length) == 0 && is_word_end(text[length]))
            return wording;
    }
    return NULL;
}

char *wording_apply(const struct wording *wording, const char *text)
{
    struct buffer result = { 0 };
    for (const char *p = text; *p != '\0';) {
        bool is_begin = p == text || is_word_end(p[-1]) || p[-1] == '(';
        const struct wording *pair = is_begin ? find(wording, p) : NULL;
        if (pair == NULL) {
            buffer_append(&result, p++, 1);
            continue;
        }
        buffer_append_text(&result, pair->to);
        p += strlen(pair->from);
    }
    return buffer_take(&result);
}

void wording_hand_over(const struct wording *wording)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    const char *before = getenv(VARIABLE);
    buffer_append_text(&text, before != NULL ? before : "");
    for (; wording->from != NULL; wording++) {
        buffer_append_text(&text, wording->from);
        buffer_append_text(&text, "\t");
        buffer_append_text(&text, wording->to);
        buffer_append_text(&text, "\n");
    }
    (void)setenv(VARIABLE, buffer_text(&text), 1);
}

struct wording *wording_take_over(void)
{
    const char *text = getenv(VARIABLE);
    size_t length = text != NULL ? strlen(text) : 0, n = 0;
    struct wording *wording = xcalloc(1, (PAIRS_MAX + 1) * sizeof(*wording) + length + 1);
    char *from = (char *)(wording + PAIRS_MAX + 1), *tab, *end;
    if (text != NULL)
        memcpy(from, text, length);
    (void)unsetenv(VARIABLE);
    while (n < PAIRS_MAX && (tab = strchr(from, '\t')) != NULL && (end = strchr(tab, '\n')) != NULL) {
        *tab = *end = '\0';
        wording[n++] = (struct wording){ .from = from, .to = tab + 1 };
        from = end + 1;
    }
    return wording;
}
