/* SPDX-License-Identifier: MIT */
/*
 * `mgpu web` requests a one-time secret on the unix socket (POST /logins) and prints it as the fragment of an
 * address, which browsers do not send. The page submits it (POST /sessions), once and within a minute, and
 * gets a cookie. Both secrets are tokens of the store with a hash of their own kind, so neither is accepted
 * in place of the other or as a token of the API, and `mgpu token` lists and revokes them.
 *
 * Browsers send a cookie of localhost to every port, including ports of other users' programs, and give the
 * fragment of an address to any program that answers there. Therefore the hashes of both secrets include the
 * user whom the kernel reports as the owner of the browser's socket (or that it reports none). A secret that
 * another user has obtained is useless on this machine.
 */
#include "controller/api/sessions.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/routes.h"
#include "controller/api/tokens.h"
#include "controller/http/cookie.h"
#include "controller/http/request.h"
#include "controller/nodes/reach.h"
#include "controller/web/page.h"
#include "wire/address.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/requests.h"
#include "wire/token.h"

#define LOGIN_NAME   "web, one-time address"
#define SESSION_NAME "web, logged in"

/* --- secrets --- */

/* The hash under which the store has a secret of this kind; false if it does not have the right form. */
static bool hash_as(const char *kind, const char *secret, uint8_t hash[TOKEN_HASH_SIZE])
{
    uint8_t plain[TOKEN_HASH_SIZE];
    unsigned length = 0;
    if (!token_hash(secret, plain))
        return false;
    _cleanup_free_ char *text = xasprintf("%s %s", kind, secret);
    bool is_hashed = EVP_Digest(text, strlen(text), hash, &length, EVP_sha256(), NULL) == 1;
    OPENSSL_cleanse(text, strlen(text));
    return is_hashed;
}

/* A secret is valid on connections of one user whom the kernel reports, or on those for which it reports
 * none. */
static bool hash_for(
    const char *kind, const struct identity *peer, const char *secret, uint8_t hash[TOKEN_HASH_SIZE])
{
    _cleanup_free_ char *text =
        peer->is_known ? xasprintf("%s of %u", kind, peer->uid) : xasprintf("%s from elsewhere", kind);
    return hash_as(text, secret, hash);
}

static bool hash_session(const struct request *request, const char *secret, uint8_t hash[TOKEN_HASH_SIZE])
{
    return hash_for("session", connection_peer(request->connection), secret, hash);
}

/* A cookie with this prefix is set only over TLS and only for this host (RFC 6265bis). The instance
 * distinguishes several mgpud behind one name, because cookies ignore ports. */
static char *cookie_name(const struct request *request)
{
    bool is_remote = connection_is_remote(request->connection);
    return xasprintf("%smgpu-%.8s", is_remote ? "__Host-" : "", request->serve->controller->summary.instance);
}

static void set_cookie(struct request *request, const char *secret, int max_age_s)
{
    _cleanup_free_ char *name = cookie_name(request);
    _cleanup_free_ char *value = xasprintf("%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", name,
        secret, max_age_s, connection_is_remote(request->connection) ? "; Secure" : "");
    request_add_header(request, "Set-Cookie", value);
    OPENSSL_cleanse(value, strlen(value));
}

char *sessions_cookie(const struct request *request)
{
    _cleanup_free_ char *name = cookie_name(request);
    return cookie_value(http_message_header(&request->message, "cookie"), name);
}

/* --- POST /logins --- */

struct login {
    char secret[TOKEN_SIZE];
    struct login_request body;
    int64_t expires_ms;
};

static void release_login(struct request *request)
{
    struct login *login = request->work;
    record_clear(&login_request_record, &login->body);
    OPENSSL_cleanse(login->secret, sizeof(login->secret));
    free(login);
}

/* "http://127.0.0.1:9123", or NULL if browsers cannot use this mgpud. A name such as localhost could lead to
 * another program. */
static char *page_address(const struct controller *controller, const char *host)
{
    const char *listen = controller->options.listen;
    if (controller->tcp_state.is_contested ||
        (!serve_has_tcp(controller->serve) && controller->api_gate == NULL))
        return NULL;
    _cleanup_address_ struct address bound = { 0 };
    if (controller->api_gate != NULL) {
        _cleanup_free_ char *where = reach_text(listen, API_PORT, host);
        return xasprintf("https://%s", where);
    }
    if (address_parse(listen, API_PORT, &bound, NULL) < 0)
        return NULL;
    if (strcasecmp(bound.host, "localhost") == 0)
        return xasprintf("http://127.0.0.1:%s", bound.port);
    _cleanup_free_ char *where = address_text(&bound);
    return xasprintf("http://%s", where);
}

json_t *sessions_write_trouble(const struct controller *controller)
{
    const struct tcp_state *tcp = &controller->tcp_state;
    if (tcp->trouble.code != 0)
        return json_text_string(tcp->trouble.message);
    return tcp->is_contested ? json_string("another user's program had its port when mgpud was started")
                             : json_null();
}

