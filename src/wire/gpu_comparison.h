/* SPDX-License-Identifier: MIT */
/* Compares the results of scheduled GPU tests between GPUs of a model. */
#pragma once

#include "wire/message.h"

#define GPU_COMPARISON_SLOW_PART 0.8 // fraction of the median below which a GPU is slow
#define GPU_COMPARISON_TEXT_SIZE 320

enum gpu_test_verdict { GPU_UNTESTED, GPU_PASSED, GPU_SLOW, GPU_TEST_FAILED };

const char *gpu_test_verdict_name(enum gpu_test_verdict verdict); // "passed"; NULL: GPU_UNTESTED

struct gpu_comparison;

struct gpu_comparison *gpu_comparison_new(void);
void gpu_comparison_free(struct gpu_comparison *comparison); // NULL is allowed

/* Adds the GPU with its last result, if it has figures. */
void gpu_comparison_add(struct gpu_comparison *comparison, const struct gpu_state *gpu);

/*
 * The result of its last test. `text` is "" or describes the problem: "copies on the GPU are 40 % below the
 * median of its model". *ret_part is its worst figure as a fraction of that median; 1 if there is no other
 * GPU of the model.
 */
enum gpu_test_verdict gpu_comparison_judge(struct gpu_comparison *comparison, const struct gpu_state *gpu,
    char text[GPU_COMPARISON_TEXT_SIZE], double *ret_part);
