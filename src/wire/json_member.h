/* SPDX-License-Identifier: MIT */
/*
 * The members of an object of the API, a row each: what its documentation says, and where its value comes
 * from. The same table writes the object and describes it in the OpenAPI document (controller/api/answers.c).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/record.h"
#include "wire/json_append.h"

struct json_member {
    const char *name, *type, *help; // the type as in controller/api/answers.h
    size_t through; // 1 + offset of the pointer in the view to the struct that has it: NULL is null;
                    // 0: the view has it
    struct record_field field;       // the member of that struct; a 0 or NULL is null (json_record_answer)
    json_t *(*make)(const void *at); // the form of what is there, if it is not that of its kind
    uint32_t needs;                  // bits without which it is null, or omitted: `has` of the table
    bool is_optional;                // not always there
    const struct json_table *items;  // of a struct record_list: what writes each
};

struct json_table {
    const struct json_member *members;
    size_t count, size; // of the members, and of what they describe
    bool (*has)(const void *view, uint32_t needs);
};

#define JSON_TABLE(struct_, members_, ...)                                                                   \
    {                                                                                                        \
        .members = (members_), .count = sizeof(members_) / sizeof((members_)[0]),                            \
        .size = sizeof(struct struct_), __VA_ARGS__                                                          \
    }

/* The end of a row: a pointer that it follows, and a member as it is (its kind, and more of the field), or in
 * another form. */
#define JSON_THROUGH(struct_, pointer_) .through = 1 + offsetof(struct struct_, pointer_)
#define JSON_FIELD(struct_, member_, ...)                                                                    \
    .field = { .offset = offsetof(struct struct_, member_), .kind = RECORD_##__VA_ARGS__ }
#define JSON_FORM(struct_, member_, form_)                                                                   \
    .field = { .offset = offsetof(struct struct_, member_) }, .make = (form_)
#define JSON_LIST(struct_, member_, table_)                                                                  \
    .field = { .offset = offsetof(struct struct_, member_) }, .items = (table_)

void json_table_add(const struct json_table *table, const void *view, struct json_members *to);

/* The object. The caller owns the result. */
json_t *json_table_write(const struct json_table *table, const void *view);

/* An array of such objects. The caller owns the result. */
json_t *json_table_write_list(const struct json_table *table, const struct record_list *list);

/* Forms of members. */
json_t *json_form_place(const void *number); // int32_t; negative: null
json_t *json_form_flag(const void *number);  // uint32_t: true or false
