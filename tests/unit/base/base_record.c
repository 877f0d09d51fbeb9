/* SPDX-License-Identifier: MIT */
/* Structs as bytes: decoding restores what was encoded, and no torn or forged sequence of bytes does harm. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/record.h"
#include "base/record_dense.h"
#include "base/record_equal.h"
#include "unit_test.h"

struct part {
    uint32_t index;
    char *label;
};
static const struct record_field part_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct part, index, 0),
    RECORD_FIELD(2, RECORD_STRING, struct part, label, 16),
};
static const struct record_type part_record = RECORD_TYPE(901, "part", struct part, part_fields);

struct whole {
    bool flag;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    int64_t i64;
    uint64_t bytes;
    char *text;
    struct strings words;
    struct strings env;
    struct record_list parts;
};
static const struct record_field whole_fields[] = {
    RECORD_FIELD(1, RECORD_BOOL, struct whole, flag, 0),
    RECORD_FIELD(2, RECORD_U32, struct whole, u32, 0),
    RECORD_FIELD(3, RECORD_I32, struct whole, i32, 0),
    RECORD_FIELD(4, RECORD_U64, struct whole, u64, 0),
    RECORD_FIELD(5, RECORD_I64, struct whole, i64, 0),
    RECORD_FIELD(6, RECORD_SIZE, struct whole, bytes, 0),
    RECORD_FIELD(7, RECORD_STRING, struct whole, text, 16),
    RECORD_FIELD(8, RECORD_STRINGS, struct whole, words, 32),
    RECORD_FIELD(9, RECORD_ENV, struct whole, env, 32),
    RECORD_SUBLIST(10, struct whole, parts, 3, &part_record),
};
static const struct record_type whole_record = RECORD_TYPE(902, "whole", struct whole, whole_fields);

/* The same type as an older program knows it: some fields are missing. */
static const struct record_field old_fields[] = {
    RECORD_FIELD(2, RECORD_U32, struct whole, u32, 0),
};
static const struct record_type old_record = RECORD_TYPE(902, "whole", struct whole, old_fields);

static void fill(struct whole *whole, size_t n_parts)
{
    *whole = (struct whole){
        .flag = true, .u32 = UINT32_MAX, .i32 = INT32_MIN, .u64 = UINT64_MAX, .i64 = INT64_MIN, .bytes = 1
    };
    whole->text = xstrdup("text");
    strings_add(&whole->words, "");
    strings_add(&whole->words, "two words");
    strings_add(&whole->env, "A=b");
    whole->parts.items = xcalloc(n_parts, sizeof(struct part));
    whole->parts.count = n_parts;
    for (size_t i = 0; i < n_parts; i++)
        ((struct part *)whole->parts.items)[i] = (struct part){ (uint32_t)i + 1, xstrdup("part") };
}

static void assert_filled(const struct whole *whole)
{
    assert_true(whole->flag);
    assert_int_equal(whole->u32, UINT32_MAX);
    assert_int_equal(whole->i32, INT32_MIN);
    assert_true(whole->u64 == UINT64_MAX && whole->i64 == INT64_MIN && whole->bytes == 1);
    assert_string_equal(whole->text, "text");
    assert_int_equal(whole->words.count, 2);
    assert_string_equal(whole->words.items[0], "");
    assert_string_equal(whole->words.items[1], "two words");
    assert_null(whole->words.items[2]);
    assert_string_equal(whole->env.items[0], "A=b");
    assert_int_equal(whole->parts.count, 2);
    const struct part *parts = whole->parts.items;
    assert_int_equal(parts[1].index, 2);
    assert_string_equal(parts[1].label, "part");
}

typedef void (*encode_fn)(const struct record_type *type, const void *object, struct buffer *out);
static encode_fn encode_form = record_encode; // of the tests of both forms

static void encode(struct buffer *bytes, size_t n_parts)
{
    struct whole whole;
    fill(&whole, n_parts);
    encode_form(&whole_record, &whole, bytes);
    record_clear(&whole_record, &whole);
}

