/* SPDX-License-Identifier: MIT */
/*
 * The handshake of a connection negotiates its purpose:
 *
 *   JOIN    from a machine that is not a node yet, without a certificate: nodes/join.h
 *   LINK    from a node: its frames go to links.h
 *   STREAM  from a node, requested by links.h, with a one-time id, or of a command in a job: streams.h
 *
 * The peer is identified by the key it has proved to have, looked up in the registry. Other files see only
 * plain sockets.
 */
#include "controller/nodes/listener.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_quota.h"
#include "base/memory.h"
#include "controller/controller.h"
#include "controller/nodes/join.h"
#include "controller/nodes/links.h"
#include "controller/nodes/reach.h"
#include "controller/nodes/registry.h"
#include "controller/nodes/sockets.h"
#include "controller/nodes/streams.h"
#include "wire/address.h"
#include "wire/tls/authority.h"
#include "wire/tls/context.h"
#include "wire/tls/gate.h"
#include "wire/tls/sessions.h"

#define NODE_SESSIONS_MAX 1024U // per node: its link and its streams
#define JOINS_MAX         32U   // machines that are joining at once
#define JOINING           ""    // label of connections without a node; others have the node's name
#define RETRY_SECONDS     10    // if the port was not available
#define LATER_MS          1000  // after the expiry of the last token, so that it has certainly expired

struct node_listener {
    struct controller *controller;
    char *tls_dir;
    struct tls_authority *authority;
    struct tls_gate *gate;
    struct tls_sessions *sessions;
    struct joinings *joinings;
    struct log_quota quota; // of refusals
    struct event *timer;    // checks whether the port is still needed, or is available now
};

static void on_session_end(void *arg, const char *label, const struct error *err)
{
    if (err->code != 0 && label[0] != '\0')
        log_node(LOG_INFO, label, "%s", err->message);
}

/* Sends the reason as the last message of the connection. */
static void refuse(struct node_listener *listener, SSL *ssl, int fd, const struct error *err)
{
    int plain = -1;
    _cleanup_free_ char *where = address_of_peer(fd);
    if (log_quota_take(&listener->quota, "refused nodes"))
        log_warning("connection from %s refused: %s", where, err->message);
    if (tls_sessions_count(listener->sessions, JOINING) >= JOINS_MAX) {
        SSL_free(ssl);
        (void)close(fd);
        return;
    }
    if (tls_sessions_open(listener->sessions, ssl, fd, JOINING, &plain) < 0)
        return;
    join_send_refusal(plain, err);
    (void)close(plain);
}

/* The node with this certificate's key; otherwise `err` has the reason for the refusal. */
static const struct registered_node *find_node(struct node_listener *listener, SSL *ssl, struct error *err)
{
    uint8_t pin[TLS_PIN_SIZE];
    if (!tls_peer_pin(ssl, pin)) {
        (void)error_set(err, -EACCES, "it has no certificate");
        (void)error_hint(err, "join first: mgpu-agent --join with the output of `mgpu node token`");
        return NULL;
    }
    const struct registered_node *node = registry_find_key(listener->controller->registry, pin);
    if (node != NULL)
        return node;
    X509 *certificate = SSL_get0_peer_certificate(ssl);
    _cleanup_free_ char *name = tls_certificate_name(certificate);
    bool is_ours = tls_authority_has_issued(listener->authority, certificate);
    (void)error_set(err, -EACCES,
        is_ours ? "node %.64s was removed, or its name was given to another machine"
                : "node %.64s has a certificate of another cluster",
        name != NULL ? name : "without a name");
    (void)error_hint(err, "to use it here: run `mgpu node token` on mgpud's machine, then mgpu-agent --join");
    return NULL;
}

static void take_node(struct node_listener *listener, SSL *ssl, int fd)
{
    struct controller *controller = listener->controller;
    struct error err = { 0 };
    bool is_link = tls_is_for(ssl, TLS_FOR_LINK);
    const struct registered_node *node = find_node(listener, ssl, &err);
    if (node != NULL && tls_sessions_count(listener->sessions, node->name) >= NODE_SESSIONS_MAX) {
        node = NULL;
        (void)error_set(&err, -EUSERS, "a node can have at most %u connections", NODE_SESSIONS_MAX);
    }
    if (node == NULL) {
        refuse(listener, ssl, fd, &err);
        return;
    }
    _cleanup_free_ char *where = address_of_peer(fd), *here = address_of_self(fd);
    int plain = -1;
    if (tls_sessions_open(listener->sessions, ssl, fd, node->name, &plain) < 0)
        return;
    if (is_link)
        links_adopt_node(controller->links, plain, node->name, where, here);
    else
        streams_adopt(controller->streams, plain, node->name);
}

static void take_joining(struct node_listener *listener, SSL *ssl, int fd)
{
    int plain = -1;
    _cleanup_free_ char *where = address_of_peer(fd);
    if (tls_sessions_count(listener->sessions, JOINING) >= JOINS_MAX) {
        if (log_quota_take(&listener->quota, "refused nodes"))
            log_warning("%s refused: %u others are joining", where, JOINS_MAX);
        SSL_free(ssl);
        (void)close(fd);
        return;
    }
    if (tls_sessions_open(listener->sessions, ssl, fd, JOINING, &plain) == 0)
        joinings_add(listener->joinings, listener->authority, plain, where);
}

