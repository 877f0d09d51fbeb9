/* SPDX-License-Identifier: MIT */
/*
 * The store's tables in memory. Memory follows the disk: a machine that joins is added when that is durable.
 * A removed node, however, loses its rights and its links in memory first.
 */
#include "controller/nodes/registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/containers/name_table.h"
#include "base/log.h"
#include "base/memory.h"
#include "controller/controller.h"

#define KEY_BUCKETS 1024U

struct node_registry {
    struct controller *controller;
    struct registered_node **nodes;
    size_t count;
    struct name_table names;                     // positions
    struct registered_node *by_key[KEY_BUCKETS]; // that joined, by the beginning of the hash of their key
    int64_t tokens_until_ms;                     // wall clock
};

struct node_registry *registry_new(struct controller *controller)
{
    struct node_registry *registry = xcalloc(1, sizeof(*registry));
    registry->controller = controller;
    return registry;
}

static void node_free(struct registered_node *node)
{
    free(node->name);
    free(node->address);
    free(node);
}

void registry_free(struct node_registry *registry)
{
    if (registry == NULL)
        return;
    for (size_t i = 0; i < registry->count; i++)
        node_free(registry->nodes[i]);
    free(registry->nodes);
    name_table_clear(&registry->names);
    free(registry);
}

static struct registered_node *find(const struct node_registry *registry, const char *name)
{
    size_t at = name_table_find(&registry->names, name);
    return at != NAME_NONE ? registry->nodes[at] : NULL;
}

static size_t bucket_of(const uint8_t key_hash[STORE_HASH_SIZE])
{
    return (key_hash[0] | (size_t)key_hash[1] << 8) % KEY_BUCKETS;
}

static void remove_key(struct node_registry *registry, struct registered_node *node)
{
    struct registered_node **at = &registry->by_key[bucket_of(node->key_hash)];
    while (*at != node)
        at = &(*at)->next_of_key;
    *at = node->next_of_key;
}

static void set_key(
    struct node_registry *registry, struct registered_node *node, const uint8_t key_hash[STORE_HASH_SIZE])
{
    struct registered_node **bucket = &registry->by_key[bucket_of(key_hash)];
    if (node->is_remote)
        remove_key(registry, node);
    memcpy(node->key_hash, key_hash, STORE_HASH_SIZE);
    node->is_remote = true;
    node->next_of_key = *bucket;
    *bucket = node;
}

static struct registered_node *find_or_add(struct node_registry *registry, const char *name)
{
    struct registered_node *node = find(registry, name);
    if (node != NULL)
        return node;
    registry->nodes = xreallocarray(registry->nodes, registry->count + 1, sizeof(struct registered_node *));
    node = registry->nodes[registry->count++] = xcalloc(1, sizeof(*node));
    node->name = xstrdup(name);
    name_table_add(&registry->names, node->name, registry->count - 1);
    return node;
}

static void enter(struct node_registry *registry, const struct store_node *joined)
{
    struct registered_node *node = find_or_add(registry, joined->name);
    set_key(registry, node, joined->key_hash);
    node->joined_ms = joined->joined_ms;
}

static void load_node(void *arg, const struct store_node *node)
{
    struct node_registry *registry = arg;
    if (strcmp(node->name, registry->controller->options.node) == 0)
        log_warning(
            "a joined machine has the name %s, which this machine has now: it cannot reconnect", node->name);
    else
        enter(registry, node);
}

int registry_load(struct node_registry *registry, struct error *err)
{
    return store_load_nodes(
        registry->controller->store, load_node, registry, &registry->tokens_until_ms, err);
}

static bool has_remote(const struct node_registry *registry)
{
    for (size_t i = 0; i < registry->count; i++)
        if (registry->nodes[i]->is_remote)
            return true;
    return false;
}

bool registry_awaits(const struct node_registry *registry)
{
    return has_remote(registry) || registry->tokens_until_ms > clock_wall_ms();
}

int64_t registry_awaits_until(const struct node_registry *registry)
{
    return has_remote(registry) || registry->tokens_until_ms <= clock_wall_ms() ? 0
                                                                                : registry->tokens_until_ms;
}

const struct registered_node *registry_find(const struct node_registry *registry, const char *name)
{
    return find(registry, name);
}

