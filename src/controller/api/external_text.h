/* SPDX-License-Identifier: MIT */
/* Who else is on a GPU, in words. */
#pragma once

#include "base/buffer.h"
#include "wire/message.h"
#include "wire/usernames.h"

/* "pid 8123 (cy) python train.py, 11.2 GiB; pid 9 (bo), 1 GiB", the largest first; adds nothing when nobody
 * is nobody is there. */
void external_text_write(const struct gpu_state *gpu, struct usernames *names, struct buffer *text);
