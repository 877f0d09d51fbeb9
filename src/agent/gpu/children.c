/* SPDX-License-Identifier: MIT */
/*
 * A dismissed process may stay in the kernel for long. Until the kernel has ended it, it is counted, and a
 * GPU that it may have open is not released.
 */
#include "agent/gpu/children.h"

#include "agent/gpu/progress_page.h"
#include "base/log.h"

void gpu_children_dismiss(struct gpu_children *children, struct gpu_child *child)
{
    gpu_child_dismiss(child);
    children->dismissed[children->n_dismissed++] = child;
}

void gpu_children_end(struct gpu_children *children, struct gpu_child *child)
{
    size_t kept = 0;
    for (size_t i = 0; i < children->n_dismissed; i++)
        if (children->dismissed[i] != child)
            children->dismissed[kept++] = children->dismissed[i];
    children->n_dismissed = kept;
    if (children->starting == child)
        children->starting = NULL;
    gpu_child_free(child);
}

bool gpu_children_have_room(const struct gpu_children *children)
{
    size_t count = children->n_dismissed;
    count += children->current != NULL;
    count += children->trial != NULL;
    return count < GPU_HELPERS_MAX;
}

static bool may_hold(const struct gpu_child *child, const char *key)
{
    return child != NULL && gpu_progress_may_open(gpu_child_progress(child), key);
}

static bool is_held(const struct gpu_children *children, const char *key)
{
    bool is_held = may_hold(children->current, key) || may_hold(children->trial, key);
    for (size_t i = 0; !is_held && i < children->n_dismissed; i++)
        is_held = may_hold(children->dismissed[i], key);
    return is_held;
}

bool gpu_children_note_released(const struct gpu_children *children, struct gpu_roster *roster)
{
    const struct record_list *gpus = gpu_roster_gpus(roster);
    struct gpu_state *states = gpus->items;
    bool is_news = false;
    for (size_t i = 0; i < gpus->count; i++) {
        if (!gpu_roster_is_released(roster, i) || states[i].is_released != 0 || states[i].pci == NULL ||
            is_held(children, states[i].pci))
            continue;
        log_info("GPU %u at %s released: mgpu no longer has it open", states[i].index, states[i].pci);
        states[i].is_released = 1;
        is_news = true;
    }
    return is_news;
}

void gpu_children_clear(struct gpu_children *children)
{
    gpu_child_free(children->current);
    gpu_child_free(children->trial);
    for (size_t i = 0; i < children->n_dismissed; i++)
        gpu_child_free(children->dismissed[i]);
    *children = (struct gpu_children){ 0 };
}
