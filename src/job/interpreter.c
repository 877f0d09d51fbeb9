/* SPDX-License-Identifier: MIT */
#include "job/interpreter.h"

#include <string.h>

#include "base/memory.h"
#include "base/strings.h"

#define BLANKS " \t"

void interpreter_add(const char *text, struct strings *words)
{
    size_t mark = strlen(INTERPRETER_MARK);
    text += text_mark_length(text, strlen(text));
    if (strncmp(text, INTERPRETER_MARK, mark) != 0) {
        strings_add(words, INTERPRETER_SHELL);
        return;
    }
    _cleanup_free_ char *line = xstrndup(text, strcspn(text, "\r\n"));
    char *program = line + mark + strspn(line + mark, BLANKS);
    size_t length = strcspn(program, BLANKS);
    char *rest = program + length + strspn(program + length, BLANKS);
    for (size_t end = strlen(rest); end > 0 && strchr(BLANKS, rest[end - 1]) != NULL; end--)
        rest[end - 1] = '\0';
    bool has_rest = rest[0] != '\0';
    program[length] = '\0';
    strings_add(words, program[0] != '\0' ? program : INTERPRETER_SHELL);
    if (has_rest)
        strings_add(words, rest);
}

bool interpreter_is_python(const struct strings *words)
{
    for (size_t i = 0; i < words->count; i++) {
        const char *slash = strrchr(words->items[i], '/');
        const char *name = slash != NULL ? slash + 1 : words->items[i];
        if (strncmp(name, "python", 6) == 0 || strstr(name, " python") != NULL)
            return true;
    }
    return false;
}
