/* SPDX-License-Identifier: MIT */
/*
 * Runs mgpu-gpu-test on GPUs that no job has, to overwrite their memory or to test them. The program runs as
 * this process's user in its own process, because CUDA may hang or crash.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"

struct gpu_tools;

/* `output` has the program's lines of JSON, or is NULL. `why` is the reason of a failure; NULL: success. */
typedef void gpu_tool_fn(void *arg, const char *uuid, const char *output, const char *why);

/* `program` is the path of mgpu-gpu-test, `library` that of CUDA's, NULL: the driver's own. Both are
 * copied. */
struct gpu_tools *gpu_tools_new(struct event_base *base, const char *program, const char *library);
/* Kills all running programs, without calls of on_end. NULL is allowed. */
void gpu_tools_free(struct gpu_tools *tools);

/*
 * Starts `verb` on a GPU. on_end is called once, later: at the end of the program, or after the time, when it
 * is killed. A GPU on which a program still hangs gets no second one: its call reports that.
 */
void gpu_tools_run(struct gpu_tools *tools, const char *verb, const char *uuid, int64_t timeout_ms,
    gpu_tool_fn *on_end, void *arg);

/* Kills the program on this GPU; its call follows. */
void gpu_tools_kill(struct gpu_tools *tools, const char *uuid);

/* Removes these programs from the processes of `gpus` (struct gpu_state): they are no external ones. Those
 * that have ended are remembered for a few reports, because the driver may still list them. */
void gpu_tools_hide(struct gpu_tools *tools, struct record_list *gpus);
