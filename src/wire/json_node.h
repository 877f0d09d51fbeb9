/* SPDX-License-Identifier: MIT */
/* A node as the API shows it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "job/cluster_change.h"
#include "wire/message.h"

/* `hello` is what the node said last; `drain` what an administrator said of it, NULL: nothing; `n_drained`
 * how many of its GPUs mgpu has taken out of use. The caller owns the result. */
json_t *json_node_write(const char *name, bool is_up, const struct message_hello *hello,
    const struct cluster_change *drain, size_t n_drained);
