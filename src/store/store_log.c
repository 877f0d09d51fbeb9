/* SPDX-License-Identifier: MIT */
/*
 * SQLite recovers a log up to its first bad checksum and silently drops the rest: after a crash this is
 * usually a transaction that was being written. The rest may also contain acknowledged work after a damaged
 * frame, so the log is checked here first. Formats: sqlite.org/walformat.html.
 *
 * A transaction is synced before the next one is written, and the index (-shm) counts a transaction only
 * after its sync. So the log has lost commits if
 *
 *   the index counts more frames of this log than can be read, or
 *   behind the first unreadable frame, there is a commit, and after that another frame.
 *
 * A frame belongs to this log if it has the salts of the log's header, which change each time the log
 * restarts. After a power failure only the last transaction is in doubt; the index then does not confirm it.
 */
#include "store/store_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define LOG_MAGIC    0x377f0682U // plus 1 when checksums are of big-endian words
#define LOG_HEADER   32
#define FRAME_HEADER 24
#define PAGE_MIN     512U
#define PAGE_MAX     65536U
#define INDEX_HEADER 48 // two consecutive copies

struct checksum {
    uint32_t a, b;
};

struct reader {
    int fd;
    off_t size;
    bool is_big_endian; // byte order of checksums
    uint32_t page_size;
    uint8_t salts[8];
    uint8_t *frame;
};

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t word(const uint8_t *bytes, bool is_big_endian)
{
    return is_big_endian
               ? big_endian(bytes)
               : (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static void add(struct checksum *sum, const uint8_t *bytes, size_t length, bool is_big_endian)
{
    for (size_t i = 0; i + 8 <= length; i += 8) {
        sum->a += word(bytes + i, is_big_endian) + sum->b;
        sum->b += word(bytes + i + 4, is_big_endian) + sum->a;
    }
}

static bool is_sum(const struct checksum *sum, const uint8_t *bytes)
{
    return big_endian(bytes) == sum->a && big_endian(bytes + 4) == sum->b;
}

static off_t frame_at(const struct reader *reader, uint32_t index)
{
    return LOG_HEADER + (off_t)index * (FRAME_HEADER + (off_t)reader->page_size);
}

/* False if the file ends before the frame does, or if the frame is not of this log. */
static bool read_frame(const struct reader *reader, uint32_t index)
{
    size_t length = FRAME_HEADER + reader->page_size;
    return pread(reader->fd, reader->frame, length, frame_at(reader, index)) == (ssize_t)length &&
           memcmp(reader->frame + 8, reader->salts, sizeof(reader->salts)) == 0;
}

static bool is_commit(const struct reader *reader)
{
    return big_endian(reader->frame + 4) != 0;
}

static bool read_header(struct reader *reader, struct checksum *ret_sum)
{
    uint8_t header[LOG_HEADER];
    struct checksum sum = { 0 };
    if (pread(reader->fd, header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return false;
    reader->is_big_endian = (big_endian(header) & 1) != 0;
    reader->page_size = big_endian(header + 8);
    memcpy(reader->salts, header + 16, sizeof(reader->salts));
    add(&sum, header, LOG_HEADER - 8, reader->is_big_endian);
    *ret_sum = sum;
    return (big_endian(header) & ~1U) == LOG_MAGIC && is_sum(&sum, header + LOG_HEADER - 8) &&
           reader->page_size >= PAGE_MIN && reader->page_size <= PAGE_MAX &&
           (reader->page_size & (reader->page_size - 1)) == 0;
}

/* The number of readable frames from the first on, including incomplete transactions. */
static uint32_t count_good(const struct reader *reader, struct checksum sum, uint32_t *ret_committed)
{
    uint32_t good = 0;
    *ret_committed = 0;
    while (read_frame(reader, good)) {
        add(&sum, reader->frame, 8, reader->is_big_endian);
        add(&sum, reader->frame + FRAME_HEADER, reader->page_size, reader->is_big_endian);
        if (!is_sum(&sum, reader->frame + 16))
            break;
        good++;
        if (is_commit(reader))
            *ret_committed = good;
    }
    return good;
}

/* True if, after the readable frames, a commit of this log is followed by another frame. */
static bool has_later_commit(const struct reader *reader, uint32_t good)
{
    bool has_commit = false;
    for (uint32_t i = good; frame_at(reader, i + 1) <= reader->size; i++) {
        if (!read_frame(reader, i))
            continue;
        if (has_commit)
            return true;
        has_commit = is_commit(reader);
    }
    return false;
}

/* The number of frames that the index counts as committed; 0 frames with new salts while a log restarts. */
struct index {
    bool is_valid;
    uint8_t salts[8];
    uint32_t committed;
};

static struct index read_index(int dirfd)
{
    const uint32_t one = 1;
    bool is_big_endian = *(const uint8_t *)&one == 0; // the index is in native byte order
    struct index index = { 0 };
    uint8_t headers[2 * INDEX_HEADER];
    _cleanup_close_ int fd = openat(dirfd, STORE_LOG_INDEX, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || pread(fd, headers, sizeof(headers), 0) != (ssize_t)sizeof(headers))
        return index;
    for (size_t i = 0; i < 2 && !index.is_valid; i++) {
        const uint8_t *header = headers + i * INDEX_HEADER;
        struct checksum sum = { 0 };
        add(&sum, header, INDEX_HEADER - 8, is_big_endian);
        index.is_valid = header[12] == 1 && word(header + 40, is_big_endian) == sum.a &&
                         word(header + 44, is_big_endian) == sum.b;
        memcpy(index.salts, header + 32, sizeof(index.salts));
        index.committed = word(header + 16, is_big_endian);
    }
    return index;
}

static int refuse(const char *dir, uint32_t good, off_t end, struct error *err)
{
    (void)error_set(err, -EUCLEAN,
        "%s/%s is damaged: frame %u of this write-ahead log is unreadable, and acknowledged changes are in "
        "or after it",
        dir, STORE_LOG, good + 1);
    return error_hint(err,
        "restore the file from a copy; or discard everything after the damage: cd %s && truncate -s %lld %s "
        "&& rm -f %s",
        dir, (long long)end, STORE_LOG, STORE_LOG_INDEX);
}

static int check_frames(struct reader *reader, const struct checksum *sum, const struct index *index,
    const char *dir, struct store_log *log, struct error *err)
{
    uint32_t committed = 0;
    uint32_t good = count_good(reader, *sum, &committed);
    bool is_counted = index->is_valid && memcmp(index->salts, reader->salts, sizeof(index->salts)) == 0;
    log->is_complete = is_counted && index->committed == committed;
    if ((is_counted && index->committed > committed) || has_later_commit(reader, good))
        return refuse(dir, good, frame_at(reader, committed), err);
    return 0;
}

int store_log_check(int dirfd, const char *dir, struct store_log *ret, struct error *err)
{
    struct store_log log = { 0 };
    struct stat file;
    struct checksum sum;
    struct reader reader = { .fd = openat(dirfd, STORE_LOG, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) };
    _cleanup_close_ int fd = reader.fd;
    log.has_index = fstatat(dirfd, STORE_LOG_INDEX, &file, AT_SYMLINK_NOFOLLOW) == 0;
    if (fd >= 0 && fstat(fd, &file) == 0)
        reader.size = file.st_size;
    log.has_log = reader.size > LOG_HEADER;
    int r = 0;
    const struct index index = read_index(dirfd);
    if (log.has_log && !read_header(&reader, &sum)) {
        /* A header that was being written: all earlier commits are in the database file already. */
        log.is_complete = index.is_valid && index.committed == 0;
        r = log.is_complete ? 0 : refuse(dir, 0, 0, err);
    } else if (log.has_log) {
        _cleanup_free_ uint8_t *frame = xcalloc(1, FRAME_HEADER + reader.page_size);
        reader.frame = frame;
        r = check_frames(&reader, &sum, &index, dir, &log, err);
    }
    if (r == 0)
        *ret = log;
    return r;
}
