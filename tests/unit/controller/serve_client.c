/* SPDX-License-Identifier: MIT */
#include "serve_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

#define DEADLINE_MS 60000 // before a request counts as hanging: a busy machine is slow

static void make_nonblocking(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int client_connect(struct harness *harness)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", harness->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    make_nonblocking(fd);
    while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno != EAGAIN)
            abort();
        harness_turn(harness, 1); // the backlog is full
    }
    return fd;
}

int client_connect_tcp(struct harness *harness)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(harness->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        abort();
    make_nonblocking(fd);
    return fd;
}

bool client_send(struct harness *harness, int fd, const void *bytes, size_t length)
{
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    while (length > 0 && clock_boot_ms() < deadline) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n > 0) {
            bytes = (const char *)bytes + n;
            length -= (size_t)n;
        }
        harness_turn(harness, n > 0 ? 0 : 1);
    }
    return length == 0;
}

/* Reads what is there; -1 at the end, 0 when the deadline passed. */
static ssize_t read_some(struct harness *harness, int fd, struct buffer *in, int64_t deadline)
{
    char block[65536];
    while (clock_boot_ms() < deadline) {
        ssize_t n = recv(fd, block, sizeof(block), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return -1;
        if (n > 0) {
            buffer_append(in, block, (size_t)n);
            return n;
        }
        harness_turn(harness, 1);
    }
    return 0;
}

static const char *find_header(const char *head, const char *name)
{
    const char *found = strcasestr(head, name);
    return found != NULL ? found + strlen(name) : NULL;
}

/* Takes chunks apart; true when the last one is there. */
static bool join_chunks(const char *bytes, size_t length, struct buffer *out)
{
    out->length = 0;
    const char *at = bytes, *end = bytes + length;
    while (at < end) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (line_end == NULL)
            return false;
        size_t size = strtoul(at, NULL, 16);
        at = line_end + 2;
        if ((size_t)(end - at) < size + 2) {
            buffer_append(out, at, (size_t)(end - at) < size ? (size_t)(end - at) : size);
            return false;
        }
        buffer_append(out, at, size);
        at += size + 2;
        if (size == 0)
            return true;
    }
    return false;
}

struct answer client_receive(struct harness *harness, int fd, bool is_head)
{
    struct answer answer = { 0 };
    struct buffer in = { 0 }, body = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    bool is_whole = false, is_over = false;
    while (!is_whole && !is_over) {
        is_over = read_some(harness, fd, &in, deadline) <= 0;
        const char *text = buffer_text(&in);
        const char *end = memmem(text, in.length, "\r\n\r\n", 4);
        if (end != NULL && strncmp(text, "HTTP/1.1 100", 12) == 0) {
            size_t skipped = (size_t)(end + 4 - text);
            memmove(in.bytes, in.bytes + skipped, in.length - skipped);
            in.length -= skipped;
            text = buffer_text(&in);
            end = memmem(text, in.length, "\r\n\r\n", 4);
        }
        if (end == NULL)
            continue;
        size_t head_length = (size_t)(end + 4 - text), rest = in.length - head_length;
        free(answer.head);
        answer.head = xstrndup(text, head_length);
        answer.status = (unsigned)strtoul(text + 9, NULL, 10);
        const char *length = find_header(answer.head, "\nContent-Length: ");
        if (is_head) {
            is_whole = true;
        } else if (find_header(answer.head, "\nTransfer-Encoding: chunked") != NULL) {
            is_whole = join_chunks(text + head_length, rest, &body);
        } else {
            body.length = 0;
            buffer_append(&body, text + head_length, rest);
            is_whole = length != NULL ? rest >= strtoull(length, NULL, 10) : is_over;
        }
    }
    answer.is_cut = !is_whole;
    answer.length = body.length;
    answer.body = buffer_take(&body);
    buffer_clear(&in);
    return answer;
}

char *client_read_until(struct harness *harness, int fd, const char *text)
{
    struct buffer in = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    while (in.length == 0 || memmem(in.bytes, in.length, text, strlen(text)) == NULL)
        if (read_some(harness, fd, &in, deadline) <= 0)
            break;
    return buffer_take(&in);
}

char *client_read_chunks(struct harness *harness, int fd, const char *text)
{
    struct buffer in = { 0 }, body = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    while (body.length == 0 || strstr(buffer_text(&body), text) == NULL) {
        if (read_some(harness, fd, &in, deadline) <= 0)
            break;
        const char *head_end = memmem(in.bytes, in.length, "\r\n\r\n", 4);
        if (head_end == NULL)
            continue;
        size_t head_length = (size_t)(head_end + 4 - (const char *)in.bytes);
        (void)join_chunks(head_end + 4, in.length - head_length, &body);
    }
    buffer_clear(&in);
    return buffer_take(&body);
}

bool client_is_closed(struct harness *harness, int fd)
{
    _cleanup_buffer_ struct buffer in = { 0 };
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    ssize_t n;
    do
        n = read_some(harness, fd, &in, deadline);
    while (n > 0);
    return n < 0;
}

struct answer client_ask(struct harness *harness, const char *request)
{
    int fd = client_connect(harness);
    (void)client_send(harness, fd, request, strlen(request));
    struct answer answer = client_receive(harness, fd, strncmp(request, "HEAD", 4) == 0);
    (void)close(fd);
    harness_turn(harness, 0);
    return answer;
}

struct answer client_get(struct harness *harness, const char *path)
{
    _cleanup_free_ char *request = xasprintf("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    return client_ask(harness, request);
}

struct answer client_post(struct harness *harness, const char *path, const char *body)
{
    _cleanup_free_ char *request = xasprintf(
        "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", path, strlen(body), body);
    return client_ask(harness, request);
}

void answer_clear(struct answer *answer)
{
    free(answer->head);
    free(answer->body);
    *answer = (struct answer){ 0 };
}

const char *answer_string(const struct answer *answer, const char *key)
{
    static char text[1024];
    json_t *body = json_loads(answer->body, 0, NULL);
    const char *value = json_string_value(json_object_get(body, key));
    (void)snprintf(text, sizeof(text), "%s", value != NULL ? value : "");
    json_decref(body);
    return text;
}

int64_t answer_integer(const struct answer *answer, const char *key)
{
    json_t *body = json_loads(answer->body, 0, NULL);
    const json_t *value = json_object_get(body, key);
    int64_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    json_decref(body);
    return number;
}

bool answer_has(const struct answer *answer, const char *text)
{
    return answer->body != NULL && strstr(answer->body, text) != NULL;
}
