/* SPDX-License-Identifier: MIT */
/* Syntax of container images: names, mounts and runtimes. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/strings.h"

#define IMAGE_NAME_MAX   1024U
#define IMAGE_MOUNTS_MAX (64U << 10) // of all mounts of a job

#define IMAGE_PODMAN    "podman"
#define IMAGE_APPTAINER "apptainer"

/* The parts of "SRC[:DST[:ro]]". */
struct image_mount {
    char *source, *target;
    bool is_read_only;
};

/* Accepts only names that no runtime can mistake for an option or for two words. */
int image_check_name(const char *name, struct error *err);

int image_check_runtime(const char *runtime, struct error *err);

/* Both paths are absolute. Returns 0 or -EINVAL; the caller clears *ret after success. */
int image_mount_parse(const char *text, struct image_mount *ret, struct error *err);
void image_mount_clear(struct image_mount *mount);

/* True for an image file of apptainer. */
bool image_is_sif(const char *name);
