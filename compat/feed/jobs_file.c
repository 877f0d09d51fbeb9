/* SPDX-License-Identifier: MIT */
#include "compat/feed/jobs_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/parse.h"
#include "cli/term/words.h"
#include "job/ask.h"

#define FNV_PRIME 1099511628211ULL
#define BLANKS    " \t\r"
#define FIELDS    5

enum field { FIELD_PRIORITY, FIELD_SCRIPT, FIELD_CONDA, FIELD_ARGUMENTS, FIELD_GPUS };

static const char *const field_names[FIELDS] = { "priority", "script_path", "conda_env", "arguments",
    "allowed_gpus" };

static char *trim(const char *text, size_t length)
{
    size_t skipped = strspn(text, BLANKS);
    skipped = skipped < length ? skipped : length;
    while (length > skipped && strchr(BLANKS, text[length - 1]) != NULL)
        length--;
    return xstrndup(text + skipped, length - skipped);
}

/* Reads the quoted field at *text, and sets *text behind the following comma, or to NULL after the last
 * field. */
static int take_quoted(const char **text, const char *name, char **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer value = { 0 };
    const char *p = *text + 1;
    for (; *p != '\0'; p++) {
        if (p[0] == '"' && p[1] != '"')
            break;
        p += p[0] == '"';
        buffer_append(&value, p, 1);
    }
    if (*p == '\0')
        return error_set(err, -EINVAL, "%s: the quote is not closed", name);
    p += 1 + strspn(p + 1, BLANKS);
    if (*p != '\0' && *p != ',') {
        (void)error_set(err, -EINVAL, "%s: something follows the closing quote", name);
        return error_hint(err, "quote the whole field, and double any quotes in it");
    }
    *text = *p == ',' ? p + 1 : NULL;
    *ret = buffer_take(&value);
    return 0;
}

static int take_field(const char **text, enum field field, char **ret, struct error *err)
{
    const char *start = *text + strspn(*text, BLANKS);
    if (*start == '"') {
        int r = take_quoted(&start, field_names[field], ret, err);
        *text = start;
        return r;
    }
    size_t length = field == FIELD_GPUS ? strlen(*text) : strcspn(*text, ",");
    *ret = trim(*text, length);
    *text = (*text)[length] == ',' ? *text + length + 1 : NULL;
    return 0;
}

static char *take_unless_empty(char **field)
{
    return *field != NULL && (*field)[0] != '\0' ? take_ptr(*field) : NULL;
}

static int check_gpus(const char *gpus, struct error *err)
{
    uint32_t *ids = NULL;
    size_t count = 0;
    int r = gpus == NULL ? 0 : parse_id_list(gpus, "allowed_gpus", ASK_GPU_INDEX_MAX, &ids, &count, err);
    free(ids);
    return r;
}

static int fill(char **fields, struct feed_line *line, struct error *err)
{
    line->script = take_unless_empty(&fields[FIELD_SCRIPT]);
    line->conda = take_unless_empty(&fields[FIELD_CONDA]);
    line->arguments = take_unless_empty(&fields[FIELD_ARGUMENTS]);
    line->gpus = take_unless_empty(&fields[FIELD_GPUS]);
    if (line->script == NULL)
        return error_set(err, -EINVAL, "script_path is missing: a line is priority,script_path,...");
    int r = parse_integer(
        fields[FIELD_PRIORITY], "priority", -FEED_PRIORITY_MAX, FEED_PRIORITY_MAX, &line->priority, err);
    if (r == 0)
        r = check_gpus(line->gpus, err);
    if (r == 0 && line->arguments != NULL) {
        r = words_split_all(line->arguments, &line->words, err);
        r = r < 0 ? error_wrap(err, "arguments") : 0;
    }
    return r;
}

int feed_line_parse(const char *text, struct feed_line *ret, struct error *err)
{
    _cleanup_feed_line_ struct feed_line line = { 0 };
    char *fields[FIELDS] = { 0 };
    const char *rest = text + strspn(text, BLANKS);
    int r = 0;
    if (*rest == '#' || *rest == '\0')
        return 0;
    for (int i = 0; r == 0 && rest != NULL && i < FIELDS; i++)
        r = take_field(&rest, (enum field)i, &fields[i], err);
    if (r == 0 && rest != NULL)
        r = error_set(err, -EINVAL, "allowed_gpus: unexpected text follows the closing quote");
    if (r == 0)
        r = fill(fields, &line, err);
    for (int i = 0; i < FIELDS; i++)
        free(fields[i]);
    if (r < 0)
        return r;
    *ret = line;
    line = (struct feed_line){ 0 };
    return 1;
}

static void add_field(struct buffer *out, const char *value)
{
    size_t length = strlen(value);
    bool is_plain =
        strpbrk(value, ",\"") == NULL &&
        (length == 0 || (strchr(BLANKS, value[0]) == NULL && strchr(BLANKS, value[length - 1]) == NULL));
    if (is_plain) {
        buffer_append_text(out, value);
        return;
    }
    buffer_append_text(out, "\"");
    for (; *value != '\0'; value++)
        buffer_append(out, *value == '"' ? "\"\"" : value, *value == '"' ? 2 : 1);
    buffer_append_text(out, "\"");
}

int feed_line_format(const struct feed_line *line, char **ret, struct error *err)
{
    const char *const values[] = { line->script, line->conda, line->arguments };
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_feed_line_ struct feed_line again = { 0 };
    buffer_printf(&out, "%" PRId64, line->priority);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i] != NULL && strpbrk(values[i], "\n\r") != NULL)
            return error_set(err, -EINVAL, "%s: a line of the jobs file cannot contain a line break",
                field_names[FIELD_SCRIPT + i]);
        buffer_append_text(&out, ",");
        add_field(&out, values[i] != NULL ? values[i] : "");
    }
    buffer_printf(&out, ",%s", line->gpus != NULL ? line->gpus : "");
    int r = feed_line_parse(buffer_text(&out), &again, err);
    if (r < 0)
        return r;
    *ret = buffer_take(&out);
    return 0;
}

uint64_t feed_hash(const void *bytes, size_t length, uint64_t from)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < length; i++)
        from = (from ^ p[i]) * FNV_PRIME;
    return from;
}

void feed_line_hash(const struct feed_line *line, char ret[FEED_HASH_SIZE])
{
    const char *const values[] = { line->script, line->arguments, line->conda };
    uint64_t hash = FEED_HASH_START;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const char *value = values[i] != NULL ? values[i] : "";
        hash = feed_hash(value, strlen(value) + 1, hash);
    }
    (void)snprintf(ret, FEED_HASH_SIZE, "%016" PRIx64, hash);
}

void feed_line_clear(struct feed_line *line)
{
    free(line->script);
    free(line->conda);
    free(line->arguments);
    free(line->gpus);
    strings_clear(&line->words);
    *line = (struct feed_line){ 0 };
}
