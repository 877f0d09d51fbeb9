/* SPDX-License-Identifier: MIT */
#include "controller/api/external_text.h"

#include <inttypes.h>

#include "base/parse.h"

#define SHOWN_MAX   3U
#define COMMAND_MAX 40 // bytes of a command line

static uint64_t memory_of(const struct gpu_process *process)
{
    return process->is_memory_known != 0 ? process->memory_bytes : 0;
}

/* True if `a` comes before `b`. The order is strict, so that each process is found once. */
static bool is_before(const struct gpu_process *a, const struct gpu_process *b)
{
    return memory_of(a) != memory_of(b) ? memory_of(a) > memory_of(b) : a < b;
}

/* The largest process after `last`; NULL: there is none. */
static const struct gpu_process *next_largest(const struct gpu_state *gpu, const struct gpu_process *last)
{
    const struct gpu_process *processes = gpu->processes.items, *best = NULL;
    for (size_t i = 0; i < gpu->processes.count; i++) {
        const struct gpu_process *process = &processes[i];
        bool is_left = process->job == 0 && (last == NULL || is_before(last, process));
        if (is_left && (best == NULL || is_before(process, best)))
            best = process;
    }
    return best;
}

static void write_process(const struct gpu_process *process, struct usernames *names, struct buffer *text)
{
    char memory[32];
    buffer_printf(text, "pid %" PRIu32 " (%s)", process->pid, usernames_name(names, process->uid));
    if (process->command != NULL)
        buffer_printf(text, " %.*s", COMMAND_MAX, process->command);
    if (process->container != NULL)
        buffer_printf(text, " in container %s", process->container);
    format_size(process->memory_bytes, memory, sizeof(memory));
    if (process->is_memory_known != 0)
        buffer_printf(text, ", %s", memory);
}

void external_text_write(const struct gpu_state *gpu, struct usernames *names, struct buffer *text)
{
    size_t shown = 0, more = 0;
    for (const struct gpu_process *process = next_largest(gpu, NULL); process != NULL;
         process = next_largest(gpu, process)) {
        if (shown == SHOWN_MAX) {
            more++;
            continue;
        }
        if (shown++ > 0)
            buffer_append_text(text, "; ");
        write_process(process, names, text);
    }
    if (more > 0)
        buffer_printf(text, " and %zu more", more);
}
