/* SPDX-License-Identifier: MIT */
/*
 * READING ── JOIN, PROBE ──> ASKING the store ── answer ──> TELLING ── sent ──> end
 *    └── anything else, or nothing within JOIN_SECONDS: REFUSED, or the end
 *
 * A certificate is sent only after the registry has the key on disk, so every holder of a certificate is
 * known. When mgpud exits, it waits a moment for machines that are joining, and asks the others to try again.
 */
#include "controller/nodes/join.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_quota.h"
#include "base/memory.h"
#include "base/version.h"
#include "controller/controller.h"
#include "controller/nodes/listener.h"
#include "controller/nodes/registry.h"
#include "wire/frame.h"
#include "wire/node_name.h"
#include "wire/tls/authority.h"

#define JOIN_SECONDS 5

struct joinings {
    struct controller *controller;
    struct log_quota *quota;
    struct joining *first;
};

struct joining {
    struct joinings *all;
    struct joining *next, **where_from;
    const struct tls_authority *authority;
    struct bufferevent *stream; // NULL: it left while the store was queried
    struct event *deadline;
    bool is_asking, is_sending;
    bool is_known; // it already is this node, and repeats a request whose answer it did not get
    bool is_busy;  // it may not join now, and is informed if its token is valid
    char *where, *node;
    EVP_PKEY *key;
};

/* The answer to the machine for each result of the store. */
static const struct {
    enum store_join_result result;
    int code;
    const char *text, *hint;
} refusals[] = {
    { STORE_JOIN_UNKNOWN, -EKEYREJECTED, "unknown token",
        "copy the whole output of `mgpu node token`; the token may be from another mgpud" },
    { STORE_JOIN_USED, -EKEYREVOKED, "the token has been used: each is valid for one machine",
        "create another on mgpud's machine: mgpu node token" },
    { STORE_JOIN_EXPIRED, -EKEYEXPIRED, "the token has expired",
        "create another on mgpud's machine: mgpu node token, with --expires 8h if needed" },
    { STORE_JOIN_NOT_FOR_IT, -EKEYREJECTED, "the token is for a node with another name",
        "use that name with --node, or create a token for this one" },
    { STORE_JOIN_NAME_TAKEN, -EEXIST, "this node name belongs to another machine",
        "use another with --node; if this machine replaces it: mgpu node token --replace NAME" },
    { STORE_JOIN_KEY_TAKEN, -EEXIST, "this machine is already a node with another name",
        "run mgpu node forget for that one first, or use its name with --node" },
    { STORE_JOIN_FULL, -ENOSPC, "the disk of mgpud is full", "free space on mgpud's machine" },
};

static void joining_free(struct joining *joining)
{
    *joining->where_from = joining->next;
    if (joining->next != NULL)
        joining->next->where_from = joining->where_from;
    if (joining->stream != NULL)
        bufferevent_free(joining->stream);
    event_free(joining->deadline);
    EVP_PKEY_free(joining->key);
    free(joining->where);
    free(joining->node);
    free(joining);
}

