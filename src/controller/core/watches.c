/* SPDX-License-Identifier: MIT */
/* External usage of each GPU of a node. */
#include "controller/core/watches.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/core.h"
#include "controller/core/gpu_watch.h"

static struct gpu_watch *find_watch(const struct core_node *node, const char *uuid)
{
    for (size_t i = 0; i < node->n_watches; i++)
        if (text_equal(node->watches[i].uuid, uuid))
            return &node->watches[i];
    return NULL;
}

const struct gpu_watch *core_gpu_watch(const struct core_node *node, const char *uuid)
{
    return find_watch(node, uuid);
}

void core_clear_watches(struct core_node *node)
{
    for (size_t i = 0; i < node->n_watches; i++)
        free(node->watches[i].uuid);
    free(node->watches);
    node->watches = NULL;
    node->n_watches = 0;
}

struct gpu_watch *core_take_watch(struct core_node *node, const char *uuid)
{
    struct gpu_watch *known = find_watch(node, uuid);
    if (known != NULL)
        return known;
    node->watches = xreallocarray(node->watches, node->n_watches + 1, sizeof(*node->watches));
    struct gpu_watch *watch = &node->watches[node->n_watches++];
    *watch = (struct gpu_watch){ .uuid = xstrdup(uuid) };
    return watch;
}
