/* SPDX-License-Identifier: MIT */
/*
 * What one side may write, the other can read, and what record_check() says of it before it is written is
 * true. For every field of every record type of src/: at its limit it comes back, with one more it is
 * refused, and then it is that field alone which is missing from what can still be taken.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "record_fill.h"
#include "record_tables.h"
#include "unit_test.h"

#define FIELD_HEADER_SIZE 8U

/* The object, encoded and decoded; the caller frees both. */
static int pass(const struct record_type *type, const void *object, void *back, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    return record_decode_partly(type, bytes.bytes, bytes.length, back, err);
}

/* Encoding and decoding have the same limits. */
static void assert_checked(
    const struct record_type *type, const void *object, int expected, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_free_ void *back = xcalloc(1, type->size);
    record_encode(type, object, &bytes);
    int decoded = record_decode(type, bytes.bytes, bytes.length, back, &(struct error){ 0 });
    record_clear(type, back);
    assert_int_equal(record_check(type, object, err), expected);
    assert_int_equal(decoded, expected);
}

static void check_field(const struct record_type *type, const struct record_field *field)
{
    _cleanup_free_ void *object = xcalloc(1, type->size), *back = xcalloc(1, type->size);
    void *member = (char *)object + field->offset;
    struct error err = { 0 };
    record_fill_field(field, member, field->limit);
    assert_checked(type, object, 0, &err);
    record_clear(type, object);

    record_fill_field(field, member, field->limit + 1U);
    assert_checked(type, object, -EBADMSG, &err);
    assert_non_null(strstr(err.message, field->name));
    /* The first number of a message says what it is about. */
    if (type->fields[0].kind == RECORD_U64)
        *(uint64_t *)((char *)object + type->fields[0].offset) = 7;
    err = (struct error){ 0 };
    assert_int_equal(pass(type, object, back, &err), 1);
    assert_non_null(strstr(err.message, field->name));
    if (type->fields[0].kind == RECORD_U64)
        assert_true(*(uint64_t *)((char *)back + type->fields[0].offset) == 7);
    record_clear(type, object);
    _cleanup_buffer_ struct buffer left = { 0 }, without = { 0 };
    if (type->fields[0].kind == RECORD_U64)
        *(uint64_t *)((char *)object + type->fields[0].offset) = 7;
    record_encode(type, back, &left);
    record_encode(type, object, &without);
    assert_int_equal(left.length, without.length);
    assert_memory_equal(left.bytes, without.bytes, without.length);
    record_clear(type, back);
}

/* Fields of nested records as well. */
static void each_field(const struct record_type *type,
    void (*visit)(const struct record_type *type, const struct record_field *field))
{
    for (size_t i = 0; i < type->n_fields; i++) {
        visit(type, &type->fields[i]);
        if (type->fields[i].sub != NULL)
            each_field(type->fields[i].sub, visit);
    }
}

static void each_field_of_all(void (*visit)(const struct record_type *type, const struct record_field *field))
{
    assert_true(record_tables_count > 80);
    for (size_t i = 0; i < record_tables_count; i++)
        each_field(record_tables[i], visit);
}

static void check_limit(const struct record_type *type, const struct record_field *field)
{
    if (record_fill_is_limited(field))
        check_field(type, field);
}

TEST(every_field_is_read_at_its_limit_and_left_out_above_it)
{
    each_field_of_all(check_limit);
}

static size_t size_of(enum record_kind kind)
{
    switch (kind) {
    case RECORD_BOOL: return sizeof(bool);
    case RECORD_U32:
    case RECORD_MILLI:
    case RECORD_I32: return sizeof(uint32_t);
    case RECORD_STRING: return sizeof(char *);
    case RECORD_STRINGS:
    case RECORD_ENV: return sizeof(struct strings);
    case RECORD_LIST: return sizeof(struct record_list);
    case RECORD_PACKED: return sizeof(struct record_bytes);
    default: return sizeof(uint64_t);
    }
}