TEST(every_kind_of_field_comes_back)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct whole back;
    encode(&bytes, 2);
    assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_filled(&back);
    record_clear(&whole_record, &back);
    assert_null(back.text);
}

TEST(an_empty_record_is_header_and_checksum_only)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    const struct whole empty = { 0 };
    struct whole back;
    record_encode(&whole_record, &empty, &bytes);
    assert_int_equal(bytes.length, RECORD_HEADER_SIZE + RECORD_CRC_SIZE);
    assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_null(back.text);
    assert_int_equal(back.parts.count, 0);
}

TEST(an_unknown_field_is_passed_over)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct whole back;
    encode(&bytes, 2);
    assert_int_equal(record_decode(&old_record, bytes.bytes, bytes.length, &back, NULL), 0);
    assert_int_equal(back.u32, UINT32_MAX);
    assert_null(back.text);
}

TEST(a_field_that_is_taken_out_might_never_have_been_there)
{
    static const uint16_t tags[] = { 1, 7, 10, 99 };
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        _cleanup_buffer_ struct buffer cut = { 0 }, without = { 0 };
        struct whole whole;
        encode(&cut, 2);
        record_cut(&cut, tags[i]);
        fill(&whole, 2);
        whole.flag = tags[i] != 1; // record_clear() skips members that own nothing
        for (size_t f = 0; f < whole_record.n_fields; f++)
            if (whole_fields[f].tag == tags[i]) {
                const struct record_type one = { .size = 0, .fields = &whole_fields[f], .n_fields = 1 };
                record_clear(&one, &whole);
            }
        record_encode(&whole_record, &whole, &without);
        assert_int_equal(cut.length, without.length);
        assert_memory_equal(cut.bytes, without.bytes, cut.length);
        record_clear(&whole_record, &whole);
    }
}

TEST(every_cut_is_noticed)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    encode(&bytes, 2);
    for (size_t length = 0; length < bytes.length; length++) {
        struct whole back;
        _cleanup_free_ uint8_t *copy = xcalloc(length, 1); // exact size: a read beyond it is caught
        memcpy(copy, bytes.bytes, length);
        assert_int_equal(record_decode(&whole_record, copy, length, &back, NULL), -EBADMSG);
        assert_null(back.text);
    }
}

TEST(every_flipped_bit_is_noticed)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    encode(&bytes, 2);
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        struct whole back;
        bytes.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, NULL), -EBADMSG);
        bytes.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
}

/* Puts the right checksum on changed bytes, as an attacker would. */
static void seal(struct buffer *bytes)
{
    size_t covered = bytes->length - RECORD_CRC_SIZE;
    uint32_t crc = crc32c(0, bytes->bytes, covered);
    for (size_t i = 0; i < RECORD_CRC_SIZE; i++)
        bytes->bytes[covered + i] = (uint8_t)(crc >> (8 * i));
}

enum { HEADER_MIN = 3 }; // of the dense form: its mark and the type's id

TEST(forged_bytes_with_a_true_checksum_do_no_harm)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    encode(&bytes, 2);
    uint32_t random = 1;
    for (int round = 0; round < 20000; round++) {
        _cleanup_buffer_ struct buffer forged = { 0 };
        buffer_append(&forged, bytes.bytes, bytes.length);
        for (int change = 0; change < 3; change++) {
            random = random * 1664525U + 1013904223U;
            size_t at = HEADER_MIN + (random >> 8) % (bytes.length - HEADER_MIN - RECORD_CRC_SIZE);
            forged.bytes[at] = (uint8_t)random;
        }
        seal(&forged);
        struct whole back;
        if (record_decode(&whole_record, forged.bytes, forged.length, &back, NULL) == 0)
            record_clear(&whole_record, &back);
    }
}

