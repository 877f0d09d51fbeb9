/* SPDX-License-Identifier: MIT */
/* A gather is complete when each of its nodes has sent its part; then all of them get all parts. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "compat/step/step_peer.h"

#define NODE_SHIFT 48U // bits of the requesting node in the number of a request

struct gather {
    struct buffer key, parts;
    uint32_t *nodes;
    bool *has_part;
    size_t n_nodes, n_missing;
    struct gather *next;
};

struct step_gathers {
    struct gather *first;
};

static void gather_free(struct gather *gather)
{
    buffer_clear(&gather->key);
    buffer_clear(&gather->parts);
    free(gather->nodes);
    free(gather->has_part);
    free(gather);
}

static size_t place_of(const struct gather *gather, uint32_t node)
{
    size_t i = 0;
    while (i < gather->n_nodes && gather->nodes[i] != node)
        i++;
    return i;
}

/* The gather that waits for this node's part; a key is reused only after its gather is complete. */
static struct gather *find(const struct step *step, const void *key, size_t length, uint32_t node)
{
    struct gather *gather = step->gathers != NULL ? step->gathers->first : NULL;
    for (; gather != NULL; gather = gather->next) {
        size_t place = place_of(gather, node);
        if (gather->key.length == length && (length == 0 || memcmp(gather->key.bytes, key, length) == 0) &&
            place < gather->n_nodes && !gather->has_part[place])
            return gather;
    }
    return NULL;
}

static struct gather *make(
    struct step *step, const void *key, size_t length, const uint32_t *nodes, size_t count)
{
    struct gather *gather = xcalloc(1, sizeof(*gather));
    if (step->gathers == NULL)
        step->gathers = xcalloc(1, sizeof(*step->gathers));
    *gather = (struct gather){ .n_nodes = count, .n_missing = count, .next = step->gathers->first };
    gather->nodes = xcalloc(count + 1, sizeof(*gather->nodes));
    gather->has_part = xcalloc(count + 1, sizeof(*gather->has_part));
    memcpy(gather->nodes, nodes, count * sizeof(*nodes));
    buffer_append(&gather->key, key, length);
    step->gathers->first = gather;
    return gather;
}

static void finish(struct step *step, struct gather *gather)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    struct gather **link = &step->gathers->first;
    while (*link != gather)
        link = &(*link)->next;
    *link = gather->next;
    frame_add_number(&out, 4, gather->key.length);
    buffer_append(&out, gather->key.bytes, gather->key.length);
    if (gather->parts.length > 0)
        buffer_append(&out, gather->parts.bytes, gather->parts.length);
    for (size_t i = 0; i < gather->n_nodes; i++)
        step_peer_put(&step->peers[gather->nodes[i]], FRAME_GATHER, FRAME_ALL, out.bytes, out.length);
    gather_free(gather);
}

void step_gather(struct step *step, const struct step_peer *from, const struct frame *frame)
{
    size_t position = 0;
    uint64_t key_length = 0, count = 0, node = 0;
    bool is_one = false; // the sender must be one of the nodes
    if (!frame_number(frame, &position, 4, &key_length) || key_length > frame->length - position)
        return;
    const uint8_t *key = frame->bytes + position;
    position += (size_t)key_length;
    if (!frame_number(frame, &position, 4, &count) || count > step->nodes.count)
        return;
    _cleanup_free_ uint32_t *nodes = xcalloc((size_t)count + 1, sizeof(*nodes));
    for (size_t i = 0; i < count; i++) {
        if (!frame_number(frame, &position, 4, &node) || node >= step->nodes.count)
            return;
        nodes[i] = (uint32_t)node;
        is_one = is_one || node == from->node;
    }
    if (!is_one)
        return;
    struct gather *gather = find(step, key, (size_t)key_length, from->node);
    if (gather == NULL)
        gather = make(step, key, (size_t)key_length, nodes, (size_t)count);
    gather->has_part[place_of(gather, from->node)] = true;
    gather->n_missing--;
    buffer_append(&gather->parts, frame->bytes + position, frame->length - position);
    if (gather->n_missing == 0)
        finish(step, gather);
}

void step_modex(struct step *step, const struct step_peer *from, const struct frame *frame)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    size_t position = 0;
    uint64_t request = 0;
    if (!frame_number(frame, &position, 8, &request))
        return;
    bool is_question = frame->type == FRAME_MODEX;
    uint32_t node = is_question && frame->task < step->count ? step->tasks[frame->task].node
                                                             : (uint32_t)(request >> NODE_SHIFT);
    if (node >= step->nodes.count || (is_question && request >> NODE_SHIFT != 0))
        return;
    frame_add_number(&out, 8,
        is_question ? request | (uint64_t)from->node << NODE_SHIFT
                    : request & ((UINT64_C(1) << NODE_SHIFT) - 1));
    buffer_append(&out, frame->bytes + position, frame->length - position);
    step_peer_put(&step->peers[node], frame->type, frame->task, out.bytes, out.length);
}

void step_gathers_clear(struct step *step)
{
    while (step->gathers != NULL && step->gathers->first != NULL) {
        struct gather *gather = step->gathers->first;
        step->gathers->first = gather->next;
        gather_free(gather);
    }
    free(take_ptr(step->gathers));
}
