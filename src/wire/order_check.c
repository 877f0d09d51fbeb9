/* SPDX-License-Identifier: MIT */
/*
 * The check uses the field tables, so it covers every new field. Further restrictions are checked where an
 * order is carried out: the user by agent/host/job_user.h, the attempt by its token.
 */
#include "wire/order_check.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "job/ask.h"

static bool is_time(enum record_kind kind)
{
    return kind == RECORD_I64 || kind == RECORD_DURATION || kind == RECORD_TIME;
}

static int check_time(const struct record_field *field, int64_t *ms, struct error *err)
{
    int64_t found = *ms;
    if (found >= 0 && found <= ASK_YEAR_9999_MS)
        return 0;
    *ms = 0;
    return error_set(
        err, -ERANGE, "field %s: %lld ms is not between 0 and the year 9999", field->name, (long long)found);
}

static int check_list(const struct record_field *field, const struct record_list *list, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < list->count; i++)
        if (order_check(field->sub, (char *)list->items + i * field->sub->size, r == 0 ? err : NULL) < 0)
            r = -ERANGE;
    return r;
}

int order_check(const struct record_type *type, void *message, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        void *member = (char *)message + field->offset;
        struct error *first = r == 0 ? err : NULL;
        if ((is_time(field->kind) && check_time(field, member, first) < 0) ||
            (field->kind == RECORD_LIST && check_list(field, member, first) < 0))
            r = -ERANGE;
    }
    return r;
}