TEST(another_type_is_refused_by_name)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct part part;
    struct error err = { 0 };
    encode(&bytes, 2);
    assert_int_equal(record_decode(&part_record, bytes.bytes, bytes.length, &part, &err), -EBADMSG);
    assert_non_null(strstr(err.message, "part"));
}

TEST(a_text_over_its_limit_is_refused)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char text[] = "seventeen letters";
    const struct whole whole = { .text = text };
    struct whole back;
    struct error err = { 0 };
    encode_form(&whole_record, &whole, &bytes);
    assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, &err), -EBADMSG);
    assert_non_null(strstr(err.message, "text"));
}

TEST(what_must_be_read_again_is_written_without_what_could_not_be)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char text[] = "seventeen letters", word[] = "kept";
    char *words[] = { word };
    const struct whole whole = { .u64 = 7, .text = text, .words = { words, 1 } };
    struct whole back;
    struct error err = { 0 };
    assert_int_equal(record_encode_readable(&whole_record, &whole, &bytes, &err), 1);
    assert_non_null(strstr(err.message, "text"));
    assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, &err), 0);
    assert_true(back.u64 == 7);
    assert_null(back.text);
    assert_string_equal(back.words.items[0], "kept");
    record_clear(&whole_record, &back);
}

/* Each field is within its limit, and all of them together are too long for a record. */
TEST(of_what_is_too_long_the_longest_field_is_left_out)
{
    enum { HALF = RECORD_BODY_MAX / 2 };
    struct sum {
        uint64_t number;
        char *shorter, *longer;
    };
    static const struct record_field sum_fields[] = {
        RECORD_FIELD(1, RECORD_STRING, struct sum, shorter, RECORD_BODY_MAX),
        RECORD_FIELD(2, RECORD_STRING, struct sum, longer, RECORD_BODY_MAX),
        RECORD_FIELD(3, RECORD_U64, struct sum, number, 0),
    };
    static const struct record_type sum_record = RECORD_TYPE(903, "sum", struct sum, sum_fields);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_free_ char *shorter = xcalloc(1, HALF + 1U), *longer = xcalloc(1, HALF + 2U);
    const struct sum sum = {
        .number = 7, .shorter = memset(shorter, 'x', HALF), .longer = memset(longer, 'y', HALF + 1U)
    };
    struct sum back;
    struct error err = { 0 };
    assert_int_equal(record_encode_readable(&sum_record, &sum, &bytes, &err), 1);
    assert_non_null(strstr(err.message, "too long"));
    assert_int_equal(record_decode(&sum_record, bytes.bytes, bytes.length, &back, &err), 0);
    assert_true(back.number == 7);
    assert_string_equal(back.shorter, shorter);
    assert_null(back.longer);
    record_clear(&sum_record, &back);
}

TEST(a_list_over_its_limit_is_refused)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct whole back;
    encode(&bytes, 4);
    assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, NULL), -EBADMSG);
    assert_null(back.parts.items);
}

TEST(bytes_after_the_record_are_refused)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct whole back;
    encode(&bytes, 1);
    buffer_append_text(&bytes, "x");
    assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, NULL), -EBADMSG);
}

TEST(peeking_tells_length_and_type_once_the_header_is_there)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    uint16_t id = 0;
    size_t length = 99;
    encode(&bytes, 1);
    assert_int_equal(record_peek(bytes.bytes, RECORD_HEADER_SIZE - 1, 1000, &id, &length), 0);
    assert_int_equal(length, 0);
    assert_int_equal(record_peek(bytes.bytes, RECORD_HEADER_SIZE, 1000, &id, &length), 0);
    assert_int_equal(length, bytes.length);
    assert_int_equal(id, 902);
    assert_int_equal(record_peek(bytes.bytes, bytes.length, bytes.length - 1, &id, &length), -EBADMSG);
    assert_int_equal(record_peek("GET / HTTP/1.1\r\n", 16, 1000, &id, &length), -EBADMSG);
}

