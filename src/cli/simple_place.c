/* SPDX-License-Identifier: MIT */
#include "cli/simple_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "cli/field.h"
#include "cli/loopback.h"
#include "cli/option_text.h"

static struct {
    const char *host, *port; // NULL: not given
    char *url;               // made of them
} asked;

int simple_place_set_host(const char *what, const char *value, struct error *err)
{
    return option_text(what, value, &asked.host, err);
}

int simple_place_set_port(const char *what, const char *value, struct error *err)
{
    int64_t port;
    asked.port = value;
    return parse_integer(value, what, 1, 65535, &port, err);
}

static int set_host(void *call, const char *value, struct error *err)
{
    (void)call;
    return simple_place_set_host("--host", value, err);
}

static int set_port(void *call, const char *value, struct error *err)
{
    (void)call;
    return simple_place_set_port("--port", value, err);
}

const struct option_row simple_place_rows[] = {
    { 0, "host", "HOST", "the machine of the master (" SIMPLE_HOST ")", set_host },
    { 0, "port", "PORT", "the master's port (" SIMPLE_PORT ")", set_port },
    { 0 },
};

const char *simple_place_host(void)
{
    return asked.host != NULL ? asked.host : SIMPLE_HOST;
}

const char *simple_place_port(void)
{
    return asked.port != NULL ? asked.port : SIMPLE_PORT;
}

/* Is there a mgpud at a usual place, with that port? NULL: with any or none. */
static bool is_at_usual_place(const char *port)
{
    struct client client;
    _cleanup_json_ json_t *status = NULL;
    client_init(&client, NULL, NULL);
    bool is_there = client_get(&client, "/status", &status, NULL) == 0;
    client_clear(&client);
    return is_there && (port == NULL || field_integer(status, "port", 0) == strtoll(port, NULL, 10));
}

int simple_place_find(struct call *call, struct error *err)
{
    bool is_given = asked.host != NULL || asked.port != NULL;
    const char *socket = getenv("MGPU_SOCKET");
    if (call->socket != NULL || (!is_given && socket != NULL && *socket != '\0'))
        return 0;
    if (!loopback_is(simple_place_host())) {
        (void)error_set(err, -EINVAL, "%.200s is not this machine", simple_place_host());
        return error_hint(err, "mgpud of another machine is not reached by this program");
    }
    if (is_at_usual_place(is_given ? simple_place_port() : NULL))
        return 0;
    bool is_six = strchr(simple_place_host(), ':') != NULL;
    free(asked.url);
    asked.url = xasprintf(LOOPBACK_SCHEME "%s%s%s:%s", is_six ? "[" : "", simple_place_host(),
        is_six ? "]" : "", simple_place_port());
    call->socket = asked.url;
    return 0;
}
