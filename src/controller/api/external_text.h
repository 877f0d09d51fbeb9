/* SPDX-License-Identifier: MIT */
/* External processes on a GPU as text. */
#pragma once

#include "base/buffer.h"
#include "wire/message.h"
#include "wire/usernames.h"

/* Appends "pid 8123 (cy) python train.py, 11.2 GiB; pid 9 (bo), 1 GiB", largest first; nothing if there are
 * none. */
void external_text_write(const struct gpu_state *gpu, struct usernames *names, struct buffer *text);
