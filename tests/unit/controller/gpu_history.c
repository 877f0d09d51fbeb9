/* SPDX-License-Identifier: MIT */
/* The history of GPUs: which values are kept, for how long, across restarts, and in how much memory. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"
#include "controller/history/gpu_history.h"
#include "unit_test.h"
#include "wire/message.h"

#define START INT64_C(1800000000) // a whole minute
#define ALL   (GPU_UTILIZATION | GPU_MEMORY_USED | GPU_POWER | GPU_TEMPERATURE)

struct past {
    struct gpu_history *history;
    char place[64];
    int fd;
};

static int setup(void **state)
{
    struct past *past = xcalloc(1, sizeof(*past));
    past->history = gpu_history_new();
    (void)snprintf(past->place, sizeof(past->place), "/tmp/mgpu-history-XXXXXX");
    assert_non_null(mkdtemp(past->place));
    past->fd = open(past->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = past;
    return 0;
}

static int teardown(void **state)
{
    struct past *past = *state;
    gpu_history_free(past->history);
    (void)unlinkat(past->fd, "gpu-history", 0);
    (void)unlinkat(past->fd, "gpu-history.recent", 0);
    (void)close(past->fd);
    (void)rmdir(past->place);
    free(past);
    return 0;
}

#define CASE(name, past) TEST_ON(name, struct past *past, setup, teardown)

static void add(struct past *past, int64_t second, const char *uuid, uint32_t busy, uint32_t valid)
{
    char name[96];
    (void)snprintf(name, sizeof(name), "%s", uuid);
    struct gpu_state gpu = { .uuid = name,
        .memory_bytes = 80ULL << 30,
        .memory_used_bytes = 20ULL << 30,
        .utilization_percent = busy,
        .power_mw = 300400,
        .temperature_c = 61,
        .valid = valid };
    struct record_list gpus = { &gpu, 1 };
    gpu_history_add(past->history, second * 1000, &gpus);
}

static struct history_point look(const struct past *past, int64_t from, uint32_t step)
{
    struct history_point point;
    gpu_history_read(past->history, "GPU-a", from, step, &point, 1);
    return point;
}

static uint16_t busy_at(const struct past *past, int64_t from, uint32_t step)
{
    return look(past, from, step).mean.values[HISTORY_BUSY];
}

/* Throws the memory away and reads the files. */
static int restart(struct past *past, struct error *err)
{
    gpu_history_free(past->history);
    past->history = gpu_history_new();
    return gpu_history_load(past->history, past->fd, err);
}

CASE(a_second_is_kept_as_it_was, past)
{
    add(past, START, "GPU-a", 97, ALL);
    struct history_point point = look(past, START, 1);
    assert_int_equal(point.mean.values[HISTORY_BUSY], 97);
    assert_int_equal(point.mean.values[HISTORY_MEMORY], 250);
    assert_int_equal(point.mean.values[HISTORY_POWER], 300);
    assert_int_equal(point.mean.values[HISTORY_CELSIUS], 61);
    assert_int_equal(busy_at(past, START + 1, 1), HISTORY_NOT_KNOWN);
    assert_int_equal(busy_at(past, START - 1, 1), HISTORY_NOT_KNOWN);
}

CASE(what_is_not_measured_is_not_zero, past)
{
    add(past, START, "GPU-a", 97, GPU_POWER);
    add(past, START + 1, "GPU-a", 50, ALL);
    assert_int_equal(busy_at(past, START, 1), HISTORY_NOT_KNOWN);
    assert_int_equal(look(past, START, 1).mean.values[HISTORY_POWER], 300);
    assert_int_equal(busy_at(past, START, 2), 50);
    assert_int_equal(busy_at(past, START, 60), 50);
}

CASE(a_minute_has_the_mean_and_the_maximum, past)
{
    for (int i = 0; i < 120; i++)
        add(past, START + i, "GPU-a", i < 60 ? (uint32_t)(i % 2 == 0 ? 0 : 100) : 7, ALL);
    struct history_point point = look(past, START, 60);
    assert_int_equal(point.mean.values[HISTORY_BUSY], 50);
    assert_int_equal(point.max.values[HISTORY_BUSY], 100);
    assert_int_equal(busy_at(past, START + 60, 60), 7); // the one that is going on
}

CASE(seconds_reach_back_ten_minutes_and_minutes_a_week, past)
{
    int64_t last = START + 60 * (int64_t)(HISTORY_MINUTES + 5);
    for (int64_t at = START; at <= last; at += 30)
        add(past, at, "GPU-a", 40, ALL);
    assert_int_equal(busy_at(past, last - HISTORY_SECONDS + 30, 1), 40);
    assert_int_equal(busy_at(past, last - HISTORY_SECONDS, 1), HISTORY_NOT_KNOWN);
    assert_int_equal(busy_at(past, last - 60 * (int64_t)HISTORY_MINUTES, 60), 40);
    assert_int_equal(busy_at(past, last - 60 * (int64_t)(HISTORY_MINUTES + 1), 60), HISTORY_NOT_KNOWN);
}

