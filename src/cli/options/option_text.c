/* SPDX-License-Identifier: MIT */
/* An empty value is most often a variable of a script that was not set: better said than taken. */
#include "cli/options/option_text.h"

#include <errno.h>
#include <stdio.h>

#include "base/parse.h"
#include "cli/options/call.h"

#define SECOND_MS 1000

void *option_member(void *target, const struct option_row *row)
{
    return (char *)((struct call *)target)->options + row->member;
}

/* "-u", else "--user". */
static const char *name_of(const struct option_row *row, char name[64])
{
    if (row->letter != 0)
        (void)snprintf(name, 64, "-%c", row->letter);
    else
        (void)snprintf(name, 64, "--%s", row->name);
    return name;
}

int option_set_flag(void *target, const struct option_row *row, const char *value, struct error *err)
{
    (void)value, (void)err;
    *(bool *)option_member(target, row) = true;
    return 0;
}

int option_text(const char *what, const char *value, const char **ret, struct error *err)
{
    if (value[0] == '\0')
        return error_set(err, -EINVAL, "%s: the value is empty", what);
    *ret = value;
    return 0;
}

int option_set_text(void *target, const struct option_row *row, const char *value, struct error *err)
{
    char name[64];
    return option_text(name_of(row, name), value, option_member(target, row), err);
}

int option_set_expiry(void *target, const struct option_row *row, const char *value, struct error *err)
{
    char name[64];
    int64_t ms = 0;
    int r = parse_duration(value, name_of(row, name), &ms, err);
    if (r == 0 && ms < SECOND_MS)
        return error_set(err, -EINVAL, "%s: '%.60s' is less than a second", name, value);
    if (r == 0)
        *(int64_t *)option_member(target, row) = ms;
    return r;
}
