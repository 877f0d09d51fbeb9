/* SPDX-License-Identifier: MIT */
#include "base/uid_min.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/parse.h"

#define LOGIN_DEFS       "/etc/login.defs"
#define LOGIN_DEFS_BYTES (256U << 10)
#define KEY              "UID_MIN"

uint32_t uid_min_of(const char *text)
{
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *word = line + strspn(line, " \t");
        size_t length = strcspn(word, " \t\n");
        if (length == strlen(KEY) && strncmp(word, KEY, length) == 0) {
            char *end = NULL;
            unsigned long number = strtoul(word + length, &end, 10);
            if (end != word + length && number <= INT32_MAX)
                return (uint32_t)number;
        }
        line = strchr(word, '\n');
        if (line != NULL)
            line++;
    }
    return UID_MIN_USUAL;
}

int uid_min_parse(const char *value, const char *what, uint32_t *ret, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    int64_t number = UID_MIN_USUAL;
    if (strcmp(value, "auto") == 0) {
        if (file_read(AT_FDCWD, LOGIN_DEFS, LOGIN_DEFS_BYTES, &text) == 0)
            number = uid_min_of(buffer_text(&text));
    } else {
        int r = parse_integer(value, what, 0, INT32_MAX, &number, err);
        if (r < 0)
            return r;
    }
    *ret = (uint32_t)number;
    return 0;
}