CASE(a_gap_is_unknown, past)
{
    add(past, START, "GPU-a", 40, ALL);
    add(past, START + 300, "GPU-a", 60, ALL);
    assert_int_equal(busy_at(past, START, 1), 40);
    assert_int_equal(busy_at(past, START + 150, 1), HISTORY_NOT_KNOWN);
    assert_int_equal(busy_at(past, START + 60, 60), HISTORY_NOT_KNOWN);
    assert_int_equal(busy_at(past, START, 60), 40);
    add(past, START + 864000000, "GPU-a", 70, ALL);
    assert_int_equal(busy_at(past, START + 300, 1), HISTORY_NOT_KNOWN);
    assert_int_equal(busy_at(past, START + 864000000, 1), 70);
}

CASE(a_clock_that_is_set_back_drops_what_never_was, past)
{
    for (int i = 0; i < 300; i++)
        add(past, START + i, "GPU-a", 40, ALL);
    add(past, START + 60, "GPU-a", 80, ALL);
    assert_int_equal(busy_at(past, START + 60, 1), 80);
    assert_int_equal(busy_at(past, START + 61, 1), HISTORY_NOT_KNOWN);
    assert_int_equal(busy_at(past, START + 120, 60), HISTORY_NOT_KNOWN);
    assert_int_equal(busy_at(past, START, 60), 40);
    add(past, START + 61, "GPU-a", 81, ALL);
    assert_int_equal(busy_at(past, START + 61, 1), 81);
    assert_int_equal(busy_at(past, START + 60, 60), 81);
}

CASE(a_restart_loses_nothing, past)
{
    struct error err = { 0 };
    for (int i = 0; i < 150; i++)
        add(past, START + i, "GPU-a", (uint32_t)(i / 60 * 10), ALL);
    assert_int_equal(gpu_history_save(past->history, past->fd, true), 0);
    assert_int_equal(restart(past, &err), 0);
    assert_int_equal(gpu_history_count(past->history), 1);
    assert_int_equal(busy_at(past, START + 70, 1), 10);
    assert_int_equal(busy_at(past, START, 60), 0);
    assert_int_equal(busy_at(past, START + 60, 60), 10);
    for (int i = 150; i < 200; i++)
        add(past, START + i, "GPU-a", 80, ALL);
    assert_int_equal(busy_at(past, START + 120, 60), 50); // one half from before
}

CASE(a_crash_loses_only_what_came_after_the_last_minute, past)
{
    struct error err = { 0 };
    for (int i = 0; i < 3600; i++) {
        add(past, START + i, "GPU-a", 30, ALL);
        if (i % 60 == 30)
            assert_int_equal(gpu_history_save(past->history, past->fd, i == 630), 0);
    }
    assert_int_equal(restart(past, &err), 0);
    for (int64_t minute = 0; minute < 60; minute++)
        assert_int_equal(busy_at(past, START + minute * 60, 60), 30);
    assert_int_equal(busy_at(past, START + 3570, 1), 30);
    assert_int_equal(busy_at(past, START + 3571, 1), HISTORY_NOT_KNOWN);
}

CASE(the_recent_file_is_small, past)
{
    for (int64_t i = 0; i < 60000; i += 10)
        add(past, START + i, "GPU-a", 30, ALL);
    assert_int_equal(gpu_history_save(past->history, past->fd, true), 0);
    assert_int_equal(gpu_history_save(past->history, past->fd, false), 0);
    _cleanup_buffer_ struct buffer bytes = { 0 };
    assert_int_equal(file_read(past->fd, "gpu-history.recent", 1 << 20, &bytes), 0);
    assert_true(bytes.length < 8192);
}

CASE(a_file_that_is_not_right_says_nothing_and_does_no_harm, past)
{
    struct error err = { 0 };
    _cleanup_buffer_ struct buffer bytes = { 0 };
    add(past, START, "GPU-a", 30, ALL);
    assert_int_equal(gpu_history_save(past->history, past->fd, true), 0);
    assert_int_equal(file_read(past->fd, "gpu-history", 1 << 20, &bytes), 0);
    for (size_t length = 0; length < bytes.length; length += 7) {
        assert_int_equal(file_write(past->fd, "gpu-history", bytes.bytes, length, false), 0);
        assert_int_equal(restart(past, &err), -EBADMSG);
        assert_int_equal(gpu_history_count(past->history), 0);
    }
    for (size_t at = 0; at < bytes.length; at += 3) {
        bytes.bytes[at] ^= 0x41;
        assert_int_equal(file_write(past->fd, "gpu-history", bytes.bytes, bytes.length, false), 0);
        assert_int_equal(restart(past, &err), -EBADMSG);
        bytes.bytes[at] ^= 0x41;
    }
    bytes.bytes[8]++; // the version
    assert_int_equal(file_write(past->fd, "gpu-history", bytes.bytes, bytes.length, false), 0);
    assert_int_equal(restart(past, &err), -EBADMSG);
    assert_string_equal(err.message, "gpu-history has an unsupported version");
    add(past, START, "GPU-a", 30, ALL);
    assert_int_equal(gpu_history_save(past->history, past->fd, true), 0);
    assert_int_equal(restart(past, &err), 0);
}

