/* SPDX-License-Identifier: MIT */
/* Which machines are nodes, as the API sees it in its tests: gpu1 has joined, "nobody" is none, others are
 * local.
 */
#include <errno.h>
#include <string.h>

#include "controller/nodes/listener.h"
#include "controller/nodes/registry.h"
#include "serve_later.h"

const struct registered_node *registry_find(const struct node_registry *registry, const char *name)
{
    static char names[2][8] = { "gpu1", "box" };
    static struct registered_node joined = { .name = names[0], .is_remote = true };
    static struct registered_node local = { .name = names[1] };
    if (strcmp(name, "nobody") == 0)
        return NULL;
    return strcmp(name, joined.name) == 0 ? &joined : &local;
}

void registry_each(const struct node_registry *registry,
    void (*visit)(void *arg, const struct registered_node *node), void *arg)
{
    char name[] = "absent";
    const struct registered_node node = { .name = name, .is_remote = true };
    if (current->has_absent_node)
        visit(arg, &node);
}

static void call_forgotten(struct later *later)
{
    ((void (*)(void *, bool))later->callback)(later->arg, true);
}

void registry_forget(struct node_registry *registry, const char *name,
    void (*on_forgotten)(void *arg, bool is_done), void *arg)
{
    struct later *later = later_add(LATER_CALL);
    later->call = call_forgotten;
    later->callback = (void (*)(void))on_forgotten;
    later->arg = arg;
}

int registry_make_token(struct node_registry *registry, const struct store_join_token *token,
    uint8_t secret[JOIN_SECRET_SIZE], void (*on_made)(void *arg, uint64_t id), void *arg, struct error *err)
{
    return error_set(err, -ENOSPC, "no tokens in these tests");
}

int node_listener_open(struct node_listener *listener, struct error *err)
{
    return error_set(err, -EINVAL, "this mgpud takes no nodes");
}

int node_listener_update(struct node_listener *listener, struct error *err)
{
    return 0;
}

int node_listener_authority(
    struct node_listener *listener, const struct tls_authority **ret, struct error *err)
{
    return error_set(err, -EIO, "no keys in these tests");
}

void node_listener_cut(struct node_listener *listener, const char *node)
{
    current->nodes_cut++;
}
