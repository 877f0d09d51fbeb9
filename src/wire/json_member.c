/* SPDX-License-Identifier: MIT */
#include "wire/json_member.h"

#include "wire/json_record.h"

/* NULL: it is omitted. */
static json_t *value_of(const struct json_table *table, const struct json_member *member, const void *view)
{
    if (member->needs != 0 && !table->has(view, member->needs))
        return member->is_optional ? NULL : json_null();
    const char *in = view;
    if (member->through != 0)
        in = *(const char *const *)(in + member->through - 1);
    if (in == NULL)
        return json_null();
    const void *at = in + member->field.offset;
    if (member->items != NULL)
        return json_table_write_list(member->items, at);
    return member->make != NULL ? member->make(at) : json_record_answer(&member->field, in);
}

void json_table_add(const struct json_table *table, const void *view, struct json_members *to)
{
    for (size_t i = 0; i < table->count; i++) {
        json_t *value = value_of(table, &table->members[i], view);
        if (value != NULL)
            json_members_add(to, table->members[i].name, value);
    }
}

json_t *json_table_write(const struct json_table *table, const void *view)
{
    struct json_members members = { .tree = json_object() };
    json_table_add(table, view, &members);
    return members.tree;
}

json_t *json_table_write_list(const struct json_table *table, const struct record_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++)
        (void)json_array_append_new(
            array, json_table_write(table, (const char *)list->items + i * table->size));
    return array;
}

json_t *json_form_place(const void *number)
{
    int32_t place = *(const int32_t *)number;
    return place >= 0 ? json_integer(place) : json_null();
}

json_t *json_form_flag(const void *number)
{
    return json_boolean(*(const uint32_t *)number != 0);
}
