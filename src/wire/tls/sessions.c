/* SPDX-License-Identifier: MIT */
#include "wire/tls/sessions.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/containers/name_table.h"
#include "base/memory.h"
#include "wire/tls/context.h"
#include "wire/tls/dial.h"
#include "wire/tls/pump.h"

#define BUCKETS 1024U

struct session {
    struct tls_sessions *sessions;
    struct tls_pump *pump;
    char *label;
    struct session *next, **where; // in its bucket
};

struct tls_sessions {
    struct event_base *base;
    tls_session_ended_fn *on_end;
    void *arg;
    size_t count;
    struct session *buckets[BUCKETS]; // by label: one for each node, and few of each
};

static size_t bucket_of(const char *label)
{
    return name_hash(label) % BUCKETS;
}

struct tls_sessions *tls_sessions_new(struct event_base *base, tls_session_ended_fn *on_end, void *arg)
{
    struct tls_sessions *sessions = xcalloc(1, sizeof(*sessions));
    *sessions = (struct tls_sessions){ .base = base, .on_end = on_end, .arg = arg };
    return sessions;
}

static void session_free(struct session *session)
{
    *session->where = session->next;
    if (session->next != NULL)
        session->next->where = session->where;
    session->sessions->count--;
    tls_pump_free(session->pump);
    free(session->label);
    free(session);
}

void tls_sessions_free(struct tls_sessions *sessions)
{
    if (sessions == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (sessions->buckets[i] != NULL)
            session_free(sessions->buckets[i]);
    free(sessions);
}

static void on_pump_end(void *arg, const struct error *err)
{
    struct session *session = arg;
    struct tls_sessions *sessions = session->sessions;
    _cleanup_free_ char *label = take_ptr(session->label);
    session_free(session);
    sessions->on_end(sessions->arg, label, err);
}

/*
 * Peers that must always read are closed if they do not. Data for a client of the API, or in a stream, may
 * wait while a user reads a page of it.
 */
static bool is_taken_at_once(SSL *ssl)
{
    return tls_is_for(ssl, TLS_FOR_LINK) || tls_is_for(ssl, TLS_FOR_JOIN) ||
           ((tls_is_for(ssl, TLS_FOR_HTTP) || tls_is_for(ssl, TLS_FOR_LEADER)) && !SSL_is_server(ssl));
}

void tls_sessions_add(struct tls_sessions *sessions, SSL *ssl, int net_fd, int plain_fd, const char *label)
{
    struct session *session = xcalloc(1, sizeof(*session)), **bucket = &sessions->buckets[bucket_of(label)];
    *session =
        (struct session){ .sessions = sessions, .label = xstrdup(label), .next = *bucket, .where = bucket };
    if (session->next != NULL)
        session->next->where = &session->next;
    *bucket = session;
    sessions->count++;
    tls_dial_tune(net_fd);
    tls_dial_set_timeout(net_fd, is_taken_at_once(ssl) ? TLS_DIAL_TIMEOUT_MS : 0);
    session->pump = tls_pump_new(sessions->base, ssl, net_fd, plain_fd, on_pump_end, session);
}

int tls_sessions_open(
    struct tls_sessions *sessions, SSL *ssl, int net_fd, const char *label, int *ret_plain_fd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        int r = -errno;
        SSL_free(ssl);
        (void)close(net_fd);
        return r;
    }
    tls_sessions_add(sessions, ssl, net_fd, pair[0], label);
    *ret_plain_fd = pair[1];
    return 0;
}

void tls_sessions_cut(struct tls_sessions *sessions, const char *label)
{
    struct session *next = NULL;
    for (struct session *session = sessions->buckets[bucket_of(label)]; session != NULL; session = next) {
        next = session->next;
        if (strcmp(session->label, label) == 0)
            session_free(session);
    }
}

size_t tls_sessions_count(const struct tls_sessions *sessions, const char *label)
{
    size_t count = 0;
    if (label == NULL)
        return sessions->count;
    for (const struct session *session = sessions->buckets[bucket_of(label)]; session != NULL;
         session = session->next)
        count += strcmp(session->label, label) == 0;
    return count;
}
