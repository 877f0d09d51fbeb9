/* SPDX-License-Identifier: MIT */
/*
 * One bufferevent per agent. A frame is a record; the first one must be HELLO. An invalid, too large, unknown
 * or unexpected frame ends the link: the agent reconnects and everything is sent again.
 *
 * A link from another machine may only send HELLO for its own node. When it reconnects, an older link whose
 * end was not noticed is closed.
 */
#include "controller/nodes/links.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/containers/name_table.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "controller/controller.h"
#include "controller/nodes/join.h"
#include "controller/nodes/registry.h"
#include "controller/turns.h"
#include "wire/frame.h"
#include "wire/node_name.h"

#define LINK_BUCKETS    1024U
#define LINK_OUTPUT_MAX (256U << 20) // bytes waiting for an agent that does not read

struct link {
    struct links *links;
    uint32_t id;
    struct bufferevent *stream;
    bool is_up;      // has sent HELLO
    bool has_defect; // one of its messages could be read only in part
    char *node;      // the node, known from the start or from HELLO; NULL: unknown
    char *address;   // NULL: this machine
    char *here;      // address at which that node reaches this machine; NULL: unknown
    struct link *next, **where;
    struct link *chain;                    // in its bucket
    struct link *node_chain, **node_where; // in the chain of its node
};

struct links {
    struct controller *controller;
    uint32_t last_id;
    struct link *first;
    struct link *buckets[LINK_BUCKETS]; // by id
    struct link *nodes[LINK_BUCKETS];   // links with a known node, by node
};

struct links *links_new(struct controller *controller)
{
    struct links *links = xcalloc(1, sizeof(*links));
    links->controller = controller;
    return links;
}

static struct link **bucket_of(struct links *links, uint32_t id)
{
    return &links->buckets[id % LINK_BUCKETS];
}

static struct link **bucket_of_node(struct links *links, const char *node)
{
    return &links->nodes[name_hash(node) % LINK_BUCKETS];
}

static void set_node(struct link *link, const char *node)
{
    struct link **bucket = bucket_of_node(link->links, node);
    link->node = xstrdup(node);
    link->node_chain = *bucket;
    link->node_where = bucket;
    if (link->node_chain != NULL)
        link->node_chain->node_where = &link->node_chain;
    *bucket = link;
}

static void link_close(struct link *link)
{
    struct link **chain = bucket_of(link->links, link->id);
    *link->where = link->next;
    if (link->next != NULL)
        link->next->where = link->where;
    if (link->node != NULL)
        *link->node_where = link->node_chain;
    if (link->node_chain != NULL)
        link->node_chain->node_where = link->node_where;
    while (*chain != link)
        chain = &(*chain)->chain;
    *chain = link->chain;
    if (link->is_up) {
        registry_note_link(link->links->controller->registry, link->node, link->address, false);
        core_link_down(link->links->controller->core, clock_boot_ms(), clock_wall_ms(), link->id);
    }
    bufferevent_free(link->stream);
    free(link->node);
    free(link->address);
    free(link->here);
    free(link);
}

void links_free(struct links *links)
{
    if (links == NULL)
        return;
    while (links->first != NULL)
        link_close(links->first);
    free(links);
}

/* Messages that arrive constantly from every node. */
static bool is_routine(const struct record_type *type)
{
    return type->id == MESSAGE_HEARTBEAT || type->id == MESSAGE_HEARTBEAT_ACK || type->id == MESSAGE_GPUS;
}

static int check_hello(const struct link *link, const struct message_hello *hello, struct error *err)
{
    if (link->address == NULL || hello->node == NULL)
        return 0;
    if (strcmp(link->node, hello->node) != 0) {
        (void)error_set(
            err, -EACCES, "this machine is node %s and may not act as %.64s", link->node, hello->node);
        return error_hint(err, "start mgpu-agent with the name it joined with");
    }
    _cleanup_free_ char *who = xasprintf("node %s", link->node);
    return node_version_check(hello->protocol, hello->version, who, err);
}

/* Closes older links of the same machine. */
static void close_older(struct link *newer)
{
    for (struct link *link = *bucket_of_node(newer->links, newer->node), *next; link != NULL; link = next) {
        next = link->node_chain;
        if (link->id >= newer->id || !text_equal(link->node, newer->node))
            continue;
        link->is_up = false; // the newer link is now the node's
        link_close(link);
    }
}

static int take_hello(struct link *link, const struct message_hello *hello, struct error *err)
{
    struct controller *controller = link->links->controller;
    bool was_old = core_is_store_old(controller->core);
    int r = check_hello(link, hello, err);
    if (r == 0)
        r = core_link_up(controller->core, clock_boot_ms(), clock_wall_ms(), link->id, hello, err);
    if (!was_old && core_is_store_old(controller->core))
        log_node(LOG_WARNING, hello->node,
            "it has seen a later state than the store: the store is an older copy; all nodes "
            "are drained; cancel jobs that have already run, then 'mgpu node resume NAME'");
    if (r < 0) {
        if (link->address != NULL)
            join_send_refusal(bufferevent_getfd(link->stream), err);
        return r;
    }
    link->is_up = true;
    if (link->node == NULL)
        set_node(link, hello->node);
    close_older(link);
    if (link->address != NULL)
        core_set_address(controller->core, link->id, link->address, link->here);
    registry_note_link(controller->registry, link->node, link->address, true);
    log_node(LOG_INFO, hello->node, "up%s%s: %zu GPUs (%s), %u CPUs, %zu attempt%s known",
        link->address != NULL ? " at " : "", link->address != NULL ? link->address : "", hello->gpus.count,
        hello->gpu_backend != NULL ? hello->gpu_backend : "none", hello->cpus, hello->attempts.count,
        hello->attempts.count == 1 ? "" : "s");
    if (link->address == NULL)
        controller->on_local_node_up(controller);
    return 0;
}

