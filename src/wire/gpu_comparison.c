/* SPDX-License-Identifier: MIT */
#include "wire/gpu_comparison.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"

#define FIGURES 4U
#define PERCENT 100.0

struct model {
    char *name;
    uint64_t *values[FIGURES]; // of each GPU
    size_t count, capacity;
    bool is_sorted;
};

struct gpu_comparison {
    struct model *models;
    size_t count;
};

static const char *const titles[FIGURES] = { "copies to the GPU", "copies from the GPU", "copies on the GPU",
    "products" };

const char *gpu_test_verdict_name(enum gpu_test_verdict verdict)
{
    static const char *const names[] = {
        [GPU_PASSED] = "passed", [GPU_SLOW] = "slow", [GPU_TEST_FAILED] = "failed"
    };
    return names[verdict];
}

struct gpu_comparison *gpu_comparison_new(void)
{
    return xcalloc(1, sizeof(struct gpu_comparison));
}

void gpu_comparison_free(struct gpu_comparison *comparison)
{
    for (size_t i = 0; comparison != NULL && i < comparison->count; i++) {
        for (size_t k = 0; k < FIGURES; k++)
            free(comparison->models[i].values[k]);
        free(comparison->models[i].name);
    }
    if (comparison != NULL)
        free(comparison->models);
    free(comparison);
}

static void read_figures(const struct gpu_test *test, uint64_t ret[FIGURES])
{
    ret[0] = test->to_mb_s;
    ret[1] = test->from_mb_s;
    ret[2] = test->on_mb_s;
    ret[3] = test->product_mflops;
}

static const struct gpu_test *last_test(const struct gpu_state *gpu)
{
    return gpu->tests.count > 0 ? gpu->tests.items : NULL;
}

static struct model *find(const struct gpu_comparison *comparison, const char *name)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (text_equal(comparison->models[i].name, name))
            return &comparison->models[i];
    return NULL;
}

void gpu_comparison_add(struct gpu_comparison *comparison, const struct gpu_state *gpu)
{
    uint64_t figures[FIGURES];
    const struct gpu_test *test = last_test(gpu);
    if (test == NULL || test->error != NULL || gpu->model == NULL)
        return;
    struct model *model = find(comparison, gpu->model);
    if (model == NULL) {
        comparison->models =
            xreallocarray(comparison->models, comparison->count + 1, sizeof(*comparison->models));
        model = &comparison->models[comparison->count++];
        *model = (struct model){ .name = xstrdup(gpu->model) };
    }
    if (model->count == model->capacity) {
        model->capacity = 2 * model->capacity + 8;
        for (size_t k = 0; k < FIGURES; k++)
            model->values[k] = xreallocarray(model->values[k], model->capacity, sizeof(uint64_t));
    }
    read_figures(test, figures);
    for (size_t k = 0; k < FIGURES; k++)
        model->values[k][model->count] = figures[k];
    model->count++;
    model->is_sorted = false;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* For an even number the larger of the middle two: of two GPUs, the slower is compared with the faster. */
static uint64_t median(struct model *model, size_t figure)
{
    for (size_t k = 0; !model->is_sorted && k < FIGURES; k++)
        qsort(model->values[k], model->count, sizeof(uint64_t), compare);
    model->is_sorted = true;
    return model->values[figure][model->count / 2];
}

enum gpu_test_verdict gpu_comparison_judge(struct gpu_comparison *comparison, const struct gpu_state *gpu,
    char text[GPU_COMPARISON_TEXT_SIZE], double *ret_part)
{
    uint64_t figures[FIGURES];
    const struct gpu_test *test = last_test(gpu);
    struct model *model = test != NULL ? find(comparison, gpu->model) : NULL;
    size_t worst = 0;
    *ret_part = 1;
    text[0] = '\0';
    if (test == NULL)
        return GPU_UNTESTED;
    if (test->error != NULL)
        (void)snprintf(text, GPU_COMPARISON_TEXT_SIZE, "its test failed: %s", test->error);
    else if (test->wrong > 0)
        (void)snprintf(text, GPU_COMPARISON_TEXT_SIZE, "%" PRIu64 " wrong results", test->wrong);
    if (text[0] != '\0')
        return GPU_TEST_FAILED;
    read_figures(test, figures);
    for (size_t k = 0; model != NULL && model->count > 1 && k < FIGURES; k++) {
        uint64_t middle = median(model, k);
        double part = middle > 0 ? (double)figures[k] / (double)middle : 1;
        if (part < *ret_part) {
            *ret_part = part;
            worst = k;
        }
    }
    if (*ret_part >= GPU_COMPARISON_SLOW_PART)
        return GPU_PASSED;
    (void)snprintf(text, GPU_COMPARISON_TEXT_SIZE, "%s are %.0f %% below the median of its model",
        titles[worst], (1 - *ret_part) * PERCENT);
    return GPU_SLOW;
}