static void on_login_added(void *arg, uint64_t id, int result)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        const struct login *login = request->work;
        struct error err = { 0 };
        if (result < 0) {
            (void)tokens_refusal(result, "the one-time address", &err);
            request_reply_problem(request, &err);
        } else {
            json_t *body = json_object();
            _cleanup_free_ char *page = page_address(request->serve->controller, login->body.host);
            _cleanup_free_ char *url = page != NULL ? xasprintf("%s/#login=%s", page, login->secret) : NULL;
            (void)json_object_set_new(body, "login", json_string(login->secret));
            (void)json_object_set_new(body, "page", json_text_string(page));
            (void)json_object_set_new(body, "address", json_text_string(url));
            (void)json_object_set_new(body, "trouble", sessions_write_trouble(request->serve->controller));
            (void)json_object_set_new(body, "expires_at", json_text_time(login->expires_ms));
            request_reply_json(request, 201, body);
        }
    }
    request_unref(request);
}

static int read_login(const struct request *request, struct login *login, struct error *err)
{
    if (!connection_is_unix(request->connection) || request->who.token.id != 0) {
        (void)error_set(
            err, -EPERM, "one-time addresses can only be created on the unix socket, without a token");
        return error_hint(err, "run mgpu web on the machine of mgpud");
    }
    return request_read_body(request, &login_request_record, &login->body, err);
}

/* Over TLS, the kernel cannot identify the browser's user. */
static int find_browser(
    const struct request *request, const struct login_request *body, struct identity *ret, struct error *err)
{
    *ret = (struct identity){ .uid = request->who.uid };
    ret->is_known = request->serve->controller->api_gate == NULL;
    return body->browser_user != NULL
               ? usernames_uid(request->serve->names, body->browser_user, &ret->uid, err)
               : 0;
}

