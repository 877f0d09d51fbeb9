/* SPDX-License-Identifier: MIT */
/* The type ids lie beyond those of the messages between programs (wire/message.h). */
#include "wire/requests.h"

#include "wire/limits.h"

static const struct record_field cancel_fields[] = {
    RECORD_FIELD(1, RECORD_I64, struct cancel_request, grace_s, 0),
};
const struct record_type cancel_request_record =
    RECORD_TYPE(200, "cancel request", struct cancel_request, cancel_fields);

static const struct record_field token_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct token_request, name, LIMIT_TOKEN_NAME_BYTES),
    RECORD_FIELD(2, RECORD_U64, struct token_request, expires_s, 0),
};
const struct record_type token_request_record =
    RECORD_TYPE(201, "token request", struct token_request, token_fields);