static int on_message(
    struct link *link, const struct record_type *type, const void *message, struct error *err)
{
    struct controller *controller = link->links->controller;
    int64_t boot_ms = clock_boot_ms(), wall_ms = clock_wall_ms();
    if (link->is_up)
        return core_link_message(controller->core, boot_ms, wall_ms, link->id, type->id, message, err);
    if (type->id != MESSAGE_HELLO)
        return error_set(err, -EPROTO, "the first message was %s, not HELLO", type->name);
    return take_hello(link, message, err);
}

/* A report about an attempt can lack only texts. An incomplete sample is discarded: the next one arrives
 * soon. */
static int take_defective(
    struct link *link, const struct record_type *type, const void *message, struct error *err)
{
    if (!link->is_up)
        return err->code;
    if (!link->has_defect)
        log_node(LOG_ERROR, link->node, "%s: %s; reported only once", type->name, err->message);
    link->has_defect = true;
    *err = (struct error){ 0 };
    return type->id == MESSAGE_GPUS ? 0 : on_message(link, type, message, err);
}

static int take(
    void *arg, enum frame_taken taken, const struct record_type *type, void *message, struct error *err)
{
    struct link *link = arg;
    if (!is_routine(type))
        log_debug("link %u: %s", link->id, type->name);
    int64_t began_us = turns_step_begin();
    int r = taken == FRAME_PARTLY ? take_defective(link, type, message, err)
                                  : on_message(link, type, message, err);
    turns_step_end(link->links->controller->turns, began_us, "message", type->name);
    return r;
}

static void on_readable(struct bufferevent *stream, void *arg)
{
    struct link *link = arg;
    struct error err;
    int r = frame_take_all(stream, LINK_MESSAGE_MAX, take, link, &err);
    if (r == 0)
        return;
    enum log_level level = r == -EAGAIN ? LOG_WARNING : LOG_ERROR; // it connects again, and is accepted
    if (link->address != NULL)
        log_node(level, link->node, "disconnected from %s: %s", link->address, err.message);
    else
        log_line(level, "link %u closed: %s", link->id, err.message);
    link_close(link);
}

static void on_event(struct bufferevent *stream, short events, void *arg)
{
    struct link *link = arg;
    if ((events & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0)
        return;
    if (link->is_up)
        log_node(LOG_WARNING, link->node,
            "the agent has exited; its jobs continue and will be taken over by the next one");
    link_close(link);
}

static struct link *adopt(struct links *links, int fd)
{
    (void)evutil_make_socket_nonblocking(fd);
    struct link *link = xcalloc(1, sizeof(*link));
    *link =
        (struct link){ .links = links, .id = ++links->last_id, .next = links->first, .where = &links->first };
    link->stream = bufferevent_socket_new(links->controller->loop, fd, BEV_OPT_CLOSE_ON_FREE);
    if (link->stream == NULL)
        abort();
    if (link->next != NULL)
        link->next->where = &link->next;
    links->first = link;
    struct link **bucket = bucket_of(links, link->id);
    link->chain = *bucket;
    *bucket = link;
    bufferevent_setcb(link->stream, on_readable, NULL, on_event, link);
    (void)bufferevent_enable(link->stream, EV_READ | EV_WRITE);
    return link;
}

void links_adopt(struct links *links, int fd)
{
    (void)adopt(links, fd);
}

void links_adopt_node(struct links *links, int fd, const char *node, const char *address, const char *here)
{
    struct link *link = adopt(links, fd);
    set_node(link, node);
    link->address = xstrdup(address);
    link->here = xstrdup(here);
}

static struct link *find(struct links *links, uint32_t id)
{
    struct link *link = *bucket_of(links, id);
    while (link != NULL && link->id != id)
        link = link->chain;
    return link;
}

void links_close(struct links *links, uint32_t id)
{
    const struct link *link = find(links, id);
    if (link != NULL)
        bufferevent_trigger_event(link->stream, BEV_EVENT_EOF, BEV_TRIG_DEFER_CALLBACKS);
}

void links_send(struct links *links, uint32_t id, const struct record_type *type, const void *message)
{
    const struct link *link = find(links, id);
    if (link == NULL)
        return;
    struct error err = { 0 };
    int r = frame_send(link->stream, type, message, &err);
    if (r != 0)
        log_error("link %u: %s; %s", id, err.message,
            r > 0 ? "it is sent without its lists, and will be refused there" : "it is not sent");
    if (!is_routine(type))
        log_debug("link %u: sent %s", id, type->name);
    if (evbuffer_get_length(bufferevent_get_output(link->stream)) <= LINK_OUTPUT_MAX)
        return;
    log_error("link %u: the agent does not read, %u bytes pending; it must reconnect", id, LINK_OUTPUT_MAX);
    bufferevent_trigger_event(link->stream, BEV_EVENT_ERROR, BEV_TRIG_DEFER_CALLBACKS);
}
