/* SPDX-License-Identifier: MIT */
/*
 * The secret has 128 random bits and is hashed once, like any token (wire/token.c). The text is base64url of
 *
 *      version (1 byte)   id (8, big endian)   secret (16)   pin (32)
 */
#include "wire/tls/join_token.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"

#define VERSION     1
#define TOKEN_BYTES (1 + 8 + JOIN_SECRET_SIZE + TLS_PIN_SIZE)

int join_secret_hash(const uint8_t secret[JOIN_SECRET_SIZE], uint8_t hash[JOIN_HASH_SIZE], struct error *err)
{
    unsigned length = 0;
    if (EVP_Digest(secret, JOIN_SECRET_SIZE, hash, &length, EVP_sha256(), NULL) != 1)
        return error_set(err, -ENOTSUP, "SHA-256 is unavailable");
    return 0;
}

int join_secret_make(uint8_t secret[JOIN_SECRET_SIZE], uint8_t hash[JOIN_HASH_SIZE], struct error *err)
{
    if (getrandom(secret, JOIN_SECRET_SIZE, 0) != JOIN_SECRET_SIZE)
        return error_set_errno(err, -errno, "cannot get random numbers for a token");
    return join_secret_hash(secret, hash, err);
}

void join_token_write(const struct join_token *token, char text[JOIN_TOKEN_TEXT_SIZE])
{
    uint8_t bytes[TOKEN_BYTES] = { VERSION };
    for (unsigned i = 0; i < 8; i++)
        bytes[1 + i] = (uint8_t)(token->id >> (56 - 8 * i));
    memcpy(&bytes[9], token->secret, JOIN_SECRET_SIZE);
    memcpy(&bytes[9 + JOIN_SECRET_SIZE], token->pin, TLS_PIN_SIZE);
    tls_base64_write(bytes, sizeof(bytes), text);
    OPENSSL_cleanse(bytes, sizeof(bytes));
}

int join_token_read(const char *text, struct join_token *ret, struct error *err)
{
    uint8_t bytes[TOKEN_BYTES];
    size_t length = strlen(text);
    if (length != JOIN_TOKEN_TEXT_SIZE - 1) {
        (void)error_set(err, -EINVAL, "the token is incomplete: it has %zu of %d characters", length,
            JOIN_TOKEN_TEXT_SIZE - 1);
        return error_hint(err, "copy the complete output of `mgpu node token`");
    }
    if (!tls_base64_read(text, bytes, sizeof(bytes)))
        return error_set(err, -EINVAL, "the token contains invalid characters");
    if (bytes[0] != VERSION) {
        (void)error_set(
            err, -EPROTONOSUPPORT, "the token has version %d; this mgpu supports %d", bytes[0], VERSION);
        return error_hint(err, "install the version of mgpu that runs mgpud");
    }
    *ret = (struct join_token){ 0 };
    for (unsigned i = 0; i < 8; i++)
        ret->id = ret->id << 8 | bytes[1 + i];
    memcpy(ret->secret, &bytes[9], JOIN_SECRET_SIZE);
    memcpy(ret->pin, &bytes[9 + JOIN_SECRET_SIZE], TLS_PIN_SIZE);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return 0;
}

int join_ticket_read(const char *text, struct join_ticket *ret, struct error *err)
{
    const char *hash = strchr(text, '#');
    if (hash == NULL) {
        (void)error_set(err, -EINVAL, "'%.80s' is not HOST:PORT#TOKEN", text);
        return error_hint(
            err, "run `mgpu node token` on the machine of mgpud, and quote its output for the shell");
    }
    _cleanup_free_ char *where = xstrndup(text, (size_t)(hash - text));
    struct join_ticket ticket = { 0 };
    struct address addresses[ADDRESSES_MAX] = { 0 };
    size_t count = 0;
    int r = address_parse_list(where, NODES_PORT, addresses, &count, err);
    if (r == 0)
        r = join_token_read(hash + 1, &ticket.token, err);
    if (r < 0) {
        address_clear_list(addresses, count);
        return r;
    }
    ticket.address = addresses[0];
    address_clear_list(addresses + 1, count - 1);
    ticket.all = xstrdup(where);
    *ret = ticket;
    return 0;
}

void join_ticket_clear(struct join_ticket *ticket)
{
    address_clear(&ticket->address);
    free(ticket->all);
    OPENSSL_cleanse(ticket, sizeof(*ticket));
}

int pinned_address_read(const char *text, struct address *ret, uint8_t pin[TLS_PIN_SIZE], struct error *err)
{
    static const char scheme[] = "https://";
    const char *host = strncmp(text, scheme, strlen(scheme)) == 0 ? text + strlen(scheme) : text;
    const char *hash = strchr(host, '#');
    if (hash == NULL || strncmp(text, "http://", 7) == 0) {
        (void)error_set(err, -EINVAL, "'%.80s' is not https://HOST:PORT#PIN", text);
        return error_hint(err, "run `mgpu token create` on the machine of mgpud for the whole address");
    }
    if (!tls_pin_parse(hash + 1, pin))
        return error_set(
            err, -EINVAL, "the part after # in '%.80s' is not a pin: a pin has 43 characters", text);
    _cleanup_free_ char *where = xstrndup(host, (size_t)(hash - host));
    return address_parse(where, API_PORT, ret, err);
}
