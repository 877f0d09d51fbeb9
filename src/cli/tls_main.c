/* SPDX-License-Identifier: MIT */
/*
 * mgpu-tls: executed by mgpu to connect to another machine, so that local calls need no TLS library
 * (docs/decisions/0006-tls-pump.md).
 *
 *   mgpu-tls --fd N HOST:PORT#PIN    connects the socket N to the API there. The first line it writes on N is
 *                                    "ok", or "ERRNO", then the error and the hint in a line each
 *   mgpu-tls --check N               reads HOST:PORT or HOST:PORT#TOKEN from the connected socket N and tests
 *                                    the connection; writes a line for each step: "on", "off" or "bad", its
 *                                    name, the result and what to do, separated by tabs
 */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/version.h"
#include "wire/message.h"
#include "wire/node_name.h"
#include "wire/tls/context.h"
#include "wire/tls/dial.h"
#include "wire/tls/join_talk.h"
#include "wire/tls/join_token.h"
#include "wire/tls/sessions.h"

#define CONNECT_MS      15000
#define ONE_OF_MANY_MS  3000 // timeout for each of several controllers
#define STEP_MS         10000
#define CLOCK_SLACK_MS  5000
#define TICKET_LINE_MAX 1024

/* --- one connection --- */

static void on_end(void *arg, const char *label, const struct error *err)
{
    (void)event_base_loopbreak(arg);
}

static int open_one(
    const char *text, const char *purpose, int64_t timeout_ms, SSL **ret, int *ret_fd, struct error *err)
{
    uint8_t pin[TLS_PIN_SIZE];
    _cleanup_address_ struct address address = { 0 };
    _cleanup_context_ SSL_CTX *context = NULL;
    int r = pinned_address_read(text, &address, pin, err);
    if (r == 0)
        r = tls_context_client(pin, NULL, NULL, &context, err);
    return r < 0 ? r : tls_dial(context, &address, purpose, clock_boot_ms() + timeout_ms, ret, ret_fd, err);
}

static int open_any(const char *text, const char *purpose, SSL **ret, int *ret_fd, struct error *err)
{
    const char *pin = strchr(text, '#');
    int r = -EINVAL;
    for (const char *at = text;; at += strcspn(at, ",#") + 1) {
        size_t length = strcspn(at, ",#");
        _cleanup_free_ char *one = xasprintf("%.*s%s", (int)length, at, pin != NULL ? pin : "");
        r = open_one(one, purpose, ONE_OF_MANY_MS, ret, ret_fd, err);
        if (r == 0 || at[length] != ',')
            return r;
    }
}

/* "A,B,C#PIN": the leader of several controllers; if there is no leader, a standby, which answers what it
 * can. */
static int open_session(const char *text, SSL **ret, int *ret_fd, struct error *err)
{
    if (strchr(text, ',') == NULL)
        return open_one(text, TLS_FOR_HTTP, CONNECT_MS, ret, ret_fd, err);
    int r = open_any(text, TLS_FOR_LEADER, ret, ret_fd, err);
    return r == 0 ? 0 : open_any(text, TLS_FOR_HTTP, ret, ret_fd, err);
}

static int join(int plain_fd, const char *text)
{
    struct error err = { 0 };
    SSL *ssl = NULL;
    int net_fd = -1;
    _cleanup_buffer_ struct buffer word = { 0 };
    int r = open_session(text, &ssl, &net_fd, &err);
    if (r < 0)
        buffer_printf(&word, "%d\n%s\n%s\n", -r, err.message, err.hint);
    else
        buffer_append_text(&word, "ok\n");
    if (write_all(plain_fd, word.bytes, word.length) < 0 || r < 0)
        return EXIT_FAILURE;
    struct event_base *base = event_base_new();
    struct tls_sessions *sessions = tls_sessions_new(base, on_end, base);
    (void)evutil_make_socket_nonblocking(plain_fd);
    tls_sessions_add(sessions, ssl, net_fd, plain_fd, "");
    (void)event_base_dispatch(base);
    tls_sessions_free(sessions);
    event_base_free(base);
    return EXIT_SUCCESS;
}

/* --- the way to a controller --- */

static int report_fd;

static void step(const char *verdict, const char *name, const char *text, const char *fix)
{
    (void)dprintf(report_fd, "%s\t%s\t%s\t%s\n", verdict, name, text, fix);
}

static int fail(const char *name, const struct error *err)
{
    step("bad", name, err->message, err->hint);
    return EXIT_FAILURE;
}

