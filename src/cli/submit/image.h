/* SPDX-License-Identifier: MIT */
/* --image, --image-mount and --image-runtime, checked as they are read, as members of a request. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "base/strings.h"

struct image_wishes {
    char *name;          // owned; a path of a file is absolute
    const char *runtime; // NULL: what the node has
    struct strings mounts;
};

int image_wish(struct image_wishes *wishes, const char *name, struct error *err);
int image_wish_mount(struct image_wishes *wishes, const char *mount, struct error *err);
int image_wish_runtime(struct image_wishes *wishes, const char *runtime, struct error *err);

/* -EINVAL when a mount has no image to be seen in. A runtime alone is a default, and asks for nothing. */
int image_add(const struct image_wishes *wishes, json_t *request, struct error *err);

void image_wishes_clear(struct image_wishes *wishes);