void join_send_refusal(int fd, const struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_free_ char *text = xstrdup(err->message), *hint = xstrdup(err->hint);
    struct message_refused refused = { .error = -err->code, .text = text, .hint = hint };
    record_encode(&message_refused_record, &refused, &bytes);
    (void)send(fd, bytes.bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* If the store is being queried, the entry stays, without its connection, until the answer arrives. */
static void leave(struct joining *joining)
{
    if (!joining->is_asking)
        joining_free(joining);
    else if (joining->stream != NULL)
        bufferevent_free(take_ptr(joining->stream));
}

/* Called for every empty output, including the initial one. */
static void on_sent(struct bufferevent *stream, void *arg)
{
    struct joining *joining = arg;
    if (joining->is_sending)
        leave(joining);
}

static void reply(struct joining *joining, const struct record_type *type, const void *message)
{
    joining->is_sending = true;
    (void)bufferevent_disable(joining->stream, EV_READ);
    (void)frame_send(joining->stream, type, message, &(struct error){ 0 }); // all are short
    bufferevent_trigger(joining->stream, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

static void refuse(struct joining *joining, const struct error *err)
{
    _cleanup_free_ char *text = xstrdup(err->message), *hint = xstrdup(err->hint);
    struct message_refused refused = { .error = -err->code, .text = text, .hint = hint };
    if (log_quota_take(joining->all->quota, "machines that may not join"))
        log_warning("%s may not join%s%s: %s", joining->where, joining->node != NULL ? " as " : "",
            joining->node != NULL ? joining->node : "", err->message);
    reply(joining, &message_refused_record, &refused);
}

static void welcome(struct joining *joining)
{
    struct error err = { 0 };
    _cleanup_certificate_ X509 *certificate = NULL;
    node_listener_cut(
        joining->all->controller->node_listener, joining->node); // of the machine that it replaces
    if (tls_authority_issue(joining->authority, joining->key, joining->node, &certificate, &err) < 0) {
        refuse(joining, &err);
        return;
    }
    _cleanup_free_ char *text = tls_certificate_text(certificate);
    struct message_joined joined = { .certificate = text,
        .controller = joining->all->controller->options.node };
    log_node(LOG_INFO, joining->node, "%s has joined with this name", joining->where);
    if (!joining->is_known)
        core_note_node(joining->all->controller->core, clock_boot_ms(), clock_wall_ms(), CHANGE_NODE_JOIN, 0,
            joining->node);
    reply(joining, &message_joined_record, &joined);
}

static void reply_probed(struct joining *joining)
{
    _cleanup_free_ char *version = xstrdup(MGPU_VERSION);
    struct message_probed probed = {
        .protocol = LINK_PROTOCOL,
        .version = version,
        .wall_ms = clock_wall_ms(),
        .controller = joining->all->controller->options.node,
    };
    reply(joining, &message_probed_record, &probed);
}

static void on_answer(void *arg, enum store_join_result result)
{
    struct joining *joining = arg;
    struct error err = { 0 };
    joining->is_asking = false;
    if (joining->stream == NULL) {
        joining_free(joining);
        return;
    }
    if (joining->is_sending)
        return; // it was refused while the store was queried
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (refusals[i].result == result) {
            (void)error_set(&err, refusals[i].code, "%s", refusals[i].text);
            (void)error_hint(&err, "%s", refusals[i].hint);
        }
    if (result == STORE_JOIN_DONE && joining->is_busy) {
        (void)error_set(
            &err, -EBUSY, "jobs may still be running on the previous machine of node %s", joining->node);
        (void)error_hint(&err, "make sure that it is off, then run mgpu node fence %s", joining->node);
    }
    if (err.code < 0)
        refuse(joining, &err);
    else if (joining->node != NULL)
        welcome(joining);
    else
        reply_probed(joining);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_secret(const char *text, uint8_t hash[JOIN_HASH_SIZE], struct error *err)
{
    uint8_t secret[JOIN_SECRET_SIZE] = { 0 };
    bool is_read = text != NULL && strlen(text) == 2 * sizeof(secret);
    for (size_t i = 0; is_read && i < sizeof(secret); i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
        is_read = high >= 0 && low >= 0;
        secret[i] = is_read ? (uint8_t)(high << 4 | low) : 0;
    }
    if (!is_read)
        return error_set(err, -EKEYREJECTED, "cannot read the token's secret");
    return join_secret_hash(secret, hash, err);
}

static int ask(struct joining *joining, uint64_t token, const char *secret, struct error *err)
{
    struct store_join asked = { .token = token, .node = joining->node, .now_ms = clock_wall_ms() };
    int r = read_secret(secret, asked.hash, err);
    if (r == 0 && joining->key != NULL && !tls_pin_of_key(joining->key, asked.key_hash))
        r = error_set(err, -EIO, "cannot hash the node's key");
    if (r < 0)
        return r;
    struct node_registry *registry = joining->all->controller->registry;
    const struct registered_node *known =
        joining->key != NULL ? registry_find_key(registry, asked.key_hash) : NULL;
    joining->is_known = known != NULL && strcmp(known->name, joining->node) == 0;
    /* Its boot id would be taken as proof that these jobs have ended. Without a node the store only checks
     * the token, so callers without one learn nothing about the jobs. */
    joining->is_busy = joining->key != NULL && !joining->is_known &&
                       core_has_attempts_on(joining->all->controller->core, joining->node);
    if (joining->is_busy)
        asked.node = NULL;
    joining->is_asking = true;
    registry_join(registry, &asked, on_answer, joining);
    return 0;
}

static int on_join(struct joining *joining, const struct message_join *join, struct error *err)
{
    int r = node_name_check(join->node != NULL ? join->node : "", err);
    if (r < 0)
        return r;
    _cleanup_free_ char *who = xasprintf("node %s", join->node);
    joining->node = xstrdup(join->node);
    r = node_version_check(join->protocol, join->version, who, err);
    if (r == 0 && strcmp(join->node, joining->all->controller->options.node) == 0) {
        r = error_set(err, -EEXIST, "%s is the name of the machine that mgpud runs on", join->node);
        (void)error_hint(err, "use another with --node");
    }
    if (r == 0)
        r = tls_authority_read_request(join->request != NULL ? join->request : "", &joining->key, err);
    return r < 0 ? r : ask(joining, join->token, join->secret, err);
}

static int on_probe(struct joining *joining, const struct message_probe *probe, struct error *err)
{
    if (probe->token != 0)
        return ask(joining, probe->token, probe->secret, err);
    reply_probed(joining);
    return 0;
}

static void on_readable(struct bufferevent *stream, void *arg)
{
    struct joining *joining = arg;
    const struct record_type *type = NULL;
    void *message = NULL;
    struct error err = { 0 };
    if (joining->is_asking || joining->is_sending)
        return;
    int r = frame_take(stream, JOIN_MESSAGE_MAX, &type, &message, &err);
    if (r == 0)
        return;
    if (r > 0) {
        (void)bufferevent_disable(stream, EV_READ);
        if (r == FRAME_PARTLY)
            r = err.code;
        else if (type->id == MESSAGE_JOIN)
            r = on_join(joining, message, &err);
        else if (type->id == MESSAGE_PROBE)
            r = on_probe(joining, message, &err);
        else
            r = error_set(&err, -EPROTO, "a machine that is not a node may not send %s", type->name);
        frame_free(type, message);
    }
    if (r < 0)
        refuse(joining, &err);
}

static void on_condition(struct bufferevent *stream, short what, void *arg)
{
    leave(arg);
}

/* The deadline applies however fast bytes arrive: few such connections are allowed. */
static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    leave(arg);
}

struct joinings *joinings_new(struct controller *controller, struct log_quota *quota)
{
    struct joinings *joinings = xcalloc(1, sizeof(*joinings));
    *joinings = (struct joinings){ .controller = controller, .quota = quota };
    return joinings;
}

void joinings_free(struct joinings *joinings)
{
    if (joinings == NULL)
        return;
    while (joinings->first != NULL)
        joining_free(joinings->first);
    free(joinings);
}

void joinings_add(struct joinings *joinings, const struct tls_authority *authority, int fd, const char *where)
{
    const struct timeval limit = { .tv_sec = JOIN_SECONDS };
    struct event_base *loop = joinings->controller->loop;
    struct joining *joining = xcalloc(1, sizeof(*joining));
    *joining = (struct joining){ .all = joinings,
        .next = joinings->first,
        .where_from = &joinings->first,
        .authority = authority,
        .where = xstrdup(where) };
    if (joining->next != NULL)
        joining->next->where_from = &joining->next;
    joinings->first = joining;
    joining->stream = bufferevent_socket_new(loop, fd, BEV_OPT_CLOSE_ON_FREE);
    joining->deadline = evtimer_new(loop, on_deadline, joining);
    if (joining->stream == NULL || joining->deadline == NULL)
        abort(); // memory
    (void)evtimer_add(joining->deadline, &limit);
    bufferevent_setcb(joining->stream, on_readable, on_sent, on_condition, joining);
    (void)bufferevent_enable(joining->stream, EV_READ | EV_WRITE);
}

void joinings_refuse_all(struct joinings *joinings)
{
    struct error err = { 0 };
    (void)error_set(&err, -EAGAIN, "mgpud is stopping");
    (void)error_hint(
        &err, "join again with the same token once it is back: it is still valid for this machine");
    for (struct joining *joining = joinings->first; joining != NULL; joining = joining->next)
        if (joining->stream != NULL && !joining->is_sending)
            refuse(joining, &err);
}
