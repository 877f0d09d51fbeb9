/* SPDX-License-Identifier: MIT */
/*
 * The agent reads the key only when `steps` has not changed for seconds or the helper has ended, so only the
 * order of the two writes matters.
 */
#include "agent/gpu/progress_page.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

struct gpu_progress *gpu_progress_new(void)
{
    void *page =
        mmap(NULL, sizeof(struct gpu_progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

void gpu_progress_free(struct gpu_progress *page)
{
    if (page != NULL)
        (void)munmap(page, sizeof(*page));
}

bool gpu_progress_leave_out(struct gpu_progress *page, const char *key)
{
    if (page->n_left_out == GPU_LEFT_OUT)
        return false;
    (void)snprintf(page->left_out[page->n_left_out++], GPU_KEY_SIZE, "%s", key);
    return true;
}

bool gpu_progress_is_left_out(const struct gpu_progress *page, const char *key)
{
    for (uint32_t i = 0; page != NULL && i < page->n_left_out; i++)
        if (strcmp(page->left_out[i], key) == 0)
            return true;
    return page != NULL && !gpu_progress_may_open(page, key);
}

bool gpu_progress_know(struct gpu_progress *page, const char *key, bool is_released)
{
    if (page->n_known == GPU_KNOWN)
        return false;
    struct gpu_known *known = &page->known[page->n_known++];
    (void)snprintf(known->key, GPU_KEY_SIZE, "%s", key);
    known->is_released = is_released;
    return true;
}

bool gpu_progress_may_open(const struct gpu_progress *page, const char *key)
{
    for (uint32_t i = 0; i < page->n_known; i++)
        if (strcmp(page->known[i].key, key) == 0)
            return !page->known[i].is_released;
    return page->n_known == 0;
}

void gpu_progress_want(struct gpu_progress *page, size_t position, uint64_t number)
{
    if (position < GPU_KNOWN)
        atomic_store(&page->wanted[position], number);
}

uint64_t gpu_progress_wanted(const struct gpu_progress *page, size_t position)
{
    return page != NULL && position < GPU_KNOWN ? atomic_load(&page->wanted[position]) : 0;
}

void gpu_progress_pass(struct gpu_progress *page, int64_t ms)
{
    atomic_fetch_add(&page->passed_ms, ms);
}

int64_t gpu_progress_time_ms(const struct gpu_progress *page)
{
    return page != NULL ? atomic_load(&page->passed_ms) : clock_boot_ms();
}

void gpu_progress_hang(struct gpu_progress *page, const char *key)
{
    if (page != NULL)
        (void)snprintf(page->key, GPU_KEY_SIZE, "%s", key);
}

void gpu_progress_step(struct gpu_progress *page)
{
    if (page != NULL)
        atomic_fetch_add(&page->steps, 1);
}

static void enter(struct gpu_progress *page, const char *key, bool is_prompt)
{
    if (page == NULL)
        return;
    (void)snprintf(page->key, GPU_KEY_SIZE, "%s", key != NULL ? key : "");
    atomic_store(&page->is_prompt, is_prompt);
    gpu_progress_step(page);
}

void gpu_progress_enter(struct gpu_progress *page, const char *key)
{
    enter(page, key, true);
}

void gpu_progress_enter_start(struct gpu_progress *page, const char *key)
{
    enter(page, key, false);
}

void gpu_progress_set_open(struct gpu_progress *page)
{
    if (page != NULL)
        atomic_store(&page->is_open, 1);
}
