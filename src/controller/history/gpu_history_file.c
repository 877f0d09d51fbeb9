/* SPDX-License-Identifier: MIT */
/*
 * Both files have the same format: a header, each GPU with its minutes and seconds (oldest first), and a
 * checksum. It is a memory image in this machine's byte order; a file of another machine or version is
 * rejected by its header. Nothing depends on the history, so an invalid file never prevents a start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"
#include "controller/history/gpu_history_private.h"

#define WHOLE_FILE   "gpu-history"
#define RECENT_FILE  "gpu-history.recent"
#define MAGIC        "MGPUHIST"
#define FILE_VERSION 1U
#define FILE_MAX     ((size_t)HISTORY_GPUS_MAX * (HISTORY_GPU_BYTES + 512) + 4096)

struct file_head {
    char magic[8];
    uint32_t version, n_gpus;
};

struct file_gpu {
    char uuid[HISTORY_UUID_SIZE];
    struct history_minute now;
    int64_t newest_minute, newest_second;
    uint32_t n_minutes, n_seconds;
};

/* --- out --- */

static void encode_gpu(const struct history_gpu *gpu, int64_t after_minute, struct buffer *out)
{
    const struct history_ring *minutes = &gpu->minutes_ring, *seconds = &gpu->seconds_ring;
    int64_t newer = minutes->newest > after_minute ? minutes->newest - after_minute : 0;
    struct file_gpu head;
    memset(&head, 0, sizeof(head)); // padding too
    memcpy(head.uuid, gpu->uuid, sizeof(head.uuid));
    head.now = gpu->now;
    head.newest_minute = minutes->newest;
    head.newest_second = seconds->newest;
    head.n_minutes = newer < minutes->count ? (uint32_t)newer : minutes->count;
    head.n_seconds = seconds->count;
    buffer_append(out, &head, sizeof(head));
    for (int64_t slot = head.newest_minute - head.n_minutes + 1; slot <= head.newest_minute; slot++)
        buffer_append(out, &gpu->minutes[slot % HISTORY_MINUTES], sizeof(gpu->minutes[0]));
    for (int64_t slot = head.newest_second - head.n_seconds + 1; slot <= head.newest_second; slot++)
        buffer_append(out, &gpu->seconds[slot % HISTORY_SECONDS], sizeof(gpu->seconds[0]));
}

static int64_t newest_minute(const struct gpu_history *history)
{
    int64_t newest = 0;
    for (size_t i = 0; i < history->count; i++)
        if (history->gpus[i].now.minute > newest)
            newest = history->gpus[i].now.minute;
    return newest;
}

int gpu_history_save(struct gpu_history *history, int dirfd, bool is_whole)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    int64_t newest = newest_minute(history);
    history_forget(history, newest - HISTORY_MINUTES);
    struct file_head head = { .magic = MAGIC, .version = FILE_VERSION, .n_gpus = (uint32_t)history->count };
    buffer_append(&out, &head, sizeof(head));
    for (size_t i = 0; i < history->count; i++)
        encode_gpu(&history->gpus[i], is_whole ? 0 : history->whole_minute, &out);
    uint32_t sum = crc32c(0, out.bytes, out.length);
    buffer_append(&out, &sum, sizeof(sum));
    int r = file_write(dirfd, is_whole ? WHOLE_FILE : RECENT_FILE, out.bytes, out.length, false);
    if (r == 0 && is_whole)
        history->whole_minute = newest - 1; // the minute that is going on is not in it
    return r;
}

/* --- in --- */

struct reader {
    const uint8_t *bytes;
    size_t left;
};

static bool take(struct reader *reader, void *ret, size_t size)
{
    if (reader->left < size)
        return false;
    memcpy(ret, reader->bytes, size);
    reader->bytes += size;
    reader->left -= size;
    return true;
}

static bool is_sound(const struct file_gpu *head)
{
    return memchr(head->uuid, '\0', sizeof(head->uuid)) != NULL && head->uuid[0] != '\0' &&
           head->n_minutes <= HISTORY_MINUTES && head->n_seconds <= HISTORY_SECONDS &&
           head->newest_minute >= head->n_minutes && head->newest_second >= head->n_seconds &&
           head->now.minute >= 0;
}

static bool read_gpu(struct gpu_history *history, struct reader *reader)
{
    struct file_gpu head;
    if (!take(reader, &head, sizeof(head)) || !is_sound(&head))
        return false;
    struct history_gpu *gpu = history_gpu_take(history, head.uuid);
    for (int64_t slot = head.newest_minute - head.n_minutes + 1; slot <= head.newest_minute; slot++) {
        struct history_point point;
        if (!take(reader, &point, sizeof(point)))
            return false;
        if (gpu != NULL)
            (void)history_put_minute(gpu, slot, &point);
    }
    for (int64_t slot = head.newest_second - head.n_seconds + 1; slot <= head.newest_second; slot++) {
        struct history_sample sample;
        if (!take(reader, &sample, sizeof(sample)))
            return false;
        if (gpu != NULL)
            (void)history_put_second(gpu, slot, &sample);
    }
    if (gpu != NULL && head.now.minute >= gpu->now.minute)
        gpu->now = head.now;
    return true;
}

/* The checksum is verified first, so a file is used as a whole or not at all. */
static int read_file(struct gpu_history *history, int dirfd, const char *name, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct file_head head;
    uint32_t sum;
    int r = file_read(dirfd, name, FILE_MAX, &bytes);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return error_set_errno(err, r, "%s cannot be read", name);
    if (bytes.length < sizeof(head) + sizeof(sum))
        return error_set(err, -EBADMSG, "%s is truncated", name);
    memcpy(&sum, bytes.bytes + bytes.length - sizeof(sum), sizeof(sum));
    struct reader reader = { bytes.bytes, bytes.length - sizeof(sum) };
    (void)take(&reader, &head, sizeof(head));
    if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0 || head.version != FILE_VERSION)
        return error_set(err, -EBADMSG, "%s has an unsupported version", name);
    if (crc32c(0, bytes.bytes, bytes.length - sizeof(sum)) != sum)
        return error_set(err, -EBADMSG, "%s is damaged", name);
    for (uint32_t i = 0; i < head.n_gpus; i++)
        if (!read_gpu(history, &reader))
            return error_set(err, -EBADMSG, "%s is inconsistent", name);
    return 0;
}

int gpu_history_load(struct gpu_history *history, int dirfd, struct error *err)
{
    struct error recent_err = { 0 };
    int r = read_file(history, dirfd, WHOLE_FILE, err);
    history->whole_minute = r < 0 ? 0 : newest_minute(history) - 1;
    int recent = read_file(history, dirfd, RECENT_FILE, r < 0 ? &recent_err : err);
    return r < 0 ? r : recent;
}
