/* SPDX-License-Identifier: MIT */
/* --image, --image-mount and --image-runtime: checks the values and adds them to a request. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

struct image_wishes {
    char *name;          // owned; the path of an image file is made absolute
    const char *runtime; // NULL: the one installed on the node
    struct strings mounts;
};

int image_wish(struct image_wishes *wishes, const char *name, struct error *err);
int image_wish_mount(struct image_wishes *wishes, const char *mount, struct error *err);
int image_wish_runtime(struct image_wishes *wishes, const char *runtime, struct error *err);

/* -EINVAL for a mount without an image. A runtime without an image is only a default and adds nothing. */
int image_add(const struct image_wishes *wishes, json_t *request, struct error *err);

void image_wishes_clear(struct image_wishes *wishes);
