/* SPDX-License-Identifier: MIT */
#include "cli/show/tail_cause.h"

#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/term/field.h"
#include "job/gpu_oom.h"

#define LINE_SHOWN_MAX 300

/* The last line for which `is_it` holds, escaped; NULL: there is none. */
static char *last_line(const char *text, bool (*is_it)(const char *line))
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy, *found = NULL;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL;)
        if (is_it(line))
            found = line;
    return found == NULL ? NULL : text_escape(found, LINE_SHOWN_MAX);
}

/* mgpu's own line only repeats the exit status. */
static bool is_of_setup(const char *line)
{
    return line[strspn(line, " \t\r")] != '\0' && strncmp(line, "mgpu: ", 6) != 0;
}

char *tail_cause(const json_t *job)
{
    const char *tail = field_text(json_object_get(job, "usage"), "tail");
    if (tail == NULL)
        return NULL;
    if (field_is(job, "ended_by", "setup_failed")) {
        _cleanup_free_ char *line = last_line(tail, is_of_setup);
        return line == NULL ? NULL : xasprintf("Its setup reported: %s", line);
    }
    _cleanup_free_ char *line = gpu_oom_line(tail);
    if (line == NULL)
        return NULL;
    bool is_shared = field_integer(job, "gpu_mem", 0) > 0 || field_integer(job, "gpu_share", 0) > 0;
    const char *advice = is_shared
                             ? "It shared the GPU; -m is not enforced. Request more with -m, or the whole "
                               "GPU; with --retry-oom x1.5 mgpu does so itself."
                             : "Reduce its memory use, for example with smaller batches, or request more "
                               "GPUs or a model with more memory.";
    if (field_is(job, "ended_by", "gpu_oom"))
        return xstrdup(advice); // its message contains the line
    return xasprintf("GPU out of memory: %s\n%s", line, advice);
}