TEST(a_copy_shares_nothing)
{
    struct whole whole, copy;
    fill(&whole, 2);
    record_copy(&whole_record, &copy, &whole);
    record_clear(&whole_record, &whole);
    assert_filled(&copy);
    record_clear(&whole_record, &copy);
}

/* Walks the fields: each of them makes a difference. */
TEST(records_are_equal_when_all_of_their_fields_are)
{
    struct whole one, other;
    fill(&one, 2);
    record_copy(&whole_record, &other, &one);
    assert_true(record_equal(&whole_record, &one, &other));
    for (size_t i = 0; i < whole_record.n_fields; i++) {
        const struct record_field *field = &whole_fields[i];
        struct whole changed = other; // borrowed
        void *member = (char *)&changed + field->offset;
        struct part parts[] = { { .index = 1 }, { .index = 2 } }; // but for their labels
        char first[] = "", second[] = "three words", *words[] = { first, second, NULL };
        if (field->kind == RECORD_STRING)
            *(char **)member = NULL;
        else if (field->kind == RECORD_STRINGS)
            ((struct strings *)member)->items = words;
        else if (field->kind == RECORD_ENV)
            ((struct strings *)member)->count = 0;
        else if (field->kind == RECORD_LIST)
            *(struct record_list *)member = (struct record_list){ parts, 2 };
        else
            *(unsigned char *)member ^= 1;
        assert_false(record_equal(&whole_record, &one, &changed));
    }
    record_clear(&whole_record, &one);
    record_clear(&whole_record, &other);
}

static int use_dense_form(void **state)
{
    encode_form = record_encode_dense;
    return 0;
}

/* Each at the ends of its digits. */
static void a_number_of_any_length_comes_back_from_the_dense_form(void **state)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        _cleanup_buffer_ struct buffer bytes = { 0 }, binary = { 0 };
        const struct whole whole = { .u64 = 1ULL << bit, .i64 = -(int64_t)((1ULL << bit) - 1), .i32 = -1 };
        struct whole back;
        record_encode_dense(&whole_record, &whole, &bytes);
        record_encode(&whole_record, &whole, &binary);
        assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, NULL), 0);
        assert_true(back.u64 == whole.u64 && back.i64 == whole.i64 && back.i32 == -1);
        assert_true(bytes.length < binary.length);
    }
}

/* One more digit than 64 bits have, and a length that only its overflow makes short. */
static void forged_lengths_of_the_dense_form_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } fields[] = {
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 },
        { "\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 12 },
        { "\x0f\x05text", 6 },
        { "\x15\x02\x05\x02", 4 },
        { "\x09\x01x", 3 },
        { "\x0e\x01", 2 },
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        _cleanup_buffer_ struct buffer bytes = { 0 };
        struct whole back;
        buffer_append(&bytes, "\xd1\x86\x07", 3); // 902
        buffer_append(&bytes, fields[i].bytes, fields[i].length);
        buffer_append(&bytes, "    ", RECORD_CRC_SIZE);
        seal(&bytes);
        struct error err = { 0 };
        assert_int_equal(record_decode(&whole_record, bytes.bytes, bytes.length, &back, &err), -EBADMSG);
        assert_null(strstr(err.message, "checksum"));
    }
}

int main(void)
{
    static const struct CMUnitTest dense[] = {
        cmocka_unit_test(every_kind_of_field_comes_back),
        cmocka_unit_test(an_unknown_field_is_passed_over),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(forged_bytes_with_a_true_checksum_do_no_harm),
        cmocka_unit_test(another_type_is_refused_by_name),
        cmocka_unit_test(a_text_over_its_limit_is_refused),
        cmocka_unit_test(a_list_over_its_limit_is_refused),
        cmocka_unit_test(bytes_after_the_record_are_refused),
        cmocka_unit_test(a_number_of_any_length_comes_back_from_the_dense_form),
        cmocka_unit_test(forged_lengths_of_the_dense_form_are_refused),
    };
    int failed = unit_tests_run(NULL, NULL);
    return failed + cmocka_run_group_tests(dense, use_dense_form, NULL);
}
