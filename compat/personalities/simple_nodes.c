/* SPDX-License-Identifier: MIT */
/*
 *   🔗 Node node001 connected from 192.168.1.101:41234
 *   └─ 🎮 2 GPU(s) detected:
 *      ├─ GPU 0: NVIDIA GeForce RTX 3060 (12288 MB)
 *      └─ GPU 1: NVIDIA GeForce RTX 3060 (12288 MB)
 */
#include "compat/personalities/simple_nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/screen.h"

#define MEBIBYTE (INT64_C(1) << 20)

void simple_nodes_init(struct simple_nodes *nodes)
{
    struct screen screen;
    screen_open(&screen, STDOUT_FILENO, COLOR_NEVER);
    *nodes = (struct simple_nodes){ .known = json_object(), .is_plain = !screen.is_utf8 };
}

static void print_gpu(const struct simple_nodes *nodes, const json_t *gpu, bool is_last)
{
    _cleanup_free_ char *model = field_shown(gpu, "model");
    const char *branch = nodes->is_plain ? "" : is_last ? "└─ " : "├─ ";
    (void)printf("   %sGPU %" PRId64 ": %s (%" PRId64 " MB)\n", branch, field_integer(gpu, "index", 0), model,
        field_integer(gpu, "memory_bytes", 0) / MEBIBYTE);
}

static void print_gpus(const struct simple_nodes *nodes, const json_t *gpus, const char *name)
{
    size_t count = 0, printed = 0;
    for (size_t i = 0; i < json_array_size(gpus); i++)
        count += field_is(json_array_get(gpus, i), "node", name);
    (void)printf("%s%zu GPU(s) detected%s\n", nodes->is_plain ? "   " : "└─ 🎮 ", count, count > 0 ? ":" : "");
    for (size_t i = 0; i < json_array_size(gpus); i++)
        if (field_is(json_array_get(gpus, i), "node", name))
            print_gpu(nodes, json_array_get(gpus, i), ++printed == count);
}

static void print_connected(const struct simple_nodes *nodes, const json_t *node, struct client *client)
{
    _cleanup_json_ json_t *gpus = NULL;
    _cleanup_free_ char *name = field_shown(node, "name"), *address = field_shown(node, "address");
    bool is_here = !field_is_known(node, "address");
    (void)printf("%sNode %s connected from %s\n", nodes->is_plain ? "" : "🔗 ", name,
        is_here ? "this machine" : address);
    if (client_get(client, API_PATH "/gpus", &gpus, NULL) == 0)
        print_gpus(nodes, json_object_get(gpus, "gpus"), field_text(node, "name"));
}

/* A master's machine without GPUs is not a node in this scheduler's terms. */
static bool is_node(const json_t *node)
{
    return !json_is_false(json_object_get(node, "remote")) || field_integer(node, "gpus", 0) > 0;
}

int simple_nodes_check(struct simple_nodes *nodes, struct client *client)
{
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(client, API_PATH "/nodes", &answer, NULL);
    if (r < 0)
        return r;
    json_t *now = json_object();
    const json_t *rows = json_object_get(answer, "nodes");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *node = json_array_get(rows, i);
        const char *name = field_text(node, "name");
        if (name == NULL || !is_node(node) || !json_is_true(json_object_get(node, "up")))
            continue;
        (void)json_object_set_new(now, name, json_true());
        if (json_object_get(nodes->known, name) == NULL)
            print_connected(nodes, node, client);
    }
    const char *name = NULL;
    json_t *ignored = NULL;
    json_object_foreach(nodes->known, name, ignored)
    {
        if (json_object_get(now, name) == NULL)
            (void)printf("%sNode %s disconnected\n", nodes->is_plain ? "" : "❌ ", name);
    }
    json_decref(nodes->known);
    nodes->known = now;
    (void)fflush(stdout);
    return 0;
}

void simple_nodes_clear(struct simple_nodes *nodes)
{
    json_decref(nodes->known);
}
