/* SPDX-License-Identifier: MIT */
/*
 * Numbers below 6 * 2^28 are shuffled by a modular multiplication, which the inverse reverses; the first
 * hexadecimal digit is a letter, so an alias is never also a number.
 */
#include "job/alias.h"

#include <stdio.h>
#include <string.h>

#define LOW_BITS   28U
#define ALIASES    (6ULL << LOW_BITS)
#define MULTIPLIER 1234567891ULL // has no divisor in common with ALIASES
#define INVERSE    299476315ULL  // MULTIPLIER * INVERSE = 1 modulo ALIASES
#define OFFSET     12345677ULL
#define FIRST      10U // the digit A

bool job_alias(uint64_t id, char ret[ALIAS_SIZE])
{
    ret[0] = '\0';
    if (id >= ALIASES)
        return false;
    uint64_t shuffled = (id * MULTIPLIER + OFFSET) % ALIASES;
    (void)snprintf(ret, ALIAS_SIZE, "%08X", (unsigned)(shuffled + ((uint64_t)FIRST << LOW_BITS)));
    return true;
}

bool job_alias_parse(const char *text, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint64_t value = 0;
    for (size_t i = 0; i < ALIAS_SIZE - 1; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);
        if (digit == NULL)
            return false;
        value = value << 4 | (uint64_t)((digit - digits) & 0xf);
    }
    if (text[ALIAS_SIZE - 1] != '\0' || value < (uint64_t)FIRST << LOW_BITS)
        return false;
    uint64_t shuffled = value - ((uint64_t)FIRST << LOW_BITS);
    *ret = (shuffled + ALIASES - OFFSET) % ALIASES * INVERSE % ALIASES;
    return true;
}
