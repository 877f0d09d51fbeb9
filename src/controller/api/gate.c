/* SPDX-License-Identifier: MIT */
/*
 * The kernel cannot identify the peer of such a connection; only a token can. A connection needs three
 * descriptors, so fewer of them are allowed than local ones.
 */
#include "controller/api/gate.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "controller/controller.h"
#include "controller/http/server.h"
#include "controller/nodes/reach.h"
#include "wire/address.h"
#include "wire/tls/authority.h"
#include "wire/tls/context.h"
#include "wire/tls/gate.h"
#include "wire/tls/sessions.h"

#define API_SESSIONS_MAX 1024U

struct api_gate {
    struct controller *controller;
    struct tls_gate *gate;
    struct tls_sessions *sessions;
    struct tls_authority *own; // of a standby
};

static void on_session_end(void *arg, const char *label, const struct error *err)
{
    if (err->code != 0)
        log_debug("API client: %s", err->message);
}

static void on_open(void *arg, SSL *ssl, int fd)
{
    struct api_gate *gate = arg;
    int plain = -1;
    if (tls_sessions_count(gate->sessions, NULL) >= API_SESSIONS_MAX) {
        log_warning("API client refused: %u clients on other machines", API_SESSIONS_MAX);
        SSL_free(ssl);
        (void)close(fd);
        return;
    }
    if (tls_sessions_open(gate->sessions, ssl, fd, "", &plain) == 0)
        serve_adopt(gate->controller->serve, plain);
}

int api_gate_new(struct controller *controller, const struct tls_authority *authority, int listen_fd,
    struct api_gate **ret, struct error *err)
{
    static const char *const purposes[] = { TLS_FOR_HTTP, TLS_FOR_LEADER, NULL };
    static const char *const standby_purposes[] = { TLS_FOR_HTTP, NULL };
    _cleanup_context_ SSL_CTX *context = NULL;
    int r = tls_context_server(
        authority, controller->standby != NULL ? standby_purposes : purposes, &context, err);
    if (r < 0) {
        (void)close(listen_fd);
        return r;
    }
    struct api_gate *gate = xcalloc(1, sizeof(*gate));
    gate->controller = controller;
    gate->sessions = tls_sessions_new(controller->loop, on_session_end, gate);
    gate->gate = tls_gate_new(controller->loop, context, listen_fd, on_open, gate);
    *ret = gate;
    return 0;
}

int api_gate_new_for_standby(
    struct controller *controller, const char *dir, int listen_fd, struct api_gate **ret, struct error *err)
{
    _cleanup_strings_ struct strings names = { 0 };
    struct tls_authority *authority = NULL;
    reach_names(controller->options.listen, API_PORT, &names);
    int r = tls_authority_open(dir, &names, &authority, err);
    if (r < 0) {
        (void)close(listen_fd);
        return r;
    }
    tls_pin_text(tls_authority_pin(authority), controller->cluster_pin);
    r = api_gate_new(controller, authority, listen_fd, ret, err);
    if (r == 0)
        (*ret)->own = authority;
    else
        tls_authority_free(authority);
    return r;
}

void api_gate_free(struct api_gate *gate)
{
    if (gate == NULL)
        return;
    tls_gate_free(gate->gate);
    tls_sessions_free(gate->sessions);
    tls_authority_free(gate->own);
    free(gate);
}
