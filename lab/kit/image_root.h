/* SPDX-License-Identifier: MIT */
/* The files of a container image: one program and the libraries that the loader finds for it, nothing else.
 */
#pragma once

#include "base/error.h"

/* Makes the folder `root` with a copy of `program` and of its libraries, each at its own path, and with the
 * empty folders that runtimes mount on. -EEXIST: `root` is there. */
int image_root_make(const char *root, const char *program, struct error *err);
