/* SPDX-License-Identifier: MIT */
#include "controller/api/list_top.h"

#include <stdlib.h>

#include "base/memory.h"

struct list_top {
    size_t max;
    uint64_t *ids[JOB_STATES]; // rings of the newest ids; of waiting jobs, the oldest
    size_t counts[JOB_STATES]; // jobs that match
    size_t in_line;            // number of waiting jobs taken from the queue
};

struct list_top *list_top_new(size_t max)
{
    struct list_top *top = xcalloc(1, sizeof(*top));
    top->max = max;
    return top;
}

void list_top_free(struct list_top *top)
{
    if (top == NULL)
        return;
    for (size_t i = 0; i < JOB_STATES; i++)
        free(top->ids[i]);
    free(top);
}

void list_top_note(struct list_top *top, const struct job *job, enum job_state state)
{
    size_t number = top->counts[state]++;
    if (state == JOB_QUEUED && number >= top->max)
        return;
    if (number == 0)
        top->ids[state] = xcalloc(top->max, sizeof(uint64_t));
    top->ids[state][number % top->max] = job->id;
}

static size_t shown(const struct list_top *top, size_t state)
{
    return top->counts[state] < top->max ? top->counts[state] : top->max;
}

struct taking {
    struct list_top *top;
    bool (*is_wanted)(void *arg, const struct job *job);
    void (*add)(void *arg, uint64_t id);
    void *arg;
    uint64_t *taken;
};

static bool take_next(void *arg, const struct job *job)
{
    struct taking *taking = arg;
    struct list_top *top = taking->top;
    if (top->in_line == shown(top, JOB_QUEUED))
        return false;
    if (job->state != JOB_QUEUED || !taking->is_wanted(taking->arg, job))
        return true;
    taking->taken[top->in_line++] = job->id;
    taking->add(taking->arg, job->id);
    return top->in_line < shown(top, JOB_QUEUED);
}

static bool is_taken(const struct taking *taking, uint64_t id)
{
    for (size_t i = 0; i < taking->top->in_line; i++)
        if (taking->taken[i] == id)
            return true;
    return false;
}

void list_top_take(struct list_top *top, const struct core *core, const uint32_t *uid,
    bool (*is_wanted)(void *arg, const struct job *job), void (*add)(void *arg, uint64_t id), void *arg)
{
    _cleanup_free_ uint64_t *taken = xcalloc(top->max, sizeof(*taken));
    struct taking taking = { .top = top, .is_wanted = is_wanted, .add = add, .arg = arg, .taken = taken };
    for (size_t state = 0; state < JOB_STATES; state++)
        for (size_t i = 0; state != JOB_QUEUED && i < shown(top, state); i++)
            add(arg, top->ids[state][i]);
    core_each_in_line(core, uid, take_next, &taking);
    size_t left = shown(top, JOB_QUEUED) - top->in_line; // for jobs that a rule keeps out of the queue
    for (size_t i = 0; left > 0 && i < shown(top, JOB_QUEUED); i++) {
        uint64_t id = top->ids[JOB_QUEUED][i];
        if (is_taken(&taking, id))
            continue;
        add(arg, id);
        left--;
    }
}

void list_top_append_omitted(const struct list_top *top, struct buffer *out)
{
    bool has_one = false;
    buffer_append_text(out, "{");
    for (size_t state = 0; state < JOB_STATES; state++) {
        size_t omitted = top->counts[state] - shown(top, state);
        if (omitted == 0)
            continue;
        buffer_printf(out, "%s\"%s\":%zu", has_one ? "," : "",
            state == JOB_DONE ? "ended" : job_state_name((enum job_state)state), omitted);
        has_one = true;
    }
    buffer_append_text(out, "}");
}
