/* SPDX-License-Identifier: MIT */
/* A container image with mgpu-gpu-test and nothing else, made on this machine, and jobs in it. */
#pragma once

#include "lab/kit/kit.h"

#define IMAGE_OPTIONS 24U

struct image {
    const char *runtime;                // of --image-runtime
    char *name, *mount, *storage, *own; // of --image, --image-mount, and two variables; NULL: not needed
    char *library;                      // the driver's CUDA inside; NULL: where the loader finds it
    char *nvml_library;                 // and NVML
};

/* Makes the image of `runtime`, "podman" or "apptainer", unless the kit has made it before, and starts its
 * program once without mgpu. False after result_skip(), with the reason for which there are no containers
 * here. The caller clears *ret in either case. */
bool image_make(struct kit *kit, const char *runtime, struct image *ret, struct result *result);
void image_clear(struct image *image);
#define _cleanup_image_ __attribute__((cleanup(image_clear)))

/* Ends what the runtime leaves running beside its containers. */
void image_leave(struct kit *kit, const struct image *image);

/* Options of submit for the GPU of the checks in this image, then `more`; both lists end in NULL. Borrowed
 * from both. */
void image_options(const struct image *image, const char *const *more, const char *options[IMAGE_OPTIONS]);

/* Words of mgpu-gpu-test: `arguments`, and where the driver's libraries are. At most 12. */
void image_arguments(
    const struct image *image, const char *const *arguments, const char *words[IMAGE_OPTIONS]);