static int check_way(const struct address *address, struct error *err)
{
    struct addrinfo *found = NULL;
    char shown[NI_MAXHOST] = "";
    _cleanup_close_ int fd = -1;
    if (tls_dial_resolve(address, &found, err) < 0)
        return fail("name", err);
    (void)getnameinfo(found->ai_addr, found->ai_addrlen, shown, sizeof(shown), NULL, 0, NI_NUMERICHOST);
    step("on", "name", shown, "");
    int r = tls_dial_connect(found, address, clock_boot_ms() + STEP_MS, &fd, err);
    freeaddrinfo(found);
    if (r < 0)
        return fail("connection", err);
    _cleanup_free_ char *where = address_text(address);
    step("on", "connection", where, "");
    return 0;
}

static void check_answer(const struct message_probed *probed)
{
    struct error err = { 0 };
    int64_t apart_ms = probed->wall_ms - clock_wall_ms();
    _cleanup_free_ char *text = xasprintf(
        "mgpu %s here, %s there", MGPU_VERSION, probed->version != NULL ? probed->version : "an unknown one");
    if (node_version_check(probed->protocol, probed->version, "check mgpud there", &err) < 0)
        (void)fail("version", &err);
    else
        step("on", "version", text, "");
    _cleanup_free_ char *clock =
        xasprintf("%" PRId64 ".%03d s apart", apart_ms / 1000, (int)(labs(apart_ms % 1000)));
    bool is_near = apart_ms < CLOCK_SLACK_MS && apart_ms > -CLOCK_SLACK_MS;
    step(is_near ? "on" : "off", "clock", clock, "times are shown by that clock; timedatectl set-ntp true");
}

static int check_talk(const struct join_ticket *ticket, struct error *err)
{
    char secret[2 * JOIN_SECRET_SIZE + 1];
    _cleanup_free_ char *version = xstrdup(MGPU_VERSION);
    struct join_talk talk;
    struct message_probed probed = { 0 };
    int r = join_talk_open(&ticket->address, ticket->token.pin, clock_boot_ms() + STEP_MS, &talk, err);
    if (r < 0)
        return fail("TLS", err);
    step("on", "TLS", "the cluster of the token", "");
    join_talk_secret(&ticket->token, secret);
    struct message_probe probe = {
        .protocol = LINK_PROTOCOL, .version = version, .token = ticket->token.id, .secret = secret
    };
    r = join_talk_ask(&talk, &message_probe_record, &probe, &message_probed_record, &probed, err);
    join_talk_close(&talk);
    if (r < 0)
        return fail("token", err);
    step("on", "token", "valid", "");
    check_answer(&probed);
    record_clear(&message_probed_record, &probed);
    return EXIT_SUCCESS;
}

static int check(int fd)
{
    char line[TICKET_LINE_MAX] = "";
    struct error err = { 0 };
    struct join_ticket ticket = { 0 };
    report_fd = fd;
    ssize_t n = recv(fd, line, sizeof(line) - 1, 0); // it was sent at once by our own program
    if (n <= 0)
        return EXIT_FAILURE;
    line[strcspn(line, "\n")] = '\0';
    bool has_token = strchr(line, '#') != NULL;
    int r = has_token ? join_ticket_read(line, &ticket, &err)
                      : address_parse(line, NODES_PORT, &ticket.address, &err);
    if (r < 0)
        return fail(has_token ? "token" : "address", &err);
    r = check_way(&ticket.address, &err);
    if (r == 0 && has_token)
        r = check_talk(&ticket, &err);
    else if (r == 0)
        step("off", "TLS", "not checked: no token with a pin was given",
            "give the whole output of `mgpu node token`, HOST:PORT#TOKEN");
    join_ticket_clear(&ticket);
    return r;
}

int main(int argc, char **argv)
{
    int64_t fd = -1;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_NAME, "mgpu-tls");
    memory_keep_freed();
    if (argc == 3 && strcmp(argv[1], "--check") == 0 &&
        parse_integer(argv[2], "--check", 3, INT16_MAX, &fd, NULL) == 0)
        return check((int)fd);
    if (argc == 4 && strcmp(argv[1], "--fd") == 0 &&
        parse_integer(argv[2], "--fd", 3, INT16_MAX, &fd, NULL) == 0)
        return join((int)fd, argv[3]);
    (void)fprintf(stderr, "mgpu-tls is started by mgpu to connect to another machine\n");
    return 2;
}
