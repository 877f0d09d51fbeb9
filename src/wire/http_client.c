/* SPDX-License-Identifier: MIT */
/*
 * The client side of HTTP on the local socket. libhttp-parser parses the answers; this file only moves bytes.
 * A connection carries one request after another; two answers at a time need two connections. This file never
 * retries: its callers know which requests are safe to repeat (docs/decisions/0001-http-client.md).
 */
#include "wire/http_client.h"

#include <errno.h>
#include <http_parser.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"

#define READ_SIZE (64U << 10)

struct http_client {
    int fd;
    int interrupt_fd;             // -1: none
    char *token;                  // NULL: the kernel identifies the caller
    http_authorize_fn *authorize; // NULL: the token
    void *authorize_arg;
    http_parser parser;
    struct http_request request;
    struct http_answer answer;
    bool is_reusable;
    int sink_result;
    size_t header_bytes;
    char name[32], value[HTTP_CONTROLLERS_MAX]; // length of a header that is read; longer ones are truncated
    bool is_in_value;
    char bytes[READ_SIZE];
};

static struct http_client *client_of(http_parser *parser)
{
    return parser->data;
}

/* 1: too many, or a NUL byte. */
static int check_bytes(struct http_client *client, const char *bytes, size_t length)
{
    client->header_bytes += length;
    return client->header_bytes > HTTP_HEADERS_MAX || memchr(bytes, '\0', length) != NULL;
}

static void append_cut(char *text, size_t size, const char *bytes, size_t length)
{
    size_t used = strlen(text), room = size - 1 - used;
    memcpy(text + used, bytes, length < room ? length : room);
    text[used + (length < room ? length : room)] = '\0';
}

/* A header is complete when the next one begins or the head ends. */
static void finish_header(struct http_client *client)
{
    uint64_t start = 0;
    if (strcasecmp(client->name, "Content-Range") == 0 &&
        sscanf(client->value, "bytes %" SCNu64 "-", &start) == 1 && start <= INT64_MAX)
        client->answer.range_start = (int64_t)start;
    if (strcasecmp(client->name, "X-Mgpu-Age") == 0 && sscanf(client->value, "%" SCNu64, &start) == 1 &&
        start <= INT64_MAX)
        client->answer.age_ms = (int64_t)start;
    if (strcasecmp(client->name, "X-Mgpu-Controllers") == 0 &&
        strlen(client->value) + 1 < sizeof(client->value))
        memcpy(client->answer.controllers, client->value, sizeof(client->answer.controllers));
    client->name[0] = client->value[0] = '\0';
    client->is_in_value = false;
}

static int on_status(http_parser *parser, const char *bytes, size_t length)
{
    return check_bytes(client_of(parser), bytes, length);
}

static int on_header_field(http_parser *parser, const char *bytes, size_t length)
{
    struct http_client *client = client_of(parser);
    if (client->is_in_value)
        finish_header(client);
    append_cut(client->name, sizeof(client->name), bytes, length);
    return check_bytes(client, bytes, length);
}

static int on_header_value(http_parser *parser, const char *bytes, size_t length)
{
    struct http_client *client = client_of(parser);
    client->is_in_value = true;
    append_cut(client->value, sizeof(client->value), bytes, length);
    return check_bytes(client, bytes, length);
}

static int on_headers_complete(http_parser *parser)
{
    struct http_client *client = client_of(parser);
    finish_header(client);
    client->answer.status = parser->status_code;
    return 0;
}

static int on_body(http_parser *parser, const char *bytes, size_t length)
{
    struct http_client *client = client_of(parser);
    bool is_for_sink =
        client->request.sink != NULL &&
        (client->answer.status == HTTP_STATUS_OK || client->answer.status == HTTP_STATUS_PARTIAL_CONTENT);
    if (is_for_sink)
        client->sink_result = client->request.sink(client->request.sink_target, bytes, length);
    else if (client->answer.body.length + length > HTTP_ANSWER_MAX)
        client->sink_result = -EFBIG;
    else
        buffer_append(&client->answer.body, bytes, length);
    return client->sink_result < 0;
}

