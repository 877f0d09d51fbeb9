/* SPDX-License-Identifier: MIT */
#include "compat/personalities/simple_join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/tcp_connect.h"
#include "compat/personalities/simple_place.h"
#include "wire/name_trouble.h"

#define JOIN_VARIABLE "MGPU_JOIN"
#define TICKET_MAX    1024
#define EXPIRES_S     600
#define WAY_MS        5000

/* The printed address may differ from the one this machine uses, so only the token is taken. */
static int make_ticket(const char *text, const char *from, char **ret, struct error *err)
{
    const char *token = strchr(text, '#');
    if (token == NULL || token[1] == '\0') {
        (void)error_set(err, -EBADMSG, "there is not HOST:PORT#TOKEN in %.200s", from);
        return error_hint(err, "run `mgpu node token` on the master");
    }
    _cleanup_free_ char *place = simple_place_text(1);
    *ret = xasprintf("%s%s", place, token);
    return 0;
}

static int read_ticket(const char *path, char **ret, struct error *err)
{
    char text[TICKET_MAX + 1] = "";
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot open %.200s", path);
    ssize_t n = read(fd, text, TICKET_MAX);
    if (n < 0)
        return error_set_errno(err, -errno, "cannot read %.200s", path);
    text[strcspn(text, " \t\r\n")] = '\0';
    return make_ticket(text, path, ret, err);
}

/* Two agents would assign the same GPUs twice. */
static int check_own_gpus(struct call *call, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(&call->client, API_PATH "/nodes", &answer, err);
    const json_t *nodes = json_object_get(answer, "nodes");
    for (size_t i = 0; r == 0 && i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        if (!json_is_false(json_object_get(node, "remote")) || field_integer(node, "gpus", 0) == 0)
            continue;
        (void)error_set(err, -EBUSY, "the master already offers the GPUs of this machine, as node %.60s",
            field_text(node, "name"));
        return error_hint(err, "no node is needed here; or start the master with --gpus none "
                               "(mgpu_simple_master: without --node-id)");
    }
    return r;
}

/* Requests it from the master on this machine, which identifies the caller through the kernel. */
static int ask_for_ticket(struct call *call, const char *node, char **ret, struct error *err)
{
    _cleanup_json_ json_t *body = json_pack("{s:s, s:i}", "node", node, "expires_s", EXPIRES_S),
                          *answer = NULL;
    if (body == NULL)
        return error_set(err, -EINVAL, "--node-id is not UTF-8 text");
    int r = simple_place_find(call, err);
    if (r < 0)
        return r;
    client_init(&call->client, call->socket, call->host);
    r = check_own_gpus(call, err);
    if (r == 0)
        r = client_call(&call->client, "POST", API_PATH "/nodes/tokens", body, &answer, err);
    if (r == -EPERM)
        return error_hint(
            err, "ask an administrator to run `mgpu node token`, and pass its output with --join-file");
    const char *ticket = r == 0 ? field_text(answer, "ticket") : NULL;
    if (r == 0 && ticket == NULL)
        return error_set(err, -EBADMSG, "the answer of mgpud contains no token");
    return r < 0 ? r : make_ticket(ticket, "the answer of mgpud", ret, err);
}

/* --- the way --- */

static const struct {
    int code;
    const char *hint;
} remedies[] = {
    { ECONNREFUSED, "is the master running, with --host 0.0.0.0 and this --port? It listens there once a "
                    "token or node exists" },
    { EHOSTUNREACH, "check the address and the network: ping HOST, ip route get HOST" },
    { ENETUNREACH, "check the address and the network: ip route" },
    { ETIMEDOUT, "a firewall may drop packets: ufw allow PORT/tcp or firewall-cmd --add-port=PORT/tcp on the "
                 "master; or it is off" },
};

static int explain(int code, const char *place, struct error *err)
{
    (void)error_set_errno(err, code, "cannot reach the master at %.200s", place);
    for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++)
        if (remedies[i].code == -code)
            return error_hint(err, "%s", remedies[i].hint);
    return code;
}

int simple_join_try_way(unsigned further, int timeout_ms, struct error *err)
{
    _cleanup_addresses_ struct addrinfo *found = NULL;
    _cleanup_free_ char *place = simple_place_text(further);
    _cleanup_close_ int fd = -1;
    const char *port = strrchr(place, ':') + 1;
    int failure = addresses_find(simple_place_host(), port, &found), r = -ECONNREFUSED;
    if (failure != 0) {
        (void)name_trouble(failure, place, err);
        (void)error_recode(err, -ENXIO);
        return error_hint(err, "use its IP address, or put the name into /etc/hosts");
    }
    for (const struct addrinfo *at = found; at != NULL && r < 0; at = at->ai_next)
        r = tcp_connect(at, timeout_ms, &fd);
    return r < 0 ? explain(r, place, err) : 0;
}

int simple_join_ticket(struct call *call, const char *file, const char *node, char **ret, struct error *err)
{
    const char *from_environment = getenv(JOIN_VARIABLE);
    if (file == NULL && from_environment != NULL && *from_environment != '\0')
        file = from_environment;
    if (file != NULL)
        return read_ticket(file, ret, err);
    if (simple_place_is_here())
        return ask_for_ticket(call, node, ret, err);
    if (simple_join_try_way(0, WAY_MS, err) < 0)
        return err->code;
    (void)error_set(err, -ENOKEY, "to join %.200s this machine needs a token", simple_place_host());
    return error_hint(err,
        "on the master: mgpu node token --node %.64s > FILE; copy it here and use --join-file FILE", node);
}
