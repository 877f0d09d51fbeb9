/* SPDX-License-Identifier: MIT */
/* Lists always have a terminating NULL, so they can be passed to execve. */
#include "base/strings.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define NEAREST_WORD_MAX 40
#define ELLIPSIS         "…"

void strings_take(struct strings *strings, char *text)
{
    /* Grow at powers of two; a list of n items always has room for n + 1 pointers. */
    size_t needed = strings->count + 2;
    if (strings->items == NULL || (needed & (needed - 1)) == 0)
        strings->items = xreallocarray(strings->items, needed * 2, sizeof(char *));
    strings->items[strings->count++] = text;
    strings->items[strings->count] = NULL;
}

void strings_add(struct strings *strings, const char *text)
{
    strings_take(strings, xstrdup(text));
}

static bool is_entry(const char *entry, const char *name, size_t length)
{
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

void strings_set_env(struct strings *strings, const char *name, const char *value)
{
    size_t length = strlen(name);
    char *entry = xasprintf("%s=%s", name, value);
    for (size_t i = 0; i < strings->count; i++) {
        if (is_entry(strings->items[i], name, length)) {
            free(strings->items[i]);
            strings->items[i] = entry;
            return;
        }
    }
    strings_take(strings, entry);
}

/* An entry of two concatenated lists. */
struct env_entry {
    const char *text;
    size_t length; // of its name
    size_t at;
};

static int compare_names(const struct env_entry *a, const struct env_entry *b)
{
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static int by_name(const void *left, const void *right)
{
    const struct env_entry *a = left, *b = right;
    int order = compare_names(a, b);
    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

static size_t list_entries(const struct strings *list, size_t first, struct env_entry *entries)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        if (equals != NULL)
            entries[count++] =
                (struct env_entry){ list->items[i], (size_t)(equals - list->items[i]), first + i };
    }
    return count;
}

void strings_merge_env(struct strings *strings, const struct strings *more)
{
    size_t n_old = strings->count;
    _cleanup_free_ struct env_entry *entries = xcalloc(n_old + more->count + 1, sizeof(*entries));
    const char **texts =
        xcalloc(more->count + 1, sizeof(*texts)); // of names that are new, by the first of their places
    size_t count = list_entries(strings, 0, entries);
    count += list_entries(more, n_old, entries + count);
    qsort(entries, count, sizeof(*entries), by_name);
    for (size_t i = 0, end = 0; i < count; i = end) {
        while (end < count && compare_names(&entries[i], &entries[end]) == 0)
            end++;
        const struct env_entry *first = &entries[i], *last = &entries[end - 1];
        if (last->at < n_old)
            continue;
        if (first->at >= n_old) {
            texts[first->at - n_old] = last->text;
            continue;
        }
        free(strings->items[first->at]);
        strings->items[first->at] = xstrdup(last->text);
    }
    for (size_t i = 0; i < more->count; i++)
        if (texts[i] != NULL)
            strings_add(strings, texts[i]);
    free(texts);
}

const char *strings_get_env(const struct strings *strings, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < strings->count; i++)
        if (is_entry(strings->items[i], name, length))
            return strings->items[i] + length + 1;
    return NULL;
}

bool strings_have(const struct strings *strings, const char *text)
{
    for (size_t i = 0; i < strings->count; i++)
        if (strcmp(strings->items[i], text) == 0)
            return true;
    return false;
}

void strings_copy(struct strings *to, const struct strings *from)
{
    strings_clear(to);
    for (size_t i = 0; i < from->count; i++)
        strings_add(to, from->items[i]);
}

void strings_clear(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct strings){ 0 };
}

