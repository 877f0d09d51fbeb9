/* SPDX-License-Identifier: MIT */
/* An empty value is usually an unset variable of a script, so it is rejected. */
#include "base/option_values.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parse.h"

#define SECOND_MS 1000

struct option_name option_name_of(const struct option_row *row)
{
    struct option_name name;
    if (row->letter != 0)
        (void)snprintf(name.text, sizeof(name.text), "-%c", row->letter);
    else
        (void)snprintf(name.text, sizeof(name.text), "--%s", row->name);
    return name;
}

void *option_member(void *target, const struct option_row *row)
{
    return (char *)(row->is_inner ? *(void **)target : target) + row->member;
}

int option_set_flag(void *target, const struct option_row *row, const char *value, struct error *err)
{
    *(bool *)option_member(target, row) = value == NULL || strcmp(value, "true") == 0;
    return 0;
}

int option_set_word(void *target, const struct option_row *row, const char *value, struct error *err)
{
    *(const char **)option_member(target, row) = value;
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
    return option_text(option_name_of(row).text, value, option_member(target, row), err);
}

int option_set_copy(void *target, const struct option_row *row, const char *value, struct error *err)
{
    char **field = option_member(target, row);
    free(*field);
    *field = xstrdup(value);
    return 0;
}

int option_on_off(const char *what, const char *value, bool *ret, struct error *err)
{
    bool is_on = strcmp(value, "on") == 0;
    if (!is_on && strcmp(value, "off") != 0) {
        (void)error_set(err, -EINVAL, "%s: invalid value '%.40s'", what, value);
        return error_hint(err, "use on or off");
    }
    *ret = is_on;
    return 0;
}

int option_set_on_off(void *target, const struct option_row *row, const char *value, struct error *err)
{
    return option_on_off(option_name_of(row).text, value, option_member(target, row), err);
}

int option_path(const char *what, const char *value, char **field, struct error *err)
{
    char here[PATH_MAX];
    if (value[0] == '\0')
        return error_set(err, -EINVAL, "%s is empty", what);
    if (value[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        return error_set_errno(
            err, -errno, "%s: %s is relative, and there is no working directory", what, value);
    char *path = value[0] == '/' ? xstrdup(value) : xasprintf("%s/%s", here, value);
    free(*field);
    *field = path;
    return 0;
}

int option_set_path(void *target, const struct option_row *row, const char *value, struct error *err)
{
    return option_path(option_name_of(row).text, value, option_member(target, row), err);
}

int option_set_library(void *target, const struct option_row *row, const char *value, struct error *err)
{
    if (strcmp(value, "auto") != 0)
        return option_set_path(target, row, value, err);
    free(take_ptr(*(char **)option_member(target, row)));
    return 0;
}

int option_set_integer(void *target, const struct option_row *row, const char *value, struct error *err)
{
    return parse_integer(
        value, option_name_of(row).text, row->least, row->most, option_member(target, row), err);
}

int option_set_count(void *target, const struct option_row *row, const char *value, struct error *err)
{
    int64_t number = 0;
    int r = parse_integer(value, option_name_of(row).text, row->least, row->most, &number, err);
    if (r == 0)
        *(uint32_t *)option_member(target, row) = (uint32_t)number;
    return r;
}

static bool is_zero_word(const struct option_row *row, const char *value)
{
    return row->key != NULL && strcmp(value, row->key) == 0;
}

int option_set_duration(void *target, const struct option_row *row, const char *value, struct error *err)
{
    int64_t *ms = option_member(target, row);
    if (!is_zero_word(row, value))
        return parse_duration(value, option_name_of(row).text, ms, err);
    *ms = 0;
    return 0;
}

int option_set_size(void *target, const struct option_row *row, const char *value, struct error *err)
{
    uint64_t *bytes = option_member(target, row);
    if (!is_zero_word(row, value))
        return parse_size(value, option_name_of(row).text, bytes, err);
    *bytes = 0;
    return 0;
}

int option_set_expiry(void *target, const struct option_row *row, const char *value, struct error *err)
{
    const struct option_name name = option_name_of(row);
    int64_t ms = 0;
    int r = parse_duration(value, name.text, &ms, err);
    if (r == 0 && ms < SECOND_MS)
        return error_set(err, -EINVAL, "%s: '%.60s' is less than a second", name.text, value);
    if (r == 0)
        *(int64_t *)option_member(target, row) = ms;
    return r;
}
