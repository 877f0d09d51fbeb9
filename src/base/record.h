/* SPDX-License-Identifier: MIT */
/*
 * Records: structs as bytes. A record type is a table of fields. The binary form used in frames, spool files
 * and the store, and (in wire/json_record.h) the JSON form of the API are both derived from this table.
 *
 * Binary form, little-endian: u32 magic "mgR1", u16 type id, u16 zero, u32 body length, body, u32 CRC-32C of
 * everything before it. The body is a sequence of fields: u16 tag, u16 zero, u32 length, value. Unknown tags
 * are skipped and missing ones stay zero, so an old shepherd and a new agent understand each other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/strings.h"

enum record_kind {
    RECORD_BOOL,     // bool
    RECORD_U32,      // uint32_t
    RECORD_I32,      // int32_t
    RECORD_U64,      // uint64_t
    RECORD_I64,      // int64_t
    RECORD_SIZE,     // uint64_t, bytes; JSON also accepts "8G"
    RECORD_MILLI,    // uint32_t, thousandths; a number such as 2.5 in JSON
    RECORD_DURATION, // int64_t, milliseconds; seconds or "4h" in JSON
    RECORD_TIME,     // int64_t, milliseconds of the wall clock; RFC 3339 in JSON, null for 0
    /* From here on a field owns memory. */
    RECORD_STRING,  // char *, owned, NULL when absent
    RECORD_STRINGS, // struct strings
    RECORD_ENV,     // struct strings of NAME=value; an object in JSON
    RECORD_LIST,    // struct record_list of `sub` records
    RECORD_PACKED,  // struct record_bytes: one `sub` record, kept in encoded form
};

struct record_list {
    void *items; // array of structs of the sub type's size, owned
    size_t count;
};

/* The fields of one record in binary form. On the wire it is a RECORD_LIST of one item. */
struct record_bytes {
    uint8_t *bytes; // owned
    size_t length;  // 0: there is no record
};

struct record_type;

struct record_field {
    uint16_t tag; // never reused within a type
    enum record_kind kind;
    const char *name;
    size_t offset;
    uint32_t limit; // maximum bytes of a string (or of all strings of a list), maximum items of a RECORD_LIST
    const struct record_type *sub; // RECORD_LIST and RECORD_PACKED only
    const char *help;              // for the API's documentation; NULL: undocumented
    const char *old_name;          // a second key in JSON answers, for older clients; NULL: none
    bool has_zero;                 // 0 is a value; otherwise 0 means absent, null in an answer
    bool is_hidden;                // not in JSON answers
    bool is_spare;                 // omitted when the whole record would be too long: record_encode_bare()
};

struct record_type {
    uint16_t id; // message or file type; unique in its table
    const char *name;
    size_t size;
    const struct record_field *fields;
    size_t n_fields;
};

#define RECORD_MAGIC       0x3152676dU // "mgR1"
#define RECORD_HEADER_SIZE 12U
#define RECORD_CRC_SIZE    4U
#define RECORD_BODY_MAX    (4U << 20)

#define RECORD_FIELD(tag_, kind_, type_, member_, limit_)                                                    \
    {                                                                                                        \
        .tag = (tag_), .kind = (kind_), .name = #member_, .offset = offsetof(type_, member_),                \
        .limit = (limit_)                                                                                    \
    }
#define RECORD_SUBLIST(tag_, type_, member_, limit_, sub_)                                                   \
    {                                                                                                        \
        .tag = (tag_), .kind = RECORD_LIST, .name = #member_, .offset = offsetof(type_, member_),            \
        .limit = (limit_), .sub = (sub_)                                                                     \
    }
#define RECORD_TYPE(id_, name_, struct_, fields_)                                                            \
    {                                                                                                        \
        .id = (id_), .name = (name_), .size = sizeof(struct_), .fields = (fields_),                          \
        .n_fields = sizeof(fields_) / sizeof((fields_)[0])                                                   \
    }

/* Appends the record. Zero numbers, NULL strings and empty lists are left out. */
void record_encode(const struct record_type *type, const void *object, struct buffer *out);

/* The same without spare fields, also in nested records. */
void record_encode_bare(const struct record_type *type, const void *object, struct buffer *out);

/*
 * The same for records that must always be readable, such as events in the store: fields that record_decode()
 * would reject are omitted, and the longest fields of a record that is too long. Returns 1 if any was, and
 * `err` describes the first.
 */
int record_encode_readable(
    const struct record_type *type, const void *object, struct buffer *out, struct error *err);

/*
 * Decodes one record of exactly `length` bytes, in binary or dense form, into `object`, which is overwritten;
 * the caller then owns it (record_clear). -EBADMSG if it is truncated, of another type, over a limit, or has
 * a wrong CRC; the object is then zero. `err` may be NULL.
 */
int record_decode(
    const struct record_type *type, const void *bytes, size_t length, void *object, struct error *err);

/*
 * Like record_decode(), but invalid fields (over the limit, of another width) are skipped as if they had not
 * been sent. Returns 1 if any was, and `err` describes the first; else 0.
 */
int record_decode_partly(
    const struct record_type *type, const void *bytes, size_t length, void *object, struct error *err);

/* Checks whether record_decode() would accept the encoded object, by the limits of all fields and without
 * encoding it. -EBADMSG with the reason if not. */
int record_check(const struct record_type *type, const void *object, struct error *err);

/*
 * Reads the header at the beginning of a stream. Returns 0 with *ret_length = 0 if the header is incomplete,
 * else 0 with the record's total length and type id; -EBADMSG if it is no record or larger than `max_length`.
 */
int record_peek(const void *bytes, size_t available, size_t max_length, uint16_t *ret_id, size_t *ret_length);

/* Encodes the fields of an object. The caller frees ret->bytes. */
void record_pack(const struct record_type *type, const void *object, struct record_bytes *ret);

/* Encodes the fields of an encoded record again, those of `part` replaced by the values in its `object`. */
void record_repack(
    const void *record, const struct record_type *part, const void *object, struct record_bytes *ret);

/* Like record_decode(). */
int record_unpack(
    const struct record_type *type, const struct record_bytes *packed, void *object, struct error *err);

/* Removes the fields with that tag from one encoded record. */
void record_cut(struct buffer *record, uint16_t tag);

/* Frees what the object's fields own and zeroes it. */
void record_clear(const struct record_type *type, void *object);

/* Deep copy into an uninitialised object. */
void record_copy(const struct record_type *type, void *to, const void *from);

/* The same without fields that could not be decoded again (record_encode_readable). */
void record_copy_readable(const struct record_type *type, void *to, const void *from);