bool text_equal(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

static bool is_plain(const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_";
    return *word != '\0' && strspn(word, plain) == strlen(word);
}

char *text_quote_command(const struct strings *command)
{
    struct buffer out = { 0 };
    for (size_t i = 0; i < command->count; i++) {
        const char *word = command->items[i];
        if (i > 0)
            buffer_append_text(&out, " ");
        if (is_plain(word)) {
            buffer_append_text(&out, word);
            continue;
        }
        buffer_append_text(&out, "'");
        for (const char *p = word; *p != '\0'; p++) {
            if (*p == '\'')
                buffer_append_text(&out, "'\\''");
            else
                buffer_append(&out, p, 1);
        }
        buffer_append_text(&out, "'");
    }
    return buffer_take(&out);
}

/* Length of the well-formed UTF-8 sequence at `p` (RFC 3629), 0 when there is none. */
static size_t utf8_length(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return (p[1] & 0xc0) == 0x80 ? 2 : 0;
    if (p[0] >= 0xe0 && p[0] <= 0xef) {
        unsigned low = p[0] == 0xe0 ? 0xa0 : 0x80, high = p[0] == 0xed ? 0x9f : 0xbf;
        return p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        unsigned low = p[0] == 0xf0 ? 0x90 : 0x80, high = p[0] == 0xf4 ? 0x8f : 0xbf;
        return p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 && (p[3] & 0xc0) == 0x80 ? 4 : 0;
    }
    return 0;
}

/* Of a sequence of three bytes: characters that change the direction of surrounding text or end a line
 * (U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069), and the invisible mark U+FEFF; of two bytes,
 * U+061C. */
static bool is_deceptive(const unsigned char *p, size_t n)
{
    if (n == 2)
        return p[0] == 0xd8 && p[1] == 0x9c;
    if (n != 3)
        return false;
    unsigned point = (p[0] & 0x0fU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
    return point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}

bool text_is_shown(const char *character, size_t length)
{
    unsigned char p[5] = { 0 };
    if (length == 0 || length > 4)
        return false;
    memcpy(p, character, length);
    bool is_control = p[0] < 0x20 || p[0] == 0x7f || (length == 2 && p[0] == 0xc2 && p[1] < 0xa0);
    return utf8_length(p) == length && !is_control && !is_deceptive(p, length);
}

/* At most `limit` bytes of the text are read; the result has at most `size`. */
static char *escape(const char *text, size_t limit, size_t size)
{
    struct buffer out = { 0 };
    const unsigned char *p = (const unsigned char *)text, *end = p + strnlen(text, limit);
    bool cut = *end != '\0';
    size_t room = 0; // bytes of the result behind which an ellipsis still fits
    while (p < end) {
        size_t n = utf8_length(p);
        /* C1 controls (U+0080 to U+009F) drive terminals as well as C0 ones do. */
        bool is_control = *p < 0x20 || *p == 0x7f || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
        if (n == 0 || is_control || is_deceptive(p, n)) {
            buffer_printf(&out, "\\x%02x", (unsigned)*p);
            p++;
        } else if (n > (size_t)(end - p)) {
            break;
        } else {
            buffer_append(&out, p, n);
            p += n;
        }
        if (out.length <= size - strlen(ELLIPSIS))
            room = out.length;
    }
    cut = cut || out.length > size;
    if (cut && out.length > room)
        out.length = room;
    if (cut)
        buffer_append_text(&out, ELLIPSIS);
    return buffer_take(&out);
}

char *text_escape(const char *text, size_t limit)
{
    return escape(text, limit, SIZE_MAX);
}

char *text_escape_fit(const char *text, size_t size)
{
    assert(size >= strlen(ELLIPSIS));
    return escape(text, size, size);
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Optimal string alignment distance: edits and swaps of neighbours. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t table[NEAREST_WORD_MAX + 1][NEAREST_WORD_MAX + 1];
    for (size_t i = 0; i <= a_length; i++)
        table[i][0] = i;
    for (size_t j = 0; j <= b_length; j++)
        table[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = a[i - 1] != b[j - 1];
            table[i][j] = min3(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + change);
            bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swap && table[i - 2][j - 2] + 1 < table[i][j])
                table[i][j] = table[i - 2][j - 2] + 1;
        }
    }
    return table[a_length][b_length];
}

const char *text_nearest(const char *word, const char *const *candidates)
{
    const char *best = NULL;
    size_t length = strlen(word), best_distance = SIZE_MAX;
    if (length > NEAREST_WORD_MAX)
        return NULL;
    for (; *candidates != NULL; candidates++) {
        size_t candidate_length = strlen(*candidates);
        if (candidate_length > NEAREST_WORD_MAX)
            continue;
        bool is_start = length >= 2 && strncmp(word, *candidates, length) == 0;
        size_t d = is_start ? 1 : distance(word, length, *candidates, candidate_length);
        bool is_likelier = d == best_distance && best[0] != word[0] && (*candidates)[0] == word[0];
        if (d < best_distance || is_likelier) {
            best_distance = d;
            best = *candidates;
        }
    }
    size_t allowed = length < 3 ? 1 : (length + 2) / 3;
    return best_distance <= allowed ? best : NULL;
}

static const char utf8[] = "\xef\xbb\xbf";
static const char *const wide[] = { "\xff\xfe", "\xfe\xff" };

size_t text_mark_length(const void *bytes, size_t length)
{
    const size_t mark = sizeof(utf8) - 1;
    return length >= mark && memcmp(bytes, utf8, mark) == 0 ? mark : 0;
}

bool text_mark_is_wide(const void *bytes, size_t length)
{
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (length >= 2 && memcmp(bytes, wide[i], 2) == 0)
            return true;
    return false;
}

int text_mark_refuse(const char *name, struct error *err)
{
    (void)error_set(err, -EINVAL, "%.200s is UTF-16 text, and UTF-8 is expected", name);
    return error_hint(err, "iconv -f UTF-16 -t UTF-8 %.100s > FILE converts it", name);
}
