/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 *   changeset   table*
 *   table       'T', COLUMNS (a varint), a byte for each column (not 0 in the primary key), NAME, '\0', change*
 *   change      operation, a byte that says whether a trigger did it, then old and new values:
 *               a DELETE has the old ones, an INSERT the new ones, an UPDATE both
 *   value       0 (as before), 5 (NULL), 1 or 2 and 8 bytes (a number), 3 or 4, a varint and that many bytes
 */
/* clang-format on */
#include "store/store_changes.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define COLUMNS_MAX 2000U // SQLite's own limit

struct reader {
    const uint8_t *bytes;
    size_t left;
};

static bool skip(struct reader *reader, size_t count)
{
    if (count > reader->left)
        return false;
    reader->bytes += count;
    reader->left -= count;
    return true;
}

/* SQLite's variable-length integer: seven bits a byte, the most significant first. Lengths have at most five.
 */
static bool read_varint(struct reader *reader, uint64_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < 5 && reader->left > 0; i++) {
        uint8_t byte = *reader->bytes;
        (void)skip(reader, 1);
        *ret = *ret << 7 | (byte & 0x7fU);
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool skip_values(struct reader *reader, uint64_t columns)
{
    for (uint64_t i = 0; i < columns; i++) {
        uint64_t length = 0;
        if (reader->left == 0)
            return false;
        uint8_t type = *reader->bytes;
        (void)skip(reader, 1);
        if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
            length = 8;
        else if (type == SQLITE_TEXT || type == SQLITE_BLOB ? !read_varint(reader, &length)
                                                            : type != 0 && type != SQLITE_NULL)
            return false;
        if (length > reader->left || !skip(reader, (size_t)length))
            return false;
    }
    return true;
}

static bool skip_change(struct reader *reader, uint64_t columns)
{
    if (reader->left < 2)
        return false;
    uint8_t operation = reader->bytes[0];
    if (operation != SQLITE_INSERT && operation != SQLITE_UPDATE && operation != SQLITE_DELETE)
        return false;
    (void)skip(reader, 2);
    return skip_values(reader, columns) && (operation != SQLITE_UPDATE || skip_values(reader, columns));
}

static bool skip_table(struct reader *reader)
{
    uint64_t columns = 0;
    if (*reader->bytes != 'T' || !skip(reader, 1) || !read_varint(reader, &columns))
        return false;
    if (columns == 0 || columns > COLUMNS_MAX || !skip(reader, (size_t)columns))
        return false;
    const uint8_t *end = reader->left > 0 ? memchr(reader->bytes, 0, reader->left) : NULL;
    if (end == NULL || !skip(reader, (size_t)(end - reader->bytes) + 1))
        return false;
    while (reader->left > 0 && *reader->bytes != 'T')
        if (!skip_change(reader, columns))
            return false;
    return true;
}

int store_changes_check(const void *changes, size_t length, struct error *err)
{
    struct reader reader = { changes, length };
    while (reader.left > 0)
        if (!skip_table(&reader))
            return error_set(err, -EUCLEAN,
                "the changes of an entry of the log are damaged at byte %zu of %zu", length - reader.left,
                length);
    return 0;
}
