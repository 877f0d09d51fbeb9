/* SPDX-License-Identifier: MIT */
#include "wire/tls/join_talk.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "wire/message.h"
#include "wire/tls/context.h"
#include "wire/tls/dial.h"

void join_talk_secret(const struct join_token *token, char text[2 * JOIN_SECRET_SIZE + 1])
{
    for (size_t i = 0; i < JOIN_SECRET_SIZE; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", (unsigned)token->secret[i]);
}

int join_talk_open(const struct address *address, const uint8_t pin[TLS_PIN_SIZE], int64_t until_boot_ms,
    struct join_talk *ret, struct error *err)
{
    _cleanup_context_ SSL_CTX *context = NULL;
    struct join_talk talk = { .fd = -1, .until_boot_ms = until_boot_ms };
    int r = tls_context_client(pin, NULL, NULL, &context, err);
    if (r == 0)
        r = tls_dial(context, address, TLS_FOR_JOIN, until_boot_ms, &talk.ssl, &talk.fd, err);
    if (r < 0)
        return r;
    talk.where = address_text(address);
    *ret = talk;
    return 0;
}

static int refused(const struct message_refused *refusal, struct error *err)
{
    int code = refusal->error > 0 ? -refusal->error : -EPROTO;
    (void)error_set(
        err, code, "mgpud refused: %s", refusal->text != NULL ? refusal->text : "no reason given");
    if (refusal->hint != NULL && refusal->hint[0] != '\0')
        (void)error_hint(err, "%s", refusal->hint);
    return code;
}

static int take_answer(const void *bytes, size_t length, uint16_t id, const struct record_type *type,
    void *ret_answer, struct error *err)
{
    struct message_refused refusal;
    if (id == type->id)
        return record_decode(type, bytes, length, ret_answer, err);
    if (id != MESSAGE_REFUSED)
        return error_set(err, -EPROTO, "mgpud replied with unexpected message %u", id);
    int r = record_decode(&message_refused_record, bytes, length, &refusal, err);
    if (r < 0)
        return r;
    r = refused(&refusal, err);
    record_clear(&message_refused_record, &refusal);
    return r;
}

int join_talk_ask(struct join_talk *talk, const struct record_type *type, const void *message,
    const struct record_type *answer_type, void *ret_answer, struct error *err)
{
    _cleanup_buffer_ struct buffer question = { 0 };
    uint8_t head[RECORD_HEADER_SIZE];
    uint16_t id = 0;
    size_t length = 0;
    record_encode(type, message, &question);
    int r = tls_dial_send(talk->ssl, question.bytes, question.length, talk->until_boot_ms, talk->where, err);
    if (r == 0)
        r = tls_dial_receive(talk->ssl, head, sizeof(head), talk->until_boot_ms, talk->where, err);
    if (r < 0)
        return r;
    if (record_peek(head, sizeof(head), JOIN_MESSAGE_MAX, &id, &length) < 0 || length < sizeof(head))
        return error_set(err, -EPROTO, "the reply of %s is not a frame", talk->where);
    _cleanup_free_ uint8_t *bytes = xcalloc(1, length);
    for (size_t i = 0; i < sizeof(head); i++)
        bytes[i] = head[i];
    r = tls_dial_receive(
        talk->ssl, bytes + sizeof(head), length - sizeof(head), talk->until_boot_ms, talk->where, err);
    return r < 0 ? r : take_answer(bytes, length, id, answer_type, ret_answer, err);
}

void join_talk_close(struct join_talk *talk)
{
    (void)SSL_shutdown(talk->ssl);
    SSL_free(talk->ssl);
    closep(&talk->fd);
    free(talk->where);
    *talk = (struct join_talk){ .fd = -1 };
}
