/* SPDX-License-Identifier: MIT */
#include "cli/submit/slurm_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/term/words.h"

#define BLANKS " \t"

static int apply(const char *line, const char *where, const struct slurm_reading *reading,
    struct strings *kept, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    struct slurm_reading here = *reading;
    int first = 0;
    int r = words_split(line, &words, err);
    if (r < 0)
        return error_wrap(err, "%s", where);
    bool is_component =
        words.count > 0 && (strcmp(words.items[0], "hetjob") == 0 || strcmp(words.items[0], "packjob") == 0);
    if (is_component) { // its lines would be read as lines of a single job
        (void)error_set(err, -ENOTSUP, "%s: there are no heterogeneous jobs", words.items[0]);
        (void)error_hint(
            err, "submit its components as separate jobs, or as one job with the largest request");
        return error_wrap(err, "%s", where);
    }
    int argc = (int)words.count + 1;
    _cleanup_free_ char **argv = xcalloc(words.count + 2, sizeof(char *));
    argv[0] = (char *)(uintptr_t)reading->program->name;
    for (size_t i = 0; i < words.count; i++) {
        strings_add(kept, words.items[i]);
        argv[i + 1] = kept->items[kept->count - 1];
    }
    here.where = where;
    r = slurm_options_read(&here, argc, argv, true, &first, err);
    if (r == 0 && reading->is_strict && first < argc) {
        (void)error_set(err, -EINVAL, "'%.60s' is not an option", argv[first]);
        r = error_wrap(err, "%s", where);
    }
    return r;
}

int slurm_lines_read(const char *text, const char *name, const struct slurm_reading *reading,
    struct strings *kept, struct error *err)
{
    const size_t length = strlen(SLURM_LINE_MARK);
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    int r = 0;
    unsigned number = 0;
    for (char *line = NULL; r == 0 && (line = strsep(&rest, "\n")) != NULL;) {
        line[strcspn(line, "\r")] = '\0';
        const char *begin = line + strspn(line, BLANKS);
        number++;
        if (*begin != '\0' && *begin != '#')
            break;
        if (strncmp(line, SLURM_LINE_MARK, length) != 0 || line[length] == '\0' ||
            strchr(BLANKS, line[length]) == NULL)
            continue;
        struct slurm_reading here = *reading;
        _cleanup_free_ char *where = xasprintf(reading->is_strict ? "%s:%u" : "%s: line %u", name, number);
        here.line = number;
        r = apply(line + length, where, &here, kept, err);
    }
    return r;
}
