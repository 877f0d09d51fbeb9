/* SPDX-License-Identifier: MIT */
/* RFC 9110, 14.1, without lists of ranges. */
#include "controller/http/range.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Reads a run of digits and moves *at behind it. False if there is none or the number does not fit. */
static bool read_number(const char **at, uint64_t *ret)
{
    if (!isdigit((unsigned char)**at))
        return false;
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(*at, &end, 10);
    if (errno == ERANGE || number > INT64_MAX)
        return false;
    *at = end;
    *ret = number;
    return true;
}

int range_parse(const char *header, struct range *ret, struct error *err)
{
    static const char unit[] = "bytes=";
    struct range range = { 0 };
    if (header == NULL) {
        *ret = range;
        return 0;
    }
    const char *at = header;
    uint64_t last = 0;
    bool is_valid = strncmp(at, unit, sizeof(unit) - 1) == 0;
    if (is_valid) {
        at += sizeof(unit) - 1;
        range.is_suffix = *at == '-';
        if (range.is_suffix) {
            at++;
            is_valid = read_number(&at, &range.length) && range.length > 0;
        } else {
            is_valid = read_number(&at, &range.offset) && *at++ == '-';
            if (is_valid && *at != '\0') {
                is_valid = read_number(&at, &last) && last >= range.offset;
                range.length = last - range.offset + 1;
            }
        }
    }
    if (!is_valid || *at != '\0') {
        (void)error_set(err, -ESPIPE, "Range: '%.60s' is not a range of bytes", header);
        return error_hint(err, "use bytes=100-, bytes=100-199 or bytes=-100");
    }
    range.is_given = true;
    *ret = range;
    return 0;
}

int range_resolve(struct range *range, uint64_t size, struct error *err)
{
    if (range->is_suffix) {
        uint64_t length = range->length < size ? range->length : size;
        range->is_suffix = false;
        range->offset = size - length;
        range->length = length;
    }
    if (range->is_given && range->offset >= size)
        return error_set(err, -ESPIPE, "the log has %" PRIu64 " bytes; byte %" PRIu64 " is past its end",
            size, range->offset);
    uint64_t rest = size - range->offset;
    if (range->length == 0 || range->length > rest)
        range->length = rest;
    return 0;
}
