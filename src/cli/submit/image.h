/* SPDX-License-Identifier: MIT */
/* --image, --image-mount and --image-runtime: checks the values and adds them to a request. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

struct image_options {
    char *name;          // owned; the path of an image file is made absolute
    const char *runtime; // NULL: the one installed on the node
    struct strings mounts;
};

int image_set_name(struct image_options *options, const char *name, struct error *err);
int image_add_mount(struct image_options *options, const char *mount, struct error *err);
int image_set_runtime(struct image_options *options, const char *runtime, struct error *err);

/* -EINVAL for a mount without an image. A runtime without an image is only a default and adds nothing. */
int image_add(const struct image_options *options, json_t *request, struct error *err);

void image_options_clear(struct image_options *options);
