/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a request to slurmrestd: however they come in pieces, the request or the refusal is the same.
 * The words of its first line are words, its body has the length that it announced, and the client is told to
 * go on only while its body is missing. The first byte chooses the pieces.
 */
#include <string.h>

#include "base/crc32c.h"
#include "compat/slurm/rest_message.h"
#include "fuzz.h"

static uint32_t sum_text(uint32_t sum, const char *text)
{
    return text == NULL ? sum + 1 : crc32c(sum, text, strlen(text) + 1);
}

static uint32_t examine(const struct rest_message *message)
{
    must_be(message->method[strcspn(message->method, " \r\n")] == '\0');
    must_be(message->target[0] == '/' && message->target[strcspn(message->target, " \r\n")] == '\0');
    must_be(strlen(message->body) == message->body_length && message->body_length <= REST_BODY_MAX);
    must_be(message->head <= REST_HEAD_MAX && !message->is_waiting);
    if (message->user != NULL)
        must_be(message->user[strcspn(message->user, "\r\n")] == '\0');
    uint32_t sum = sum_text(0, message->method);
    sum = sum_text(sum, message->target);
    sum = sum_text(sum, message->body);
    return sum_text(sum, message->user);
}

static uint32_t feed(const uint8_t *bytes, size_t length, size_t piece)
{
    struct rest_message message = { 0 };
    uint32_t sum = 0;
    int r = rest_message_examine(&message);
    for (size_t at = 0; at < length && r == REST_MORE;) {
        size_t n = length - at < piece ? length - at : piece;
        must_be(!message.is_waiting || message.bytes.length < message.head + message.body_length);
        buffer_append(&message.bytes, bytes + at, n);
        at += n;
        r = rest_message_examine(&message);
    }
    must_be(r == REST_MORE || r == REST_WHOLE || r == 400 || r == 411 || r == 413);
    if (r == REST_WHOLE)
        sum = examine(&message);
    rest_message_clear(&message);
    return sum * 31 + (uint32_t)r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0)
        return 0;
    size_t piece = (size_t)bytes[0] + 1;
    bytes++, length--;
    if (length / piece < 4096)
        must_be(feed(bytes, length, length + 1) == feed(bytes, length, piece));
    return 0;
}
