/* SPDX-License-Identifier: MIT */
#include "record_fill.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

bool record_fill_is_limited(const struct record_field *field)
{
    return field->kind == RECORD_STRING || field->kind == RECORD_STRINGS || field->kind == RECORD_ENV ||
           field->kind == RECORD_LIST;
}

void record_fill_field(const struct record_field *field, void *member, size_t size)
{
    switch (field->kind) {
    case RECORD_STRING: {
        char *text = xcalloc(1, size + 1);
        memset(text, 'x', size);
        *(char **)member = text;
        return;
    }
    case RECORD_STRINGS:
    case RECORD_ENV: { // two of them; each has a NUL that counts
        _cleanup_free_ char *text = xcalloc(1, size + 1);
        memset(text, 'x', size - 3);
        text[1] = '=';
        strings_add(member, text);
        strings_add(member, "y");
        return;
    }
    case RECORD_LIST:
        *(struct record_list *)member = (struct record_list){ xcalloc(size, field->sub->size), size };
        return;
    default: assert(!"a field without a limit");
    }
}

static void fill_list(
    const struct record_field *field, enum record_filling filling, size_t items_max, struct record_list *list)
{
    record_fill_field(field, list, field->limit < items_max ? field->limit : items_max);
    for (size_t i = 0; i < list->count; i++)
        record_fill(field->sub, filling, items_max, (char *)list->items + i * field->sub->size);
}

static void fill_packed(
    const struct record_field *field, enum record_filling filling, size_t items_max, void *member)
{
    _cleanup_free_ void *object = xcalloc(1, field->sub->size);
    record_fill(field->sub, filling, items_max, object);
    record_pack(field->sub, object, member);
    record_clear(field->sub, object);
}

void record_fill(const struct record_type *type, enum record_filling filling, size_t items_max, void *object)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        void *member = (char *)object + field->offset;
        if (filling == FILL_BARE && field->is_spare)
            continue;
        switch (field->kind) {
        case RECORD_BOOL: *(bool *)member = true; break;
        case RECORD_U32:
        case RECORD_MILLI:
        case RECORD_I32: memset(member, 0xff, 4); break;
        case RECORD_U64:
        case RECORD_I64:
        case RECORD_SIZE:
        case RECORD_DURATION:
        case RECORD_TIME: memset(member, 0xff, 8); break;
        case RECORD_LIST: fill_list(field, filling, items_max, member); break;
        case RECORD_PACKED: fill_packed(field, filling, items_max, member); break;
        case RECORD_STRING:
        case RECORD_STRINGS:
        case RECORD_ENV: record_fill_field(field, member, field->limit); break;
        }
    }
}
