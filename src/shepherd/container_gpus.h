/* SPDX-License-Identifier: MIT */
/* The words that give a podman container the GPUs of its job. */
#pragma once

#include <stdbool.h>

#include "base/strings.h"
#include "job/launch.h"

/* By CDI where the node has a description of them, else their device nodes; sets CUDA_VISIBLE_DEVICES to what
 * it is where no others can be seen. */
void container_add_gpus(const struct launch_image *image, struct strings *words);

/* Asks podman for the GPUs by CDI. False when no file of these directories (ended by NULL) describes
 * NVIDIA's.
 */
bool container_add_described(
    const char *const *directories, const struct launch_image *image, struct strings *words);
