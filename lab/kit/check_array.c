/* SPDX-License-Identifier: MIT */
/* Arrays of short jobs: as they are, and with elements that are given to the agent before their GPU is free.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/probe.h"

#define JOB_MS        60000
#define ASK_MS        20000
#define ELEMENTS      12
#define ELEMENTS_WORD "0-11"
#define NUMBER        64

/* What a user gets of an array whose elements list the GPUs that CUDA shows them. */
struct array {
    int64_t job, ms;
    size_t good;   // elements that saw one GPU
    size_t behind; // that were with the agent before another one ended
};

static bool was_behind(struct kit *kit, const char *element)
{
    const char *const show[] = { "show", element, NULL };
    struct error err = { 0 };
    json_t *record = NULL;
    const json_t *event;
    size_t i, count = 0;
    (void)instance_ask(kit, show, ASK_MS, &record, &err);
    json_array_foreach(json_object_get(record, "events"), i, event) count +=
        text_equal(record_word(event, "type"), "inherits");
    json_decref(record);
    return count > 0;
}

static void inspect_elements(struct kit *kit, struct array *array)
{
    for (int i = 0; i < ELEMENTS; i++) {
        char number[NUMBER];
        (void)snprintf(number, sizeof(number), "%" PRId64 ".%d", array->job, i);
        const char *const logs[] = { "logs", number, NULL };
        _cleanup_free_ char *text = instance_print(kit, logs, ASK_MS);
        json_t *line = json_last_line(text);
        array->good += json_array_size(json_object_get(line, "gpus")) == 1;
        json_decref(line);
        array->behind += was_behind(kit, number);
    }
}

/* False after result_fail(). */
static bool run_array(struct kit *kit, struct result *result, struct array *ret)
{
    static const char *const options[] = { "-a", ELEMENTS_WORD, "-g", "1", "-t", "1m", NULL };
    static const char *const list[] = { "list", NULL };
    struct array array = { 0 };
    int64_t begin_ms = clock_boot_ms();
    array.job = probe_submit(kit, options, list, result);
    json_t *record = array.job < 0 ? NULL : probe_wait(kit, array.job, JOB_MS, result);
    if (record == NULL)
        return false;
    array.ms = clock_boot_ms() - begin_ms;
    const json_t *elements = json_object_get(record, "elements");
    json_int_t done = json_integer_value(json_object_get(elements, "done"));
    result_fact(result, "elements", elements != NULL ? json_deep_copy(elements) : json_null());
    result_fact(result, "array_ms", json_integer(array.ms));
    json_decref(record);
    inspect_elements(kit, &array);
    if (done != ELEMENTS)
        result_fail(result, "%lld of %d elements are done", (long long)done, ELEMENTS);
    else if (array.good != ELEMENTS)
        result_fail(result, "%zu of %d elements saw one GPU", array.good, ELEMENTS);
    *ret = array;
    return done == ELEMENTS && array.good == ELEMENTS;
}

static void check_array(struct kit *kit, struct result *result)
{
    struct array array = { 0 };
    if (run_array(kit, result, &array))
        result_pass(result, "%d elements, each with one GPU, in %lld ms", ELEMENTS, (long long)array.ms);
}

static void check_ahead(struct kit *kit, struct result *result)
{
    static const char *const ahead[] = { "--elements-ahead", "10s", NULL },
                             *const after[] = { "--elements-ahead", "0", NULL }, *const usual[] = { NULL };
    struct array one = { 0 }, other = { 0 };
    struct error err = { 0 };
    if (instance_restart(kit, after, &err) < 0) {
        result_fail(result, "%s", err.message);
        return;
    }
    bool is_good = run_array(kit, result, &one);
    result_fact(result, "usual_ms", json_integer(one.ms));
    if (instance_restart(kit, ahead, &err) < 0) {
        result_fail(result, "%s", err.message);
        return;
    }
    is_good = is_good && run_array(kit, result, &other);
    if (instance_restart(kit, usual, &err) < 0)
        result_fail(result, "mgpud does not start again: %s", err.message);
    else if (is_good && other.behind == 0)
        result_fail(result, "no element was with the agent before another one ended");
    else if (is_good)
        result_pass(result,
            "%d elements in %lld ms, %zu of them with the agent before another one ended; without that %lld "
            "ms",
            ELEMENTS, (long long)other.ms, other.behind, (long long)one.ms);
    result_fact(result, "behind", json_integer((json_int_t)other.behind));
}

const struct check kit_array_checks[] = {
    { "array", "an array of jobs with one GPU each", 3000, NEED_JOBS, check_array, RANK_MIDDLE },
    { "array-ahead", "the same with elements ahead", 8000, NEED_JOBS, check_ahead, RANK_MIDDLE },
    { 0 },
};
