/* SPDX-License-Identifier: MIT */
#include "job/why_code.h"

#include <stddef.h>

#include "base/strings.h"

#define ROW(code_, name_, title_, meaning_) { name_, title_, meaning_ },
static const struct {
    const char *name, *title, *meaning;
} rows[WHY_CODES] = { WHY_TABLE(ROW) };

const char *why_code_name(enum why_code code)
{
    return code < WHY_CODES ? rows[code].name : "invalid";
}

const char *why_code_title(enum why_code code)
{
    return code < WHY_CODES ? rows[code].title : "";
}

const char *why_code_meaning(enum why_code code)
{
    return code < WHY_CODES ? rows[code].meaning : "";
}

enum why_code why_code_find(const char *name)
{
    unsigned code = 0;
    while (code < WHY_CODES && !text_equal(rows[code].name, name))
        code++;
    return (enum why_code)code;
}