CASE(without_files_it_begins_empty, past)
{
    struct error err = { 0 };
    assert_int_equal(restart(past, &err), 0);
    assert_int_equal(gpu_history_count(past->history), 0);
}

/* So many further GPUs, sampled at that second. */
static void add_others(struct past *past, int64_t second, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char uuid[32];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
        add(past, second, uuid, 30, ALL);
    }
}

CASE(memory_is_bounded_and_more_gpus_have_coarser_steps, past)
{
    static const struct {
        unsigned gpus, level;
    } steps[] = { { 8, 0 }, { 400, 0 }, { 1900, 1 }, { 8000, 3 } };
    int64_t second = START;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        for (int64_t end = second + 100; second < end && gpu_history_bytes(past->history) > 0; second++)
            add_others(past, second, steps[i].gpus); // the others are converted within some seconds
        assert_int_equal(gpu_history_level(past->history), steps[i].level);
        assert_int_equal(gpu_history_count(past->history), steps[i].gpus);
        assert_true(gpu_history_bytes(past->history) <= HISTORY_BYTES_MAX + 4096);
    }
}

CASE(coarser_steps_keep_the_past, past)
{
    int64_t now = START + 7200;
    for (int64_t at = START; at < now; at++)
        add(past, at, "GPU-a", at % 2 == 0 ? 20 : 60, ALL);
    add_others(past, now, 500);
    assert_int_equal(gpu_history_level(past->history), 1);
    add(past, now + 1, "GPU-a", 40, ALL);
    assert_int_equal(busy_at(past, START, 3600), 40);
    assert_int_equal(busy_at(past, START + 600, 60), 40);
    assert_int_equal(look(past, START + 600, 60).max.values[HISTORY_BUSY], 60);
    assert_int_equal(busy_at(past, now - 10, 2), 40); // of both seconds
    assert_int_equal(busy_at(past, START - 600, 300), HISTORY_NOT_KNOWN);
    struct error err = { 0 };
    assert_int_equal(gpu_history_save(past->history, past->fd, true), 0);
    assert_int_equal(restart(past, &err), 0);
    assert_int_equal(busy_at(past, START + 600, 60), 40);
    assert_int_equal(busy_at(past, now - 10, 2), 40);
}

CASE(a_file_of_the_first_version_is_read, past)
{
    struct error err = { 0 };
    enum { FILE_HEAD = 16, GPU_HEAD = 168, GPU_LEVEL = 8 };
    _cleanup_buffer_ struct buffer bytes = { 0 }, old = { 0 };
    add(past, START, "GPU-a", 30, ALL);
    assert_int_equal(gpu_history_save(past->history, past->fd, true), 0);
    assert_int_equal(file_read(past->fd, "gpu-history", 1 << 20, &bytes), 0);
    bytes.bytes[8] = 1;
    size_t rest = FILE_HEAD + GPU_HEAD + GPU_LEVEL;
    buffer_append(&old, bytes.bytes, FILE_HEAD + GPU_HEAD);
    buffer_append(&old, bytes.bytes + rest, bytes.length - rest - sizeof(uint32_t));
    uint32_t sum = crc32c(0, old.bytes, old.length);
    buffer_append(&old, &sum, sizeof(sum));
    assert_int_equal(file_write(past->fd, "gpu-history", old.bytes, old.length, false), 0);
    assert_int_equal(restart(past, &err), 0);
    assert_int_equal(busy_at(past, START, 1), 30);
}

CASE(a_file_in_parts_is_not_seen_before_it_is_whole, past)
{
    struct error err = { 0 };
    unsigned parts = 1;
    for (int64_t at = START; at < START + 6000; at++)
        add(past, at, "GPU-a", 30, ALL);
    add_others(past, START + 6000, 300);
    for (int64_t at = START; at < START + 600; at++)
        add_others(past, at + 6000, 300);
    assert_int_equal(gpu_history_save_begin(past->history, past->fd, true), 0);
    for (int r = gpu_history_save_step(past->history); r == 1; r = gpu_history_save_step(past->history)) {
        assert_int_equal(faccessat(past->fd, "gpu-history", F_OK, 0), -1);
        parts++;
    }
    assert_true(parts > 2);
    assert_int_equal(gpu_history_save_begin(past->history, past->fd, false), 0);
    assert_int_equal(restart(past, &err), 0); // the second is abandoned
    assert_int_equal(gpu_history_count(past->history), 301);
    assert_int_equal(busy_at(past, START + 60, 60), 30);
    (void)unlinkat(past->fd, "gpu-history.recent.new", 0);
}

CASE(a_gpu_that_nobody_saw_for_a_week_is_forgotten, past)
{
    add(past, START, "GPU-old", 30, ALL);
    add(past, START + 60 * (int64_t)(HISTORY_MINUTES + 1), "GPU-a", 30, ALL);
    assert_int_equal(gpu_history_count(past->history), 2);
    assert_int_equal(gpu_history_save(past->history, past->fd, true), 0);
    assert_int_equal(gpu_history_count(past->history), 1);
}
