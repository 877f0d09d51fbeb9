/* SPDX-License-Identifier: MIT */
/*
 * 256 random bits, so neither a salt nor a slow hash is needed: guessing the hash's input means guessing the
 * secret. The prefix lets scanners of repositories and logs recognise a leaked token.
 */
#include "wire/token.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#define PREFIX       "mgpu_"
#define SECRET_SIZE  32
#define HEX_ALPHABET "0123456789abcdef"

bool token_hash(const char *token, uint8_t hash[TOKEN_HASH_SIZE])
{
    size_t prefix = sizeof(PREFIX) - 1;
    if (strlen(token) != TOKEN_SIZE - 1 || strncmp(token, PREFIX, prefix) != 0)
        return false;
    if (strspn(token + prefix, HEX_ALPHABET) != 2 * (size_t)SECRET_SIZE)
        return false;
    unsigned length = 0;
    return EVP_Digest(token, strlen(token), hash, &length, EVP_sha256(), NULL) == 1;
}

int token_make(char token[TOKEN_SIZE], uint8_t hash[TOKEN_HASH_SIZE], struct error *err)
{
    uint8_t secret[SECRET_SIZE];
    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
        return error_set_errno(err, -errno, "cannot get random numbers for a token");
    (void)snprintf(token, TOKEN_SIZE, "%s", PREFIX);
    for (size_t i = 0; i < sizeof(secret); i++)
        (void)snprintf(token + sizeof(PREFIX) - 1 + 2 * i, 3, "%02x", (unsigned)secret[i]);
    OPENSSL_cleanse(secret, sizeof(secret));
    return token_hash(token, hash) ? 0 : error_set(err, -ENOTSUP, "SHA-256 is unavailable");
}

const char *token_of_header(const char *header)
{
    static const char scheme[] = "Bearer ";
    if (strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
        return NULL;
    header += sizeof(scheme) - 1;
    return header + strspn(header, " ");
}

bool token_is_equal(const uint8_t a[TOKEN_HASH_SIZE], const uint8_t b[TOKEN_HASH_SIZE])
{
    return CRYPTO_memcmp(a, b, TOKEN_HASH_SIZE) == 0;
}