static void on_open(void *arg, SSL *ssl, int fd)
{
    struct node_listener *listener = arg;
    if (tls_is_for(ssl, TLS_FOR_JOIN)) {
        take_joining(listener, ssl, fd);
    } else if (tls_is_for(ssl, TLS_FOR_LINK) || tls_is_for(ssl, TLS_FOR_STREAM)) {
        take_node(listener, ssl, fd);
    } else {
        SSL_free(ssl); // without a purpose: not from a program of mgpu
        (void)close(fd);
    }
}

int node_listener_authority(
    struct node_listener *listener, const struct tls_authority **ret, struct error *err)
{
    const struct controller_options *options = &listener->controller->options;
    _cleanup_strings_ struct strings names = { 0 };
    reach_names(options->listen, API_PORT, &names);
    reach_names(options->nodes_listen, NODES_PORT, &names);
    int r = listener->authority == NULL
                ? tls_authority_open(listener->tls_dir, &names, &listener->authority, err)
                : 0;
    *ret = listener->authority;
    return r;
}

int node_listener_open(struct node_listener *listener, struct error *err)
{
    static const char *const purposes[] = { TLS_FOR_LINK, TLS_FOR_STREAM, TLS_FOR_JOIN, NULL };
    const char *where = listener->controller->options.nodes_listen;
    const struct tls_authority *authority = NULL;
    _cleanup_context_ SSL_CTX *context = NULL;
    _cleanup_close_ int fd = -1;
    if (listener->gate != NULL)
        return 0;
    if (strcmp(where, "none") == 0) {
        (void)error_set(err, -EINVAL, "this mgpud accepts no nodes: nodes-listen is none");
        return error_hint(err, "start mgpud with --nodes-listen '[::]:" NODES_PORT "'");
    }
    int r = node_listener_authority(listener, &authority, err);
    if (r == 0)
        r = tls_context_server(authority, purposes, &context, err);
    if (r == 0)
        r = sockets_listen_tcp("--nodes-listen", where, &fd, err);
    if (r < 0)
        return r;
    listener->gate = tls_gate_new(listener->controller->loop, context, take_fd(&fd), on_open, listener);
    log_info("listening for nodes on %s", where);
    return 0;
}

static void arm(struct node_listener *listener, int64_t wait_ms)
{
    struct timeval wait = { .tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000 };
    (void)evtimer_add(listener->timer, &wait);
}

int node_listener_update(struct node_listener *listener, struct error *err)
{
    const struct node_registry *registry = listener->controller->registry;
    if (!registry_awaits(registry)) {
        if (listener->gate != NULL)
            log_info("the node port is closed: there are no nodes and no valid tokens");
        tls_gate_free(listener->gate);
        listener->gate = NULL;
        return 0;
    }
    int64_t until_ms = registry_awaits_until(registry), now_ms = clock_wall_ms();
    if (until_ms > now_ms)
        arm(listener, until_ms - now_ms + LATER_MS);
    int r = node_listener_open(listener, err);
    if (r < 0 && strcmp(listener->controller->options.nodes_listen, "none") != 0)
        arm(listener, RETRY_SECONDS * 1000L);
    return r;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct error err = { 0 };
    if (node_listener_update(arg, &err) < 0)
        log_error("cannot accept nodes: %s", err.message);
}

void node_listener_shut(struct node_listener *listener)
{
    (void)evtimer_del(listener->timer);
    if (listener->gate != NULL)
        tls_gate_shut(listener->gate);
}

bool node_listener_is_joining(const struct node_listener *listener)
{
    bool is_shaking = listener->gate != NULL && tls_gate_count(listener->gate) > 0;
    return is_shaking || tls_sessions_count(listener->sessions, JOINING) > 0;
}

void node_listener_refuse(struct node_listener *listener)
{
    joinings_refuse_all(listener->joinings);
}

void node_listener_cut(struct node_listener *listener, const char *node)
{
    tls_sessions_cut(listener->sessions, node);
}

struct node_listener *node_listener_new(struct controller *controller, const char *store_dir)
{
    struct node_listener *listener = xcalloc(1, sizeof(*listener));
    listener->controller = controller;
    listener->tls_dir = xasprintf("%s/tls", store_dir);
    listener->sessions = tls_sessions_new(controller->loop, on_session_end, listener);
    listener->joinings = joinings_new(controller, &listener->quota);
    listener->timer = evtimer_new(controller->loop, on_timer, listener);
    if (listener->timer == NULL)
        abort(); // memory
    return listener;
}

void node_listener_free(struct node_listener *listener)
{
    if (listener == NULL)
        return;
    tls_gate_free(listener->gate);
    joinings_free(listener->joinings);
    tls_sessions_free(listener->sessions);
    event_free(listener->timer);
    tls_authority_free(listener->authority);
    free(listener->tls_dir);
    free(listener);
}
