/* SPDX-License-Identifier: MIT */
/*
 * Structs as bytes. A record type is a table of fields; from the one table come the binary form used in
 * frames, spool files and the store, and (in wire/json_record.h) the JSON form used by the API.
 *
 * Binary form, little-endian: u32 magic "mgR1", u16 type id, u16 zero, u32 body length, body, u32 CRC-32C of
 * all before it. The body is a run of fields: u16 tag, u16 zero, u32 length, value. Unknown tags are passed
 * over and missing ones stay zero, so that an old shepherd and a new agent understand each other.
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
    RECORD_SIZE,     // uint64_t, bytes; JSON also takes "8G"
    RECORD_MILLI,    // uint32_t, thousandths; a number such as 2.5 in JSON
    RECORD_DURATION, // int64_t, milliseconds; seconds or "4h" in JSON
    RECORD_TIME,     // int64_t, milliseconds of the wall clock; RFC 3339 in JSON, null for 0
    RECORD_STRING,   // char *, owned, NULL when absent
    RECORD_STRINGS,  // struct strings
    RECORD_ENV,      // struct strings of NAME=value; an object in JSON
    RECORD_LIST,     // struct record_list of `sub` records
    RECORD_PACKED,   // struct record_bytes: one `sub` record that is carried as it was encoded
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
    uint32_t
        limit; // most bytes of a string (or of a list's all strings together), most items of a RECORD_LIST
    const struct record_type *sub; // RECORD_LIST and RECORD_PACKED only
    const char *help;              // for its documentation; NULL: it has none
    const char *old_name;          // in JSON answers, for clients that know it by this; NULL: none
    bool has_zero;                 // 0 is a value; of others it means that there is none, null in an answer
    bool is_hidden;                // not in JSON answers
    bool is_spare;                 // left out where the whole record would be too long: record_encode_bare()
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
#define RECORD_PACK(tag_, type_, member_, sub_)                                                              \
    {                                                                                                        \
        .tag = (tag_), .kind = RECORD_PACKED, .name = #member_, .offset = offsetof(type_, member_),          \
        .sub = (sub_)                                                                                        \
    }
#define RECORD_TYPE(id_, name_, struct_, fields_)                                                            \
    {                                                                                                        \
        .id = (id_), .name = (name_), .size = sizeof(struct_), .fields = (fields_),                          \
        .n_fields = sizeof(fields_) / sizeof((fields_)[0])                                                   \
    }

/* Appends the record. Zero numbers, NULL strings and empty lists are left out. */
void record_encode(const struct record_type *type, const void *object, struct buffer *out);

/* The same without the spare fields of all records in it. */
void record_encode_bare(const struct record_type *type, const void *object, struct buffer *out);

/*
 * The same for what has to be read again whatever happens, such as the events of the store: a field of the
 * record itself that record_decode() would refuse is left out. 1 when one was, and `err` tells of the first.
 */
int record_encode_readable(
    const struct record_type *type, const void *object, struct buffer *out, struct error *err);

/*
 * Reads one record of exactly `length` bytes into `object`, which is overwritten and then owned by the caller
 * (record_clear). -EBADMSG when it is torn, of another type, over a limit, or its CRC is wrong; the object is
 * then zero. `err` may be NULL.
 */
int record_decode(
    const struct record_type *type, const void *bytes, size_t length, void *object, struct error *err);

/*
 * As record_decode(), but a field that cannot be taken (over its limit, of another width) is left out, as if
 * it had not been sent: 1, and `err` tells of the first of them. 0 when all could be taken.
 */
int record_decode_partly(
    const struct record_type *type, const void *bytes, size_t length, void *object, struct error *err);

/* Would record_decode() take what record_encode() makes of it? Looks at the limits of all fields, without
 * encoding. -EBADMSG and what is wrong when it would not. */
int record_check(const struct record_type *type, const void *object, struct error *err);

/*
 * Looks at the head of a stream. Returns 0 with *ret_length = 0 while fewer than a whole header is there,
 * else the record's whole length and type id; -EBADMSG when this is no record or it is larger than
 * `max_length`.
 */
int record_peek(const void *bytes, size_t available, size_t max_length, uint16_t *ret_id, size_t *ret_length);

/* The fields of an object. The caller frees ret->bytes. */
void record_pack(const struct record_type *type, const void *object, struct record_bytes *ret);

/* Those of an encoded record, in which the fields of `part` are as in its `object`. */
void record_repack(
    const void *record, const struct record_type *part, const void *object, struct record_bytes *ret);

/* As record_decode(). */
int record_unpack(
    const struct record_type *type, const struct record_bytes *packed, void *object, struct error *err);

/* Takes the fields of that tag out of one encoded record, as if its object did not have them. */
void record_cut(struct buffer *record, uint16_t tag);

/* Frees what the object's fields own and zeroes it. */
void record_clear(const struct record_type *type, void *object);

/* Deep copy into an uninitialised object. */
void record_copy(const struct record_type *type, void *to, const void *from);

/* The same without what could not be read again (record_encode_readable). */
void record_copy_readable(const struct record_type *type, void *to, const void *from);