const struct registered_node *registry_find_key(
    const struct node_registry *registry, const uint8_t key_hash[STORE_HASH_SIZE])
{
    const struct registered_node *node = registry->by_key[bucket_of(key_hash)];
    while (node != NULL && memcmp(node->key_hash, key_hash, STORE_HASH_SIZE) != 0)
        node = node->next_of_key;
    return node;
}

void registry_each(const struct node_registry *registry,
    void (*visit)(void *arg, const struct registered_node *node), void *arg)
{
    for (size_t i = 0; i < registry->count; i++)
        visit(arg, registry->nodes[i]);
}

void registry_note_link(struct node_registry *registry, const char *name, const char *address, bool is_up)
{
    struct registered_node *node = is_up ? find_or_add(registry, name) : find(registry, name);
    if (node == NULL)
        return; // it was removed
    if (is_up && address != NULL) {
        free(node->address);
        node->address = xstrdup(address);
    }
    if (node->is_up != is_up)
        node->since_ms = clock_wall_ms();
    node->is_up = is_up;
}

/* --- changes that wait for the disk --- */

struct change {
    struct node_registry *registry;
    struct store_node node; // joining
    void (*on_made)(void *arg, uint64_t id);
    void (*on_joined)(void *arg, enum store_join_result result);
    void (*on_forgotten)(void *arg, bool is_done);
    void *arg;
    int64_t expires_ms;
};

static void change_free(struct change *change)
{
    free(change->node.name);
    free(change);
}

static void on_made(void *arg, uint64_t id)
{
    struct change *change = arg;
    if (id != 0 && change->expires_ms > change->registry->tokens_until_ms)
        change->registry->tokens_until_ms = change->expires_ms;
    change->on_made(change->arg, id);
    change_free(change);
}

int registry_make_token(struct node_registry *registry, const struct store_join_token *token,
    uint8_t secret[JOIN_SECRET_SIZE], void (*done)(void *arg, uint64_t id), void *arg, struct error *err)
{
    uint8_t hash[JOIN_HASH_SIZE];
    int r = join_secret_make(secret, hash, err);
    if (r < 0)
        return r;
    struct change *change = xcalloc(1, sizeof(*change));
    *change =
        (struct change){ .registry = registry, .on_made = done, .arg = arg, .expires_ms = token->expires_ms };
    store_add_join_token(registry->controller->store, token, hash, on_made, change);
    return 0;
}

static void on_joined(void *arg, enum store_join_result result)
{
    struct change *change = arg;
    if (result == STORE_JOIN_DONE && change->node.name != NULL)
        enter(change->registry, &change->node);
    change->on_joined(change->arg, result);
    change_free(change);
}

void registry_join(struct node_registry *registry, const struct store_join *asked,
    void (*done)(void *arg, enum store_join_result result), void *arg)
{
    struct change *change = xcalloc(1, sizeof(*change));
    *change = (struct change){
        .registry = registry,
        .on_joined = done,
        .arg = arg,
        .node = { .name = xstrdup(asked->node), .joined_ms = asked->now_ms },
    };
    memcpy(change->node.key_hash, asked->key_hash, STORE_HASH_SIZE);
    store_join_node(registry->controller->store, asked, on_joined, change);
}

static void on_forgotten(void *arg, bool is_done)
{
    struct change *change = arg;
    change->on_forgotten(change->arg, is_done);
    change_free(change);
}

/* The last node takes its place, and the table of names does not support removal. */
static void drop(struct node_registry *registry, size_t at)
{
    remove_key(registry, registry->nodes[at]);
    node_free(registry->nodes[at]);
    registry->nodes[at] = registry->nodes[--registry->count];
    name_table_clear(&registry->names);
    for (size_t i = 0; i < registry->count; i++)
        name_table_add(&registry->names, registry->nodes[i]->name, i);
}

void registry_forget(
    struct node_registry *registry, const char *name, void (*done)(void *arg, bool is_done), void *arg)
{
    size_t at = name_table_find(&registry->names, name);
    if (at != NAME_NONE && registry->nodes[at]->is_remote)
        drop(registry, at);
    struct change *change = xcalloc(1, sizeof(*change));
    *change = (struct change){ .registry = registry, .on_forgotten = done, .arg = arg };
    store_forget_node(registry->controller->store, name, on_forgotten, change);
}
