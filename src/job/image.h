/* SPDX-License-Identifier: MIT */
/* Container images by name, what is mounted into them, and what can run them: how these are written. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

#define IMAGE_NAME_MAX   1024U
#define IMAGE_MOUNTS_MAX (64U << 10) // all mounts of a job together

#define IMAGE_PODMAN    "podman"
#define IMAGE_APPTAINER "apptainer"

/* "SRC[:DST[:ro]]" in its parts. */
struct image_mount {
    char *source, *target;
    bool is_read_only;
};

/* A name that no runtime can take for an option or for two words. */
int image_check_name(const char *name, struct error *err);

int image_check_runtime(const char *runtime, struct error *err);

/* Both paths are absolute. -EINVAL; the caller clears *ret after success. */
int image_mount_parse(const char *text, struct image_mount *ret, struct error *err);
void image_mount_clear(struct image_mount *mount);

/* An image file of apptainer. */
bool image_is_sif(const char *name);