static int on_message_complete(http_parser *parser)
{
    struct http_client *client = client_of(parser);
    /* An informational answer (100 Continue) only precedes the real one. */
    if (parser->status_code < 200)
        return 0;
    client->answer.is_complete = true;
    client->is_reusable = http_should_keep_alive(parser) != 0;
    http_parser_pause(parser, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_status = on_status,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

int http_client_connect(const char *socket_path, struct http_client **ret, struct error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strlen(socket_path);
    if (length >= sizeof(address.sun_path))
        return error_set(err, -ENAMETOOLONG, "socket path %.100s... is longer than %zu bytes", socket_path,
            sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, socket_path, length + 1);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return error_set_errno(err, -errno, "cannot reach mgpud at %s", socket_path);
    *ret = http_client_adopt(take_fd(&fd));
    return 0;
}

struct http_client *http_client_adopt(int fd)
{
    /* Clearing the bytes too would touch sixteen pages at the start of each command. */
    struct http_client *client = xreallocarray(NULL, 1, sizeof(*client));
    memset(client, 0, offsetof(struct http_client, bytes));
    client->fd = fd;
    client->interrupt_fd = -1;
    client->is_reusable = true;
    return client;
}

void http_client_authorize(struct http_client *client, const char *token)
{
    free(client->token);
    client->token = xstrdup(token);
}

void http_client_authorize_each(struct http_client *client, http_authorize_fn *authorize, void *arg)
{
    client->authorize = authorize;
    client->authorize_arg = arg;
}

void http_client_interrupt_by(struct http_client *client, int fd)
{
    client->interrupt_fd = fd;
}

int http_client_fd(const struct http_client *client)
{
    return client->fd;
}

static int append_head(const struct http_client *client, const struct http_request *request,
    struct buffer *out, struct error *err)
{
    _cleanup_free_ char *credential = NULL;
    if (client->authorize != NULL) {
        int r = client->authorize(client->authorize_arg, request->method, request->path, &credential, err);
        if (r < 0)
            return r;
    }
    buffer_printf(out, "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: mgpu/" MGPU_VERSION "\r\n",
        request->method, request->path);
    if (request->header != NULL)
        buffer_printf(out, "%s\r\n", request->header);
    if (credential != NULL)
        buffer_printf(out, "Authorization: %s\r\n", credential);
    else if (client->token != NULL)
        buffer_printf(out, "Authorization: Bearer %s\r\n", client->token);
    if (request->body != NULL)
        buffer_append_text(out, "Content-Type: application/json\r\n");
    if (request->body != NULL || strcmp(request->method, "GET") != 0)
        buffer_printf(out, "Content-Length: %zu\r\n", request->body == NULL ? 0 : request->body_length);
    buffer_append_text(out, "\r\n");
    return 0;
}

int http_client_send(struct http_client *client, const struct http_request *request, struct error *err)
{
    buffer_clear(&client->answer.body);
    client->answer = (struct http_answer){ .range_start = -1, .age_ms = -1 };
    client->request = *request;
    client->sink_result = 0;
    client->header_bytes = 0;
    client->name[0] = client->value[0] = '\0';
    client->is_in_value = false;
    client->is_reusable = false;
    http_parser_init(&client->parser, HTTP_RESPONSE);
    client->parser.data = client;

    _cleanup_buffer_ struct buffer out = { 0 };
    int r = append_head(client, request, &out, err);
    if (r < 0)
        return r;
    if (request->body != NULL)
        buffer_append(&out, request->body, request->body_length);
    for (size_t sent = 0; sent < out.length;) {
        ssize_t n = send(client->fd, out.bytes + sent, out.length - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return 0; // mgpud may have sent the reason before it closed the connection
        if (n < 0)
            return error_set_errno(err, -errno, "cannot send to mgpud");
        sent += (size_t)n;
    }
    return 0;
}

static int judge_parse(struct http_client *client, struct error *err)
{
    enum http_errno what = HTTP_PARSER_ERRNO(&client->parser);
    if (client->answer.is_complete)
        return 1;
    if (client->sink_result == -EFBIG)
        return error_set(err, -EFBIG, "the response of mgpud is longer than %u MiB", HTTP_ANSWER_MAX >> 20);
    if (client->sink_result < 0)
        return client->sink_result;
    if (client->parser.upgrade != 0)
        return error_set(err, -EBADMSG, "mgpud changed to another protocol without a request");
    if (what != HPE_OK)
        return error_set(
            err, -EBADMSG, "the response of mgpud is not HTTP: %s", http_errno_description(what));
    return 0;
}

int http_client_receive(struct http_client *client, struct error *err)
{
    ssize_t n = recv(client->fd, client->bytes, sizeof(client->bytes), 0);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0)
        return error_set_errno(err, -errno, "cannot receive from mgpud");
    /* Zero bytes indicate the end, which completes an answer without a length. */
    (void)http_parser_execute(&client->parser, &settings, client->bytes, (size_t)n);
    int r = judge_parse(client, err);
    if (r == 0 && n == 0)
        return error_set(err, -ECONNRESET, "mgpud closed the connection before its response was complete");
    if (n == 0)
        client->is_reusable = false;
    return r == -EBADMSG && n == 0 ? -ECONNRESET : r;
}

const struct http_answer *http_client_answer(const struct http_client *client)
{
    return &client->answer;
}

/* Like poll(), but signals, such as those of Ctrl-Z and fg, neither end nor prolong the wait. */
static int poll_all(struct pollfd *wanted, nfds_t count, int timeout_ms)
{
    int64_t end_ms = clock_boot_ms() + timeout_ms;
    int ready = poll(wanted, count, timeout_ms);
    while (ready < 0 && errno == EINTR) {
        int64_t left_ms = end_ms - clock_boot_ms();
        ready = poll(wanted, count, timeout_ms < 0 ? -1 : left_ms > 0 ? (int)left_ms : 0);
    }
    return ready;
}

/* An answer that is already arriving still counts after an interrupt. */
static int wait_readable(const struct http_client *client, int timeout_ms, struct error *err)
{
    struct pollfd wanted[] = { { .fd = client->fd, .events = POLLIN },
        { .fd = client->interrupt_fd, .events = POLLIN } };
    int ready = poll_all(wanted, 2, timeout_ms);
    if (ready == 0)
        return error_set(err, -ETIMEDOUT, "mgpud did not respond within %d s", timeout_ms / 1000);
    if (ready < 0 || wanted[0].revents != 0)
        return 0;
    if (poll_all(wanted, 1, HTTP_INTERRUPT_MS) == 0)
        return error_set(err, -EINTR, "interrupted before mgpud responded");
    return 0;
}

int http_client_request(
    struct http_client *client, const struct http_request *request, int timeout_ms, struct error *err)
{
    int r = http_client_send(client, request, err);
    while (r == 0) {
        /* Only a limited wait needs its own poll. */
        if (timeout_ms >= 0 || client->interrupt_fd >= 0)
            r = wait_readable(client, timeout_ms, err);
        if (r == 0)
            r = http_client_receive(client, err);
    }
    return r < 0 ? r : 0;
}

int http_client_upgrade(
    struct http_client *client, const struct http_request *request, struct buffer *rest, struct error *err)
{
    int r = http_client_send(client, request, err);
    while (r == 0) {
        ssize_t n = recv(client->fd, client->bytes, sizeof(client->bytes), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(err, -errno, "cannot receive from mgpud");
        size_t taken = http_parser_execute(&client->parser, &settings, client->bytes, (size_t)n);
        if (client->parser.upgrade != 0 && client->answer.status == HTTP_STATUS_SWITCHING_PROTOCOLS) {
            buffer_append(rest, client->bytes + taken, (size_t)n - taken);
            return 1;
        }
        r = judge_parse(client, err);
        if (r == 0 && n == 0)
            return error_set(
                err, -ECONNRESET, "mgpud closed the connection before its response was complete");
    }
    return r < 0 ? r : 0;
}

bool http_client_is_reusable(const struct http_client *client)
{
    return client->is_reusable;
}

void http_append_encoded(struct buffer *out, const char *text)
{
    static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr(unreserved, *p) != NULL)
            buffer_append(out, p, 1);
        else
            buffer_printf(out, "%%%02X", (unsigned)(unsigned char)*p);
    }
}

void http_client_free(struct http_client *client)
{
    if (client == NULL)
        return;
    int saved = errno;
    if (client->fd >= 0)
        (void)close(client->fd);
    buffer_clear(&client->answer.body);
    free(client->token);
    free(client);
    errno = saved;
}

void http_client_freep(struct http_client **client)
{
    http_client_free(*client);
}
