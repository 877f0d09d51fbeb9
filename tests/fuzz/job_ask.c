/* SPDX-License-Identifier: MIT */
/* Any text as a list of GPUs, of jobs to wait for, or of indexes: refused with a sentence, or taken as it
 * stands. */
#include <string.h>

#include "base/memory.h"
#include "fuzz.h"
#include "job/after.h"
#include "job/array.h"
#include "job/ask.h"

static void try_lists(const char *text)
{
    struct error err = { 0 };
    struct ask_gpu *gpus = NULL;
    struct ask_after *after = NULL;
    size_t count = 0;
    if (parse_gpu_ids(text, &gpus, &count, &err) == 0)
        must_be(count > 0 && count <= ASK_GPUS_MAX);
    else
        must_be(err.message[0] != '\0' && gpus == NULL);
    ask_gpus_free(gpus, count);
    count = 0;
    err = (struct error){ 0 };
    if (parse_after(text, &after, &count, &err) == 0)
        must_be((count > 0 || strstr(text, AFTER_SINGLETON) != NULL) && count <= ASK_AFTER_MAX);
    else
        must_be(err.message[0] != '\0' && after == NULL);
    free(after);
}

/* Taking out the first index leaves exactly one less, and the text can be read again. */
static void try_array(const char *text)
{
    struct error err = { 0 };
    struct array array, rest = { 0 };
    uint32_t first = 0;
    if (parse_array(text, &array, &err) < 0) {
        must_be(err.message[0] != '\0');
        return;
    }
    uint32_t size = array_size(&array);
    _cleanup_free_ char *indexes = array_indexes(text);
    must_be(size > 0 && size <= ARRAY_MAX && indexes != NULL && array_first(indexes, &first));
    _cleanup_free_ char *left = array_without(indexes, first);
    must_be(left != NULL && (size == 1) == (left[0] == '\0'));
    if (size > 1)
        must_be(parse_array(left, &rest, NULL) == 0 && array_size(&rest) == size - 1);
    array_clear(&array);
    array_clear(&rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    _cleanup_free_ char *text = xstrndup((const char *)bytes, length);
    struct job_ask ask = { .gpus = 1, .gpu_ids = text, .after = text, .array = text };
    try_lists(text);
    try_array(text);
    (void)job_ask_validate(&ask, NULL);
    return 0;
}
