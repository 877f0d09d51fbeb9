/* SPDX-License-Identifier: MIT */
/* An empty value is most often a variable of a script that was not set: better said than taken. */
#include "cli/option_text.h"

#include <errno.h>

int option_text(const char *what, const char *value, const char **ret, struct error *err)
{
    if (value[0] == '\0')
        return error_set(err, -EINVAL, "%s: the value is empty", what);
    *ret = value;
    return 0;
}