void handle_login(struct request *request)
{
    struct login *login = xcalloc(1, sizeof(*login));
    struct error err = { 0 };
    uint8_t hash[TOKEN_HASH_SIZE];
    request->work = login;
    request->release = release_login;
    struct identity browser = { 0 };
    int r = read_login(request, login, &err);
    if (r == 0)
        r = find_browser(request, &login->body, &browser, &err);
    if (r == 0)
        r = tokens_charge(request, &err);
    if (r == 0)
        r = token_make(login->secret, hash, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    int64_t now_ms = clock_wall_ms();
    login->expires_ms = now_ms + LIMIT_LOGIN_S * 1000L;
    (void)hash_for("login", &browser, login->secret, hash);
    char name[] = LOGIN_NAME;
    struct store_token token = { .uid = request->who.uid,
        .gid = request->who.gid,
        .name = name,
        .created_ms = now_ms,
        .expires_ms = login->expires_ms,
        .scopes = SCOPE_ALL };
    request_ref(request);
    store_add_token(request->serve->controller->store, &token, hash, on_login_added, request);
}

/* --- POST /sessions --- */

struct opening {
    struct store_token token; // without a name
    char secret[TOKEN_SIZE];
};

static void release_opening(struct request *request)
{
    struct opening *opening = request->work;
    OPENSSL_cleanse(opening->secret, sizeof(opening->secret));
    free(opening);
}

static void refuse_login(struct request *request)
{
    struct error err = { 0 };
    const struct identity *peer = connection_peer(request->connection);
    (void)error_set(&err, -ENOKEY, "the address has expired or was used before%s",
        peer->is_known ? ", or it is for the browser of another user" : "");
    if (peer->is_known)
        (void)error_hint(&err,
            "run `mgpu web` again; with --browser-user %s if that is another user's command",
            usernames_name(request->serve->names, peer->uid));
    else
        (void)error_hint(&err, "run `mgpu web` again");
    request_reply_problem(request, &err);
}

static void on_session_added(void *arg, uint64_t id, int result)
{
    struct request *request = arg;
    if (!request_is_over(request)) {
        const struct opening *opening = request->work;
        struct error err = { 0 };
        if (result < 0) {
            (void)tokens_refusal(result, "the session", &err);
            request_reply_problem(request, &err);
        } else {
            json_t *body = json_object();
            const char *user = usernames_name(request->serve->names, opening->token.uid);
            (void)json_object_set_new(body, "user", json_text_string(user));
            (void)json_object_set_new(body, "expires_at", json_text_time(opening->token.expires_ms));
            set_cookie(request, opening->secret, LIMIT_SESSION_S);
            request_reply_json(request, 201, body);
        }
    }
    request_unref(request);
}

/* The one-time secret has been removed from the store, so only one caller can reach this point with it. */
static void on_login_used(void *arg, uint64_t id, int result)
{
    struct request *request = arg;
    struct error err = { 0 };
    uint8_t hash[TOKEN_HASH_SIZE];
    if (request_is_over(request)) {
        request_unref(request);
        return;
    }
    struct opening *opening = request->work;
    if (result < 0) {
        refuse_login(request);
        request_unref(request);
        return;
    }
    if (token_make(opening->secret, hash, &err) < 0 || !hash_session(request, opening->secret, hash)) {
        request_reply_problem(request, &err);
        request_unref(request);
        return;
    }
    char name[] = SESSION_NAME;
    opening->token.created_ms = clock_wall_ms();
    opening->token.expires_ms = opening->token.created_ms + LIMIT_SESSION_S * 1000L;
    struct store_token token = opening->token;
    token.name = name;
    token.scopes = SCOPE_ALL;
    store_add_token(request->serve->controller->store, &token, hash, on_session_added, request);
}

static void on_login_found(void *arg, const struct store_token *token)
{
    struct request *request = arg;
    if (request_is_over(request) || token == NULL) {
        if (!request_is_over(request))
            refuse_login(request);
        request_unref(request);
        return;
    }
    struct opening *opening = request->work;
    opening->token.uid = token->uid;
    opening->token.gid = token->gid;
    store_revoke_token(request->serve->controller->store, token->id, STORE_ANY_USER, on_login_used, request);
}

void handle_open_session(struct request *request)
{
    struct error err = { 0 };
    uint8_t hash[TOKEN_HASH_SIZE];
    struct session_request body = { 0 };
    int r = request_read_body(request, &session_request_record, &body, &err);
    if (r == 0 && connection_is_unix(request->connection))
        r = error_set(&err, -EPERM, "sessions are for browsers: on the unix socket, the kernel knows you");
    if (r < 0) {
        request_reply_problem(request, &err);
    } else if (body.login == NULL ||
               !hash_for("login", connection_peer(request->connection), body.login, hash)) {
        refuse_login(request);
    } else {
        request->work = xcalloc(1, sizeof(struct opening));
        request->release = release_opening;
        request_ref(request);
        store_find_token(request->serve->controller->store, hash, clock_wall_ms(), on_login_found, request);
    }
    record_clear(&session_request_record, &body);
}

/* --- DELETE /sessions --- */

static void on_closed(void *arg, uint64_t id, int result)
{
    struct request *request = arg;
    if (result == 0)
        tokens_end_connections(request, id);
    if (!request_is_over(request)) {
        set_cookie(request, "", 0);
        request_reply_json(request, 200, json_object());
    }
    request_unref(request);
}

void handle_close_session(struct request *request)
{
    if (!request->has_session) {
        set_cookie(request, "", 0);
        request_reply_json(request, 200, json_object());
        return;
    }
    request_ref(request);
    store_revoke_token(request->serve->controller->store, connection_token(request->connection)->id,
        request->who.uid, on_closed, request);
}

/* --- GET /whoami --- */

static const char *way_of(const struct request *request)
{
    if (!request->who.is_known)
        return NULL;
    if (request->has_session)
        return "session";
    bool is_munge = http_message_header(&request->message, "authorization") != NULL &&
                    !connection_is_unix(request->connection);
    return is_munge || request->who.token.id != 0 ? "token" : "kernel";
}

void handle_whoami(struct request *request)
{
    bool is_known = request->who.is_known;
    json_t *body = json_object();
    const char *user = is_known ? usernames_name(request->serve->names, request->who.uid) : NULL;
    int64_t expires_ms = request->has_session ? connection_token(request->connection)->expires_ms : 0;
    (void)json_object_set_new(body, "user", json_text_string(user));
    (void)json_object_set_new(body, "uid", is_known ? json_integer(request->who.uid) : json_null());
    (void)json_object_set_new(
        body, "role", is_known ? json_string(role_name(request->who.role)) : json_null());
    (void)json_object_set_new(body, "by", json_text_string(way_of(request)));
    if (request->who.token.id != 0)
        (void)json_object_set_new(body, "scopes", tokens_write_scopes(request->who.token.scopes));
    (void)json_object_set_new(body, "expires_at", expires_ms > 0 ? json_text_time(expires_ms) : json_null());
    (void)json_object_set_new(body, "page", json_string(page_tag()));
    request_reply_json(request, 200, body);
}

/* --- who asks --- */

/* A page of another site can send neither the cookie nor this header. A program on the same host could make a
 * form send the cookie, but not the header. */
static bool is_forged(const struct request *request)
{
    bool is_change =
        strcmp(request->message.method, "GET") != 0 && strcmp(request->message.method, "HEAD") != 0;
    return is_change && http_message_header(&request->message, "mgpu-page") == NULL;
}

static void accept_session(struct request *request, void (*next)(struct request *request))
{
    struct error err = { 0 };
    if (is_forged(request)) {
        (void)error_set(&err, -EPERM, "a change with the cookie of the page needs the header Mgpu-Page");
        request_reply_problem(request, &err);
        return;
    }
    request->has_session = true;
    request->is_vouched = true;
    next(request);
}

static void on_session(struct request *request, bool is_found, void (*next)(struct request *request))
{
    if (is_found)
        accept_session(request, next);
    else
        next(request);
}

void sessions_identify(struct request *request, const char *cookie, void (*next)(struct request *request))
{
    uint8_t hash[TOKEN_HASH_SIZE];
    if (hash_session(request, cookie, hash))
        tokens_find(request, hash, on_session, next);
    else
        next(request);
}
