/* SPDX-License-Identifier: MIT */
/* The field tables of all messages of the link as JSON, for tests that speak it. */
#include <stdio.h>

#include "wire/message.h"

static const char *kind_name(enum record_kind kind)
{
    switch (kind) {
    case RECORD_BOOL: return "bool";
    case RECORD_U32:
    case RECORD_MILLI: return "u32";
    case RECORD_I32: return "i32";
    case RECORD_U64:
    case RECORD_SIZE: return "u64";
    case RECORD_I64:
    case RECORD_DURATION:
    case RECORD_TIME: return "i64";
    case RECORD_STRING: return "string";
    case RECORD_STRINGS:
    case RECORD_ENV: return "strings";
    case RECORD_LIST:
    case RECORD_PACKED: return "list"; // of one
    }
    return "?";
}

static void print_fields(const struct record_type *type)
{
    (void)putchar('[');
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        (void)printf("%s{\"tag\":%u,\"kind\":\"%s\",\"name\":\"%s\",\"limit\":%u", i > 0 ? "," : "",
            field->tag, kind_name(field->kind), field->name, field->limit);
        if (field->sub != NULL) {
            (void)printf(",\"fields\":");
            print_fields(field->sub);
        }
        (void)putchar('}');
    }
    (void)putchar(']');
}

int main(void)
{
    const char *separator = "";
    (void)putchar('{');
    for (unsigned id = 0; id <= UINT16_MAX; id++) {
        const struct record_type *type = message_type((uint16_t)id);
        if (type == NULL)
            continue;
        (void)printf("%s\"%s\":{\"id\":%u,\"fields\":", separator, type->name, id);
        print_fields(type);
        (void)putchar('}');
        separator = ",\n";
    }
    (void)puts("}");
    return 0;
}
