/* SPDX-License-Identifier: MIT */
/*
 * Both files have the same format: a header, each GPU with its minutes and seconds (oldest first), and a
 * checksum. It is a memory image in this machine's byte order, and the header shows files of other machines
 * or versions, which are rejected. Nothing depends on the history, so an invalid file never prevents a start.
 * In version 1 all GPUs have the finest level, and there is no member for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"
#include "controller/history/gpu_history_private.h"

#define WHOLE_FILE   "gpu-history"
#define RECENT_FILE  "gpu-history.recent"
#define MAGIC        "MGPUHIST"
#define FILE_VERSION 2U
#define FILE_MAX     ((size_t)256 << 20)
#define PART_BYTES   ((size_t)512 << 10) // written per step

struct file_head {
    char magic[8];
    uint32_t version, n_gpus;
};

struct file_gpu {
    char uuid[HISTORY_UUID_SIZE];
    struct history_sum now;
    int64_t newest_minute, newest_second; // slots
    uint32_t n_minutes, n_seconds;
    uint32_t level, unused; // since version 2
};

/* --- out --- */

struct history_save {
    int dirfd, fd; // fd < 0: no save is in progress
    bool is_whole;
    size_t at, count; // GPUs
    int64_t newest;   // minute
    uint32_t sum;
};

void history_save_free(struct history_save *save)
{
    if (save == NULL)
        return;
    closep(&save->fd);
    free(save);
}

static const char *name_of(bool is_whole)
{
    return is_whole ? WHOLE_FILE : RECENT_FILE;
}

static const char *temporary_name(bool is_whole)
{
    return is_whole ? WHOLE_FILE ".new" : RECENT_FILE ".new";
}

static void encode_gpu(const struct history_gpu *gpu, int64_t after_minute, struct buffer *out)
{
    const struct history_ring *minutes = &gpu->minutes_ring, *seconds = &gpu->seconds_ring;
    int64_t after = after_minute / history_levels[gpu->level].minute_m;
    int64_t newer = minutes->newest > after ? minutes->newest - after : 0;
    struct file_gpu head;
    memset(&head, 0, sizeof(head)); // padding too
    memcpy(head.uuid, gpu->uuid, sizeof(head.uuid));
    head.now = gpu->now;
    head.newest_minute = minutes->newest;
    head.newest_second = seconds->newest;
    head.n_minutes = newer < minutes->count ? (uint32_t)newer : minutes->count;
    head.n_seconds = seconds->count;
    head.level = gpu->level;
    buffer_append(out, &head, sizeof(head));
    for (int64_t slot = head.newest_minute - head.n_minutes + 1; slot <= head.newest_minute; slot++)
        buffer_append(out, &gpu->minutes[slot % history_minutes(gpu->level)], sizeof(gpu->minutes[0]));
    for (int64_t slot = head.newest_second - head.n_seconds + 1; slot <= head.newest_second; slot++)
        buffer_append(out, &gpu->seconds[slot % history_seconds(gpu->level)], sizeof(gpu->seconds[0]));
}

static int64_t newest_minute(const struct gpu_history *history)
{
    int64_t newest = 0;
    for (size_t i = 0; i < history->count; i++) {
        int64_t minute = history_newest_minute(history->gpus[i]);
        newest = minute > newest ? minute : newest;
    }
    return newest;
}

static int abandon(struct gpu_history *history, int result)
{
    history_save_free(history->save);
    history->save = NULL;
    return result;
}

int gpu_history_save_begin(struct gpu_history *history, int dirfd, bool is_whole)
{
    (void)abandon(history, 0);
    int fd = openat(dirfd, temporary_name(is_whole), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int64_t newest = newest_minute(history);
    history_forget(history, newest - HISTORY_MINUTES);
    history->save = xcalloc(1, sizeof(*history->save));
    *history->save = (struct history_save){
        .dirfd = dirfd, .fd = fd, .is_whole = is_whole, .count = history->count, .newest = newest
    };
    return 0;
}

static int finish(struct gpu_history *history)
{
    const struct history_save *save = history->save;
    if (renameat(save->dirfd, temporary_name(save->is_whole), save->dirfd, name_of(save->is_whole)) < 0)
        return -errno;
    if (save->is_whole)
        history->whole_minute = save->newest - 1; // the current minute is not included
    return 0;
}

int gpu_history_save_step(struct gpu_history *history)
{
    struct history_save *save = history->save;
    _cleanup_buffer_ struct buffer out = { 0 };
    struct file_head head = { .magic = MAGIC, .version = FILE_VERSION, .n_gpus = (uint32_t)save->count };
    if (save->at == 0)
        buffer_append(&out, &head, sizeof(head));
    while (save->at < save->count && out.length < PART_BYTES)
        encode_gpu(history->gpus[save->at++], save->is_whole ? 0 : history->whole_minute, &out);
    save->sum = crc32c(save->sum, out.bytes, out.length);
    bool is_last = save->at == save->count;
    if (is_last)
        buffer_append(&out, &save->sum, sizeof(save->sum));
    int r = write_all(save->fd, out.bytes, out.length);
    if (r == 0 && !is_last)
        return 1;
    return abandon(history, r < 0 ? r : finish(history));
}

int gpu_history_save(struct gpu_history *history, int dirfd, bool is_whole)
{
    int r = gpu_history_save_begin(history, dirfd, is_whole);
    while (r == 0 && (r = gpu_history_save_step(history)) == 1)
        r = 0;
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
           head->level < HISTORY_LEVELS && head->n_minutes <= history_minutes(head->level) &&
           head->n_seconds <= history_seconds(head->level) && head->newest_minute >= head->n_minutes &&
           head->newest_second >= head->n_seconds && head->now.slot >= 0;
}

/* NULL: it is not used here. The recent file may have coarser steps than the whole one. */
static struct history_gpu *take_for(struct gpu_history *history, const struct file_gpu *head)
{
    struct history_gpu *gpu = history_gpu_take(history, head->uuid, head->level);
    if (gpu != NULL && gpu->level < head->level)
        history_coarsen(gpu, head->level);
    return gpu != NULL && gpu->level == head->level ? gpu : NULL;
}

static bool read_gpu(struct gpu_history *history, uint32_t version, struct reader *reader)
{
    struct file_gpu head = { 0 };
    size_t size = version == 1 ? offsetof(struct file_gpu, level) : sizeof(head);
    if (!take(reader, &head, size) || !is_sound(&head))
        return false;
    struct history_gpu *gpu = take_for(history, &head);
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
    if (gpu != NULL && head.now.slot >= gpu->now.slot)
        gpu->now = head.now;
    if (gpu != NULL && head.newest_second > gpu->second.slot)
        gpu->second.slot = head.newest_second;
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
    if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0 || head.version == 0 ||
        head.version > FILE_VERSION)
        return error_set(err, -EBADMSG, "%s has an unsupported version", name);
    if (crc32c(0, bytes.bytes, bytes.length - sizeof(sum)) != sum)
        return error_set(err, -EBADMSG, "%s is damaged", name);
    for (uint32_t i = 0; i < head.n_gpus; i++)
        if (!read_gpu(history, head.version, &reader))
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
