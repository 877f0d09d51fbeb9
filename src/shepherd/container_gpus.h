/* SPDX-License-Identifier: MIT */
/* The podman options for the GPUs of a job. */
#pragma once

#include <stdbool.h>

#include "base/strings.h"
#include "job/launch.h"

/* Uses CDI if the node has a description, else device nodes; sets the vendor's list to its value with
 * hidden GPUs where applicable. */
void container_add_gpus(const struct launch_image *image, struct strings *words);

/* Adds the GPUs by CDI. False if no file in these directories (terminated by NULL) describes devices of this
 * kind ("nvidia.com/gpu"). */
bool container_add_described(const char *const *directories, const char *kind,
    const struct launch_image *image, struct strings *words);
