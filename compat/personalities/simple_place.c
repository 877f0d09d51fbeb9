/* SPDX-License-Identifier: MIT */
#include "compat/personalities/simple_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/loopback.h"
#include "cli/api/tcp_connect.h"
#include "wire/name_trouble.h"

static struct {
    const char *host, *port; // NULL: not given
    char *found;             // the resulting place
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
    return simple_place_set_host("--host", value, err);
}

static int set_port(void *call, const char *value, struct error *err)
{
    return simple_place_set_port("--port", value, err);
}

const struct option_row simple_place_rows[] = {
    { 0, "host", "HOST", "host name of the master (" SIMPLE_HOST ")", set_host },
    { 0, "port", "PORT", "port of the master (" SIMPLE_PORT ")", set_port },
    { 0 },
};

bool simple_place_is_given(void)
{
    return asked.host != NULL || asked.port != NULL;
}

const char *simple_place_host(void)
{
    return asked.host != NULL ? asked.host : SIMPLE_HOST;
}

const char *simple_place_port(void)
{
    return asked.port != NULL ? asked.port : SIMPLE_PORT;
}

/* Uses the socket of the mgpud at a default place if it has that port; NULL: any port, or none. */
static bool take_usual_place(struct call *call, const char *port)
{
    _cleanup_(client_clear) struct client client;
    _cleanup_json_ json_t *status = NULL;
    client_init(&client, NULL, NULL);
    client.host = NULL;
    client_hurry(&client);
    bool is_there = client_get(&client, "/status", &status, NULL) == 0 &&
                    (port == NULL || field_integer(status, "port", 0) == strtoll(port, NULL, 10));
    if (is_there) {
        free(asked.found);
        asked.found = take_ptr(client.path);
        call->socket = asked.found;
    }
    return is_there;
}

/* Only addresses of this machine can be bound. */
static bool is_own(const struct addrinfo *address)
{
    _cleanup_close_ int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, address->ai_addr, address->ai_addrlen) == 0;
}

bool simple_place_is_here(void)
{
    _cleanup_addresses_ struct addrinfo *found = NULL;
    return addresses_find(simple_place_host(), NULL, &found) == 0 && is_own(found);
}

char *simple_place_text(unsigned further)
{
    const char *host = simple_place_host();
    bool is_six = strchr(host, ':') != NULL;
    return xasprintf("%s%s%s:%ld", is_six ? "[" : "", host, is_six ? "]" : "",
        strtol(simple_place_port(), NULL, 10) + (long)further);
}

/* For a master on another machine, MGPU_HOST has the pin that identifies it at any address. */
static int find_elsewhere(struct call *call, struct error *err)
{
    const char *from_environment = getenv("MGPU_HOST");
    const char *pin = from_environment != NULL ? strchr(from_environment, '#') : NULL;
    _cleanup_free_ char *place = simple_place_text(0);
    _cleanup_addresses_ struct addrinfo *found = NULL;
    int failure = addresses_find(simple_place_host(), NULL, &found);
    if (failure != 0) {
        (void)name_trouble(failure, place, err);
        (void)error_recode(err, -EHOSTUNREACH);
        return error_hint(err, "use its IP address, or put the name into /etc/hosts");
    }
    if (pin == NULL) {
        (void)error_set(
            err, -EPERM, "%.200s is another machine, and MGPU_HOST with its pin is not set", place);
        return error_hint(err,
            "on the master: mgpu token create --host %.100s; it prints the values for MGPU_HOST and "
            "MGPU_TOKEN",
            simple_place_host());
    }
    free(asked.found);
    asked.found = xasprintf("https://%s%s", place, pin);
    call->host = asked.found;
    return 0;
}

int simple_place_find(struct call *call, struct error *err)
{
    bool is_given = simple_place_is_given();
    const char *socket = getenv("MGPU_SOCKET"), *host = getenv("MGPU_HOST");
    bool has_place = (socket != NULL && *socket != '\0') || (host != NULL && *host != '\0');
    if (call->socket != NULL || call->host != NULL || (!is_given && has_place))
        return 0;
    bool is_loopback = loopback_is(simple_place_host());
    if ((is_loopback || simple_place_is_here()) &&
        take_usual_place(call, is_given ? simple_place_port() : NULL))
        return 0;
    if (!is_loopback)
        return find_elsewhere(call, err);
    _cleanup_free_ char *place = simple_place_text(0);
    free(asked.found);
    asked.found = xasprintf(LOOPBACK_SCHEME "%s", place);
    call->socket = asked.found;
    return 0;
}
