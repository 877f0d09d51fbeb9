/* SPDX-License-Identifier: MIT */
/*
 * The agent looks at the key only when `steps` has stood still for seconds or the helper has ended, so that
 * nothing but the order of the two writes is needed.
 */
#include "agent/gpu/stage.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct gpu_stage *gpu_stage_new(void)
{
    void *page =
        mmap(NULL, sizeof(struct gpu_stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

void gpu_stage_free(struct gpu_stage *stage)
{
    if (stage != NULL)
        (void)munmap(stage, sizeof(*stage));
}

bool gpu_stage_leave_out(struct gpu_stage *stage, const char *key)
{
    if (stage->n_left_out == GPU_LEFT_OUT)
        return false;
    (void)snprintf(stage->left_out[stage->n_left_out++], GPU_KEY_SIZE, "%s", key);
    return true;
}

bool gpu_stage_is_left_out(const struct gpu_stage *stage, const char *key)
{
    for (uint32_t i = 0; stage != NULL && i < stage->n_left_out; i++)
        if (strcmp(stage->left_out[i], key) == 0)
            return true;
    return stage != NULL && !gpu_stage_may_open(stage, key);
}

bool gpu_stage_know(struct gpu_stage *stage, const char *key, bool is_released)
{
    if (stage->n_known == GPU_KNOWN)
        return false;
    struct gpu_known *known = &stage->known[stage->n_known++];
    (void)snprintf(known->key, GPU_KEY_SIZE, "%s", key);
    known->is_released = is_released;
    return true;
}

bool gpu_stage_may_open(const struct gpu_stage *stage, const char *key)
{
    for (uint32_t i = 0; i < stage->n_known; i++)
        if (strcmp(stage->known[i].key, key) == 0)
            return !stage->known[i].is_released;
    return stage->n_known == 0;
}

void gpu_stage_want(struct gpu_stage *stage, size_t position, uint64_t number)
{
    if (position < GPU_KNOWN)
        atomic_store(&stage->wanted[position], number);
}

uint64_t gpu_stage_wanted(const struct gpu_stage *stage, size_t position)
{
    return stage != NULL && position < GPU_KNOWN ? atomic_load(&stage->wanted[position]) : 0;
}

void gpu_stage_hang(struct gpu_stage *stage, const char *key)
{
    if (stage != NULL)
        (void)snprintf(stage->key, GPU_KEY_SIZE, "%s", key);
}

void gpu_stage_step(struct gpu_stage *stage)
{
    if (stage != NULL)
        atomic_fetch_add(&stage->steps, 1);
}

void gpu_stage_enter(struct gpu_stage *stage, const char *key)
{
    if (stage == NULL)
        return;
    (void)snprintf(stage->key, GPU_KEY_SIZE, "%s", key != NULL ? key : "");
    gpu_stage_step(stage);
}

void gpu_stage_set_open(struct gpu_stage *stage)
{
    if (stage != NULL)
        atomic_store(&stage->is_open, 1);
}
