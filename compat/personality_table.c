/* SPDX-License-Identifier: MIT */
/* The personalities of mgpu-compat. A new one has a row here, a row in cli/verbs/compat_names.c and a file in
 * personalities/. */
#include "compat/personalities/personality.h"

const struct personality *const personalities[] = {
    &personality_scheduler_server,
    &personality_mgpu_srun,
    &personality_mgpu_queue,
    &personality_mgpu_cancel,
    &personality_tgpu,
    &personality_srun,
    &personality_run_server,
    &personality_tui,
    &personality_scheduler,
    &personality_simple_master,
    &personality_simple_node,
    &personality_simple_client,
    NULL,
};
