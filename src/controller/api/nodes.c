/* SPDX-License-Identifier: MIT */
/* POST /nodes/tokens and /nodes/NAME/forget: adding and removing nodes. */
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "controller/api/routes.h"
#include "controller/cluster/cluster.h"
#include "controller/http/request.h"
#include "controller/nodes/listener.h"
#include "controller/nodes/reach.h"
#include "controller/nodes/registry.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/node_name.h"
#include "wire/requests.h"
#include "wire/tls/authority.h"

#define DEFAULT_EXPIRES_S 3600U

/* --- tokens --- */

struct making {
    struct node_token_request body;
    struct join_token token;
    int64_t expires_ms;
};

static void release_making(struct request *request)
{
    struct making *making = request->work;
    record_clear(&node_token_request_record, &making->body);
    OPENSSL_cleanse(&making->token, sizeof(making->token));
    free(making);
}

static void on_made(void *arg, uint64_t id)
{
    struct request *request = arg;
    struct error err = { 0 };
    (void)node_listener_update(request->serve->controller->node_listener, NULL);
    if (!request_is_over(request) && id == 0) {
        (void)error_set(&err, -ENOSPC, "the token cannot be stored: the disk is full");
        request_reply_problem(request, &err);
    } else if (!request_is_over(request)) {
        struct making *making = request->work;
        char text[JOIN_TOKEN_TEXT_SIZE];
        making->token.id = id;
        join_token_write(&making->token, text);
        const struct controller *controller = request->serve->controller;
        _cleanup_free_ char *own =
            reach_text(controller->options.nodes_listen, NODES_PORT, making->body.host);
        _cleanup_free_ char *all = making->body.host == NULL && controller->cluster != NULL
                                       ? cluster_addresses(controller->cluster, CLUSTER_FOR_NODES)
                                       : NULL;
        const char *where = all != NULL ? all : own;
        _cleanup_free_ char *ticket = xasprintf("%s#%s", where, text);
        json_t *body = json_object();
        (void)json_object_set_new(body, "id", json_integer((json_int_t)id));
        (void)json_object_set_new(body, "ticket", json_string(ticket));
        (void)json_object_set_new(body, "expires_at", json_text_time(making->expires_ms));
        OPENSSL_cleanse(text, sizeof(text));
        request_reply_json(request, 201, body);
    }
    request_unref(request);
}

static int check_body(const struct node_token_request *body, struct error *err)
{
    _cleanup_address_ struct address unused = { 0 };
    if (body->expires_s < 1 || body->expires_s > LIMIT_TOKEN_S)
        return error_set(
            err, -ERANGE, "expires_s: %" PRIu64 " is outside 1 to %d", body->expires_s, LIMIT_TOKEN_S);
    if (body->node != NULL && node_name_check(body->node, err) < 0)
        return err->code;
    if (body->replace && body->node == NULL)
        return error_set(err, -EINVAL, "replace requires node");
    return body->host == NULL ? 0 : address_parse(body->host, NODES_PORT, &unused, err);
}

static int make(struct request *request, struct making *making, struct error *err)
{
    struct controller *controller = request->serve->controller;
    const struct tls_authority *authority = NULL;
    making->body.expires_s = DEFAULT_EXPIRES_S;
    int r = request_read_body(request, &node_token_request_record, &making->body, err);
    if (r == 0)
        r = check_body(&making->body, err);
    if (r == 0)
        r = node_listener_open(controller->node_listener, err);
    if (r == 0)
        r = node_listener_authority(controller->node_listener, &authority, err);
    if (r < 0)
        return r;
    memcpy(making->token.pin, tls_authority_pin(authority), TLS_PIN_SIZE);
    int64_t now_ms = clock_wall_ms();
    making->expires_ms = now_ms + (int64_t)making->body.expires_s * 1000;
    struct store_join_token token = {
        .uid = request->who.uid,
        .created_ms = now_ms,
        .expires_ms = making->expires_ms,
        .node = making->body.node,
        .is_replacing = making->body.replace,
    };
    request_ref(request);
    r = registry_make_token(controller->registry, &token, making->token.secret, on_made, request, err);
    if (r < 0)
        request_unref(request);
    return r;
}

void handle_node_token(struct request *request)
{
    struct making *making = xcalloc(1, sizeof(*making));
    struct error err = { 0 };
    request->work = making;
    request->release = release_making;
    if (make(request, making, &err) < 0)
        request_reply_problem(request, &err);
}

/* --- forgetting --- */

struct search {
    const char *node;
    size_t count;
    uint64_t job;
};

static void count_job(void *arg, const struct job *job)
{
    struct search *search = arg;
    const struct gpu_grant *grants = job->grants.items;
    bool is_there = job_state_is_active(job->state) && text_equal(job->node, search->node);
    for (size_t i = 0; i < job->grants.count && job_holds_gpus(job); i++)
        is_there = is_there || text_equal(grants[i].node, search->node);
    search->count += is_there;
    if (is_there)
        search->job = job->id;
}

static void on_forgotten(void *arg, bool is_done)
{
    struct request *request = arg;
    struct error err = { 0 };
    struct controller *controller = request->serve->controller;
    (void)node_listener_update(controller->node_listener, NULL);
    if (is_done && !controller->is_leaving)
        core_note_node(controller->core, clock_boot_ms(), clock_wall_ms(), CHANGE_NODE_FORGET,
            request->who.uid, request->name);
    if (!request_is_over(request) && is_done) {
        request_reply_json(request, 200, json_object());
    } else if (!request_is_over(request)) {
        (void)error_set(&err, -ENOSPC, "the disk is full: after a restart of mgpud the node exists again");
        request_reply_problem(request, &err);
    }
    request_unref(request);
}

static int check_node(struct request *request, const struct forget_request *asked, struct error *err)
{
    const struct controller *controller = request->serve->controller;
    const struct registered_node *node = registry_find(controller->registry, request->name);
    struct search search = { .node = request->name };
    if (node == NULL)
        return error_set(err, -ENOENT, "there is no node '%.64s'", request->name);
    if (!node->is_remote)
        return error_set(err, -EINVAL, "%s is the machine that mgpud runs on", node->name);
    core_each_job(controller->core, count_job, &search);
    if (search.count == 0 || asked->force)
        return 0;
    (void)error_set(err, -EBUSY, "node %s has %zu job%s, such as %" PRIu64, node->name, search.count,
        search.count == 1 ? "" : "s", search.job);
    return error_hint(err, "mgpu node drain %.64s --wait lets them end first", node->name);
}

void handle_forget(struct request *request)
{
    struct controller *controller = request->serve->controller;
    struct error err = { 0 };
    struct forget_request asked = { 0 };
    int r = request_read_body(request, &forget_request_record, &asked, &err);
    if (r == 0)
        r = check_node(request, &asked, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    log_node(LOG_WARNING, request->name, "removed by uid %u", request->who.uid);
    request_ref(request);
    registry_forget(controller->registry, request->name, on_forgotten, request);
    node_listener_cut(controller->node_listener, request->name);
}