/* Of two fields with one tag the second overwrites the first, and so it does with one member. */
static void check_place(const struct record_type *type, const struct record_field *field)
{
    size_t end = field->offset + size_of(field->kind);
    bool has_sub = field->kind == RECORD_LIST || field->kind == RECORD_PACKED;
    if (end > type->size)
        fail_msg("%s: %s ends behind the struct", type->name, field->name);
    if ((field->limit > 0) != record_fill_is_limited(field) || (field->sub != NULL) != has_sub)
        fail_msg(
            "%s: %s has a limit or a type that its kind does not have, or none", type->name, field->name);
    for (const struct record_field *other = type->fields; other < field; other++)
        if (other->tag == field->tag ||
            (other->offset < end && field->offset < other->offset + size_of(other->kind)))
            fail_msg("%s: %s and %s have one tag or place", type->name, other->name, field->name);
}

TEST(every_field_has_a_tag_and_a_place_of_its_own)
{
    each_field_of_all(check_place);
}

/* With one item in each list, which stays below the limit of a whole record. */
TEST(the_largest_values_of_all_fields_come_back)
{
    for (size_t i = 0; i < record_tables_count; i++) {
        const struct record_type *type = record_tables[i];
        _cleanup_free_ void *object = xcalloc(1, type->size), *back = xcalloc(1, type->size);
        _cleanup_buffer_ struct buffer bytes = { 0 }, again = { 0 };
        struct error err = { 0 };
        record_fill(type, FILL_WHOLE, 1, object);
        record_encode(type, object, &bytes);
        if (record_check(type, object, &err) < 0 ||
            record_decode(type, bytes.bytes, bytes.length, back, &err) < 0)
            fail_msg("%s: %s", type->name, err.message);
        record_encode(type, back, &again);
        assert_int_equal(again.length, bytes.length);
        assert_memory_equal(again.bytes, bytes.bytes, bytes.length);
        record_clear(type, object);
        record_clear(type, back);
    }
}

/* Records that would be too long with all fields at their limits, and what keeps them shorter. */
static const struct {
    const char *name, *why;
} longer[] = {
    { "GPU report", "gpu_processes_share(): the processes of all GPUs have a limit of their own" },
    { "GPUS", "a frame goes without its spare fields (wire_message)" },
    { "HELLO", "a frame goes without its spare fields (wire_message)" },
    { "LAUNCH", "a frame goes without its spare fields (wire_message)" },
    { "PREPARE", "a frame goes without its spare fields (wire_message)" },
    { "job event", "core_change(): record_copy_readable() leaves out its nodes" },
    { "nodes", "they are those of an event" },
    { "earlier attempt", "its ranks are those of an event" },
    { "step", "a job has at most ASK_GPUS_MAX GPUs on all nodes, which its gpu_places name" },
    { "steps", "the concern for steps lets one wait while the row would be too long" },
    { "user answer", "no entry of the user database is longer than one of its texts may be" },
};

static uint64_t size_max(const struct record_type *type)
{
    uint64_t size = 0;
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct record_field *field = &type->fields[i];
        size += FIELD_HEADER_SIZE;
        if (field->kind == RECORD_LIST)
            size += field->limit * (FIELD_HEADER_SIZE + size_max(field->sub));
        else if (field->kind == RECORD_PACKED)
            size += FIELD_HEADER_SIZE + size_max(field->sub);
        else
            size += record_fill_is_limited(field) ? field->limit : size_of(field->kind);
    }
    return size;
}

static bool may_be_longer(const struct record_type *type)
{
    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++)
        if (strcmp(longer[i].name, type->name) == 0)
            return true;
    return false;
}

TEST(what_all_fields_permit_fits_into_a_record)
{
    for (size_t i = 0; i < record_tables_count; i++) {
        uint64_t size = size_max(record_tables[i]);
        if ((size > RECORD_BODY_MAX) != may_be_longer(record_tables[i]))
            fail_msg("%s has up to %" PRIu64 " bytes; a record has at most %u", record_tables[i]->name, size,
                RECORD_BODY_MAX);
    }
}
