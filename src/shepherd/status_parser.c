/* SPDX-License-Identifier: MIT */
/*
 * The lines are similar to those of sd_notify(3):
 *
 *   CHECKPOINTED      the work is saved: the job can be ended without loss
 *   PROGRESS=0.4      how much is done, 0 to 1, or 40%
 *   STATUS=epoch 3    a short text; if empty, the text is removed
 *
 * Other lines and invalid values are ignored silently, so programs can use reports of a later version.
 */
#include "shepherd/status_parser.h"

#include <string.h>

#include "base/progress.h"

static void take_progress(struct spool_report *parser, const char *text, size_t length)
{
    if (progress_parse(text, length, &parser->progress_ppm))
        parser->has_progress = 1;
}

/* Cuts the text only between characters of UTF-8. */
static void take_status(struct spool_report *parser, const char *text, size_t length)
{
    if (length > SPOOL_STATUS_MAX) {
        length = SPOOL_STATUS_MAX;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    memset(parser->status, 0, sizeof(parser->status));
    memcpy(parser->status, text, length);
}

static const struct {
    const char *key;
    void (*take)(struct spool_report *parser, const char *text, size_t length);
} keys[] = {
    { "PROGRESS=", take_progress },
    { "STATUS=", take_status },
};

/* True if the line is CHECKPOINTED. */
static bool take_line(struct status_parser *parser, int64_t wall_ms)
{
    static const char checkpointed[] = "CHECKPOINTED";
    const char *line = parser->line;
    size_t length = parser->length;
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\r'))
        length--;
    if (memchr(line, '\0', length) != NULL)
        return false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t key = strlen(keys[i].key);
        if (length >= key && memcmp(line, keys[i].key, key) == 0)
            keys[i].take(&parser->latest, line + key, length - key);
    }
    if (length != sizeof(checkpointed) - 1 || memcmp(line, checkpointed, length) != 0)
        return false;
    parser->latest.checkpointed_ms = wall_ms;
    return true;
}

bool status_parser_end(struct status_parser *parser, int64_t wall_ms)
{
    bool is_checkpointed = !parser->is_too_long && take_line(parser, wall_ms);
    parser->length = 0;
    parser->is_too_long = false;
    return is_checkpointed;
}

bool status_parser_add(struct status_parser *parser, int64_t wall_ms, const char *bytes, size_t length)
{
    bool is_checkpointed = false;
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end != NULL ? (size_t)(end - bytes) : length;
        if (part > STATUS_LINE_MAX - parser->length)
            parser->is_too_long = true;
        if (!parser->is_too_long) {
            memcpy(parser->line + parser->length, bytes, part);
            parser->length += part;
        }
        if (end != NULL) {
            is_checkpointed = status_parser_end(parser, wall_ms) || is_checkpointed;
            part++;
        }
        bytes += part;
        length -= part;
    }
    return is_checkpointed;
}
