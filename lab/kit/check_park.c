/* SPDX-License-Identifier: MIT */
/*
 * Jobs whose GPU memory goes to host memory and comes back. A job fills its memory with a pattern whose
 * positions have 64 bits, and compares it at its end; before it, a job with the same memory that is not
 * parked does the same, so that a faulty check can be distinguished from memory changed by parking.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define PARK_MIB_S   1000  // the slowest that is awaited: an H200 saved 1900, and restored 5400
#define CHECK_MIB_S  4000  // a program that takes memory, fills and compares it
#define HOLD_S       "600" // it ends before, once it was parked
#define GIB_MIB      1024
#define LESS_PERCENT 25U // of the free memory of the GPU
#define MOST_PERCENT 90U
#define HOST_PERCENT 70 // of the host memory that is available; the rest is the machine's
#define MEMINFO_MAX  65536U
#define KIB_PER_MIB  1024

/* For how long a check may wait that moves so much memory at that speed. */
static int64_t time_for(long long mib, long long mib_per_s, int64_t spare_ms)
{
    return spare_ms + mib * 1000 / mib_per_s;
}

/* Host memory that is available; 0: not known. */
static long long available_mib(void)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    long long kib = 0;
    if (file_read(AT_FDCWD, "/proc/meminfo", MEMINFO_MAX, &text) == 0) {
        const char *line = strstr(buffer_text(&text), "MemAvailable:");
        if (line != NULL)
            (void)sscanf(line, "MemAvailable: %lld", &kib);
    }
    return kib / KIB_PER_MIB;
}

/* The memory that a check takes: `mib`, or with 0 as much as fits both sides. 0 after result_skip(). */
static long long choose_mib(const struct kit *kit, long long mib, struct result *result)
{
    char text[PROBE_SIZE];
    long long gpu = 0, host = available_mib() * HOST_PERCENT / 100;
    probe_size(kit, MOST_PERCENT, INT64_MAX, text);
    (void)sscanf(text, "%lld", &gpu);
    result_fact(result, "gpu_mib", json_integer(gpu));
    result_fact(result, "host_mib", json_integer(host));
    if (mib > gpu)
        result_skip(result, "it needs %lld MiB of the GPU, and %lld can be used", mib, gpu);
    else if (mib > host)
        result_skip(result, "it needs %lld MiB of host memory, and %lld can be used", mib, host);
    else
        return mib > 0 ? mib : gpu < host ? gpu : host;
    return 0;
}

/* The same memory, filled and compared without parking. False after result_fail(). */
static bool is_control_right(struct kit *kit, const char *memory, int64_t most_ms, struct result *result)
{
    const char *const hold[] = { "hold", "-m", memory, "-s", "0", NULL };
    int64_t job = probe_submit(kit, parking_gpu, hold, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, most_ms, result);
    if (record == NULL)
        return false;
    bool is_right = strcmp(record_word(record, "state"), "done") == 0;
    json_decref(record);
    result_fact(result, "control", json_incref(json_object_get(result->facts, "output")));
    if (!is_right)
        result_fail(result, "memory is wrong in a job that was not parked: the GPU or the check is at fault");
    return is_right;
}

static double gb_per_s(const struct result *result, const char *name, long long mib)
{
    double ms = (double)json_integer_value(json_object_get(result->facts, name));
    return ms > 0 ? (double)mib * (1 << 20) / 1e6 / ms : 0;
}

/* The job checks its memory at its end. A job that is not parked continues, and must not notice. */
static void park_size(struct kit *kit, long long mib, struct result *result)
{
    char memory[PROBE_SIZE];
    int64_t check_ms = time_for(mib, CHECK_MIB_S, PARKING_END_MS),
            park_ms = time_for(mib, PARK_MIB_S, PARKING_MS);
    (void)snprintf(memory, sizeof(memory), "%lldM", mib);
    const char *const hold[] = { "hold", "-m", memory, "-s", HOLD_S, "--until-continued", NULL };
    if (!probe_has_verb(kit, "park", NULL, result) || !is_control_right(kit, memory, check_ms, result))
        return;
    int64_t job = parking_start(kit, parking_gpu, hold, 1, check_ms, result);
    if (job < 0)
        return;
    bool is_back = parking_cycle(kit, job, park_ms, result);
    parking_let_go(kit, job);
    json_t *record = probe_wait(kit, job, check_ms, result);
    if (record != NULL && strcmp(record_word(record, "state"), "done") != 0)
        result_fail(result, "the job ended as %s; the same memory was correct without parking",
            record_word(record, "state"));
    else if (record != NULL && is_back)
        result_pass(result, "%lld MiB parked (%.1f GB/s) and resumed (%.1f GB/s), and right", mib,
            gb_per_s(result, "park_ms", mib), gb_per_s(result, "unpark_ms", mib));
    json_decref(record);
}

static void check_park(struct kit *kit, struct result *result)
{
    char memory[PROBE_SIZE];
    long long mib = 1;
    probe_size(kit, LESS_PERCENT, GIB_MIB, memory);
    (void)sscanf(memory, "%lld", &mib);
    if (choose_mib(kit, mib, result) > 0)
        park_size(kit, mib, result);
    if (result->outcome == OUTCOME_SKIPPED)
        kit->no_park = xstrdup(result->text);
}

/* The same with more memory, where the first could be parked. */
static void park_fitting(struct kit *kit, long long gib, struct result *result)
{
    long long mib = choose_mib(kit, gib * GIB_MIB, result);
    if (mib > 0 && kit->no_park != NULL)
        result_skip(result, "%s", kit->no_park);
    else if (mib > 0)
        park_size(kit, mib, result);
}

static void check_park_8(struct kit *kit, struct result *result)
{
    park_fitting(kit, 8, result);
}

static void check_park_40(struct kit *kit, struct result *result)
{
    park_fitting(kit, 40, result);
}

static void check_park_most(struct kit *kit, struct result *result)
{
    park_fitting(kit, 0, result);
}

/* Memory that the driver may not be able to save: the job must then run on, with its memory right. */
static void check_park_managed(struct kit *kit, struct result *result)
{
    static const char *const managed[] = { "managed", "-s", HOLD_S, "--until-continued", NULL };
    if (!probe_has_verb(kit, "park", NULL, result))
        return;
    int64_t job = parking_start(kit, parking_gpu, managed, 1, PARKING_MS, result);
    if (job < 0)
        return;
    parking_try(kit, job, "its memory was correct", result);
}

const struct check kit_park_checks[] = {
    { "park", "a job parked and resumed", 5000, NEED_JOBS, check_park, RANK_HIGH },
    { "park-managed", "parking memory that GPU and program share", 4000, NEED_JOBS, check_park_managed,
        RANK_MIDDLE },
    { "park-8", "8 GiB parked and resumed", 16000, NEED_JOBS, check_park_8, RANK_HIGH },
    { "park-40", "40 GiB parked and resumed", 50000, NEED_JOBS, check_park_40, RANK_HIGH },
    { "park-most", "as much as fits parked and resumed", 90000, NEED_JOBS, check_park_most, RANK_LOW },
    { 0 },
};
