/* SPDX-License-Identifier: MIT */
/* An empty value is most often a variable of a script that was not set: better said than taken. */
#include "cli/options/option_text.h"

#include <errno.h>

#include "base/parse.h"

#define SECOND_MS 1000

int option_text(const char *what, const char *value, const char **ret, struct error *err)
{
    if (value[0] == '\0')
        return error_set(err, -EINVAL, "%s: the value is empty", what);
    *ret = value;
    return 0;
}

int option_expiry(const char *what, const char *value, int64_t *ret_ms, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(value, what, &ms, err);
    if (r == 0 && ms < SECOND_MS)
        return error_set(err, -EINVAL, "%s: '%.60s' is less than a second", what, value);
    if (r == 0)
        *ret_ms = ms;
    return r;
}
