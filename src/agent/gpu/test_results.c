/* SPDX-License-Identifier: MIT */
#include "agent/gpu/test_results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"

#define FILE_NAME  "gpu-tests"
#define GPUS_MAX   256U
#define MEGA       1000.0
#define ERROR_MAX  127U
#define FIGURE_MAX 1e15

struct tested_gpu {
    char *uuid;
    struct record_list tests; // struct gpu_test, newest first
};

struct test_results {
    struct record_list gpus; // struct tested_gpu; first, to match the record
    int state_fd;
};

static const struct record_field tested_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct tested_gpu, uuid, 96),
    RECORD_SUBLIST(2, struct tested_gpu, tests, GPU_TESTS_MAX, &gpu_test_record),
};
static const struct record_type tested_record =
    RECORD_TYPE(462, "tested GPU", struct tested_gpu, tested_fields);
static const struct record_field results_fields[] = {
    RECORD_SUBLIST(1, struct test_results, gpus, GPUS_MAX, &tested_record),
};
const struct record_type test_results_record =
    RECORD_TYPE(463, "GPU tests", struct test_results, results_fields);

struct test_results *test_results_new(int state_fd)
{
    struct test_results *results = xcalloc(1, sizeof(*results));
    struct error err = { 0 };
    int r = file_read_record(state_fd, FILE_NAME, &test_results_record, results, &err);
    if (r < 0 && r != -ENOENT)
        log_warning("results of GPU tests are discarded: %s", err.message);
    if (r < 0)
        *results = (struct test_results){ 0 };
    results->state_fd = state_fd;
    return results;
}

void test_results_free(struct test_results *results)
{
    if (results == NULL)
        return;
    record_clear(&test_results_record, results);
    free(results);
}

static struct tested_gpu *find(const struct test_results *results, const char *uuid)
{
    struct tested_gpu *gpus = results->gpus.items;
    for (size_t i = 0; i < results->gpus.count; i++)
        if (text_equal(gpus[i].uuid, uuid))
            return &gpus[i];
    return NULL;
}

static struct tested_gpu *take(struct test_results *results, const char *uuid)
{
    struct tested_gpu *gpu = find(results, uuid);
    if (gpu != NULL || results->gpus.count == GPUS_MAX)
        return gpu;
    results->gpus.items = xreallocarray(results->gpus.items, results->gpus.count + 1, sizeof(*gpu));
    gpu = (struct tested_gpu *)results->gpus.items + results->gpus.count++;
    *gpu = (struct tested_gpu){ .uuid = xstrdup(uuid),
        .tests = { xcalloc(GPU_TESTS_MAX, sizeof(struct gpu_test)), 0 } };
    return gpu;
}

bool test_results_number(const char *output, const char *name, double *ret)
{
    _cleanup_free_ char *key = xasprintf("\"%s\":", name);
    const char *found = strstr(output, key);
    char *end;
    if (found == NULL)
        return false;
    double value = strtod(found + strlen(key), &end);
    if (end == found + strlen(key) || !(value >= 0 && value < FIGURE_MAX))
        return false;
    *ret = value;
    return true;
}

/* Makes space for the newest test by removing the oldest if there are too many. */
static struct gpu_test *make_room(struct record_list *tests)
{
    struct gpu_test *items = xreallocarray(tests->items, GPU_TESTS_MAX, sizeof(*items));
    if (tests->count == GPU_TESTS_MAX)
        free(items[--tests->count].error);
    memmove(items + 1, items, tests->count * sizeof(*items));
    tests->items = items;
    tests->count++;
    return items;
}

void test_results_put(
    struct test_results *results, const char *uuid, const char *output, const char *why, int64_t wall_ms)
{
    double to = 0, from = 0, on = 0, product = 0, words = 0, products = 0;
    struct tested_gpu *gpu = take(results, uuid);
    if (gpu == NULL)
        return;
    bool is_whole = output != NULL && test_results_number(output, "to_gpu_gb_per_s", &to) &&
                    test_results_number(output, "from_gpu_gb_per_s", &from) &&
                    test_results_number(output, "on_gpu_gb_per_s", &on) &&
                    test_results_number(output, "multiply_gflop_per_s", &product) &&
                    test_results_number(output, "wrong_words", &words) &&
                    test_results_number(output, "wrong_products", &products);
    struct gpu_test *test = make_room(&gpu->tests);
    *test = (struct gpu_test){ .wall_ms = wall_ms };
    if (is_whole)
        *test = (struct gpu_test){ .wall_ms = wall_ms,
            .to_mb_s = (uint64_t)(to * MEGA),
            .from_mb_s = (uint64_t)(from * MEGA),
            .on_mb_s = (uint64_t)(on * MEGA),
            .product_mflops = (uint64_t)(product * MEGA),
            .wrong = (uint64_t)(words + products) };
    else
        test->error = text_escape_fit(why != NULL ? why : "mgpu-gpu-test reported no figures", ERROR_MAX);
    int r = file_write_record(results->state_fd, FILE_NAME, &test_results_record, results, true);
    if (r < 0)
        log_error("the result of a GPU test cannot be stored: %s", strerror(-r));
}

int64_t test_results_time(const struct test_results *results, const char *uuid)
{
    const struct tested_gpu *gpu = find(results, uuid);
    return gpu != NULL && gpu->tests.count > 0 ? ((const struct gpu_test *)gpu->tests.items)->wall_ms : 0;
}

void test_results_show(const struct test_results *results, struct gpu_state *gpu)
{
    const struct tested_gpu *known = find(results, gpu->uuid);
    struct gpu_test *items = gpu->tests.items;
    for (size_t i = 0; i < gpu->tests.count; i++)
        free(items[i].error);
    free(items);
    gpu->tests = (struct record_list){ 0 };
    if (known == NULL || known->tests.count == 0)
        return;
    const struct gpu_test *from = known->tests.items;
    items = xcalloc(known->tests.count, sizeof(*items));
    gpu->tests = (struct record_list){ items, known->tests.count };
    for (size_t i = 0; i < known->tests.count; i++) {
        items[i] = from[i];
        items[i].error = xstrdup(from[i].error);
    }
}
