/* SPDX-License-Identifier: MIT */
#include "compat/stepd/gpu_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"

char *stepd_gpus_at(const char *list, const char *places)
{
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_free_ char *copy = xstrdup(list), *wanted = xstrdup(places);
    struct buffer out = { 0 };
    char *rest = copy;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;)
        strings_add(&words, word);
    rest = wanted;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        char *end = NULL;
        size_t place = strtoul(word, &end, 10);
        if (end != word && *end == '\0' && place < words.count && words.items[place][0] != '\0')
            buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", words.items[place]);
    }
    return out.length > 0 ? buffer_take(&out) : NULL;
}
