/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as that by which a caller is identified, by the first byte of the input: 'm' what libmunge says
 * of a credential, 's' the Cookie header with the session of the page, 't' a token. Nobody is identified by
 * bytes that are not exactly those of the request, of the cookie with that name, or of a token.
 */
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "controller/http/cookie.h"
#include "fuzz.h"
#include "input.h"
#include "wire/munge.h"
#include "wire/token.h"

#define INSTANCE "0badcafe"
#define COOKIE   "mgpu-" INSTANCE

/* An error, a uid, the reason up to a NUL, and the payload. */
static void try_munge(struct input *input)
{
    struct munge_claim claim = { 0 };
    struct error err = { 0 };
    size_t length;
    int error = input_byte(input) % 20;
    uint32_t uid = input_byte(input) == 0xff ? UINT32_MAX : input_number(input);
    const char *reason = (const char *)input->bytes + input->at;
    size_t reason_length = strnlen(reason, input->length - input->at);
    input->at += reason_length + (input->at + reason_length < input->length);
    const uint8_t *payload = input_run(input, input->length, &length);
    _cleanup_free_ char *why = xstrndup(reason, reason_length);
    const struct munge_answer answer = { error, error == 19 ? NULL : why, payload, (int)length, uid, uid };
    if (munge_read_answer(&answer, &claim, &err) < 0) {
        must_be(claim.payload == NULL && err.message[0] != '\0' && is_printable(err.message));
        must_be(error != 0 || uid == UINT32_MAX || length == 0 || memchr(payload, 0, length) != NULL);
        return;
    }
    must_be(error == 0 && claim.uid == uid && uid != UINT32_MAX);
    must_be(strlen(claim.payload) == length && memcmp(claim.payload, payload, length) == 0);
    free(claim.payload);
}

/* Another way to the same: from one semicolon to the next. */
static char *find_cookie(const char *header, const char *name)
{
    for (const char *at = header; at != NULL; at = strchr(at, ';')) {
        while (*at == ';' || *at == ' ')
            at++;
        const char *end = strchrnul(at, ';'), *equals = memchr(at, '=', (size_t)(end - at));
        if (equals != NULL && (size_t)(equals - at) == strlen(name) && memcmp(at, name, strlen(name)) == 0)
            return xstrndup(equals + 1, (size_t)(end - equals) - 1);
    }
    return NULL;
}

static void try_token(const char *text)
{
    uint8_t hash[TOKEN_HASH_SIZE];
    bool is_one = strlen(text) == TOKEN_SIZE - 1 && strncmp(text, "mgpu_", 5) == 0 &&
                  strspn(text + 5, "0123456789abcdef") == TOKEN_SIZE - 6;
    must_be(token_hash(text, hash) == is_one);
}

static void try_cookies(const char *header)
{
    static const char *const names[] = { COOKIE, "__Host-" COOKIE };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        _cleanup_free_ char *value = cookie_value(header, names[i]), *same = find_cookie(header, names[i]);
        must_be(text_equal(value, same));
        if (value == NULL)
            continue;
        _cleanup_free_ char *whole = xasprintf("%s=%s", names[i], value);
        must_be(strchr(value, ';') == NULL && strstr(header, whole) != NULL);
        try_token(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct input input = { bytes, length, 1 };
    if (length == 0)
        return 0;
    _cleanup_free_ char *text = xstrndup((const char *)bytes + 1, length - 1);
    if (bytes[0] == 'm') {
        try_munge(&input);
    } else if (bytes[0] == 's') {
        try_cookies(text);
    } else if (bytes[0] == 't') {
        try_token(text);
        const char *token = token_of_header(text);
        must_be(token == NULL || (token >= text && token <= text + strlen(text)));
    }
    return 0;
}
