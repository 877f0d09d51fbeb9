/* SPDX-License-Identifier: MIT */
/*
 * ROCm's library has its own order of GPUs; they are found by their PCI addresses. Each value has a function
 * that rejects implausible values.
 */
#include "agent/gpu/rocm_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/rocm_api.h"
#include "wire/message.h"

#define DEVICES_MAX  1024U
#define POWER_MAX    UINT64_C(10000000)           // milliwatts
#define CLOCK_MAX    UINT64_C(100000)             // megahertz
#define ENERGY_MAX   1e18                         // millijoules
#define ADDRESS_MASK UINT64_C(0xffffffff0000ffff) // without the number of a partition

struct reader {
    struct rocm_api api;
    size_t count;
    struct {
        bool is_known; // known to the library, under `index`
        uint32_t index;
        uint64_t address; // in the library's form
    } gpus[NODE_GPUS_MAX];
};

static void read_energy(const struct rocm_api *api, uint32_t index, struct rocm_values *values)
{
    uint64_t counter = 0, timestamp_ns = 0;
    float microjoules = 0; // of one count
    if (api->energy == NULL || api->energy(index, &counter, &microjoules, &timestamp_ns) != ROCM_SUCCESS)
        return;
    double millijoules = (double)counter * (double)microjoules / 1000;
    /* GPUs without a counter report one that is stuck at either end. */
    if (counter == 0 || counter == UINT64_MAX || !(millijoules >= 1 && millijoules <= ENERGY_MAX))
        return;
    values->energy_mj = (uint64_t)millijoules;
    values->valid |= GPU_ENERGY;
}

static void read_ecc(const struct rocm_api *api, uint32_t index, struct rocm_values *values)
{
    struct rocm_errors errors = { 0 };
    uint64_t enabled = 0;
    if (api->ecc == NULL || api->ecc_blocks == NULL || api->ecc_blocks(index, &enabled) != ROCM_SUCCESS ||
        (enabled & ROCM_BLOCK_MEMORY) == 0 || api->ecc(index, ROCM_BLOCK_MEMORY, &errors) != ROCM_SUCCESS ||
        errors.corrected == UINT64_MAX || errors.uncorrected == UINT64_MAX)
        return;
    values->ecc_corrected = errors.corrected;
    values->ecc_uncorrected = errors.uncorrected;
    values->valid |= GPU_ECC;
}

static void read_power_limit(const struct rocm_api *api, uint32_t index, struct rocm_values *values)
{
    uint64_t microwatts = 0;
    if (api->power_limit == NULL || api->power_limit(index, 0, &microwatts) != ROCM_SUCCESS ||
        microwatts == 0 || microwatts / 1000 > POWER_MAX)
        return;
    values->power_limit_mw = (uint32_t)(microwatts / 1000);
    values->valid |= GPU_POWER_LIMIT;
}

static bool read_clock(const struct rocm_api *api, uint32_t index, int kind, uint32_t *ret_mhz)
{
    _Alignas(uint64_t) unsigned char clocks[ROCM_CLOCKS_SIZE] = { 0 };
    uint64_t hertz = 0;
    if (api->clocks == NULL || api->clocks(index, kind, clocks) != ROCM_SUCCESS ||
        !rocm_api_clock(clocks, &hertz) || hertz / 1000000 > CLOCK_MAX)
        return false;
    *ret_mhz = (uint32_t)(hertz / 1000000);
    return true;
}

static void read_sm_clock(const struct rocm_api *api, uint32_t index, struct rocm_values *values)
{
    if (read_clock(api, index, ROCM_CLOCK_SM, &values->sm_clock_mhz))
        values->valid |= GPU_SM_CLOCK;
}

static void read_memory_clock(const struct rocm_api *api, uint32_t index, struct rocm_values *values)
{
    if (read_clock(api, index, ROCM_CLOCK_MEMORY, &values->memory_clock_mhz))
        values->valid |= GPU_MEMORY_CLOCK;
}

static void (*const readers[])(const struct rocm_api *api, uint32_t index, struct rocm_values *values) = {
    read_energy, read_ecc, read_power_limit, read_sm_clock, read_memory_clock
};

/* --- the GPUs --- */

static uint64_t read_address(const char *text)
{
    static const char ends[] = { ':', ':', '.', '\0' };
    uint64_t parts[sizeof(ends)]; // domain, bus, slot, function
    for (size_t i = 0; i < sizeof(ends); i++) {
        char *end;
        parts[i] = strtoull(text, &end, 16);
        if (end == text || *end != ends[i])
            return UINT64_MAX; // no address has these bits
        text = end + 1;
    }
    return parts[0] << 32 | (parts[1] & 0xff) << 8 | (parts[2] & 0x1f) << 3 | (parts[3] & 7);
}

/* Of a partitioned GPU the first partition is used, which has the address of the whole. */
static size_t find_gpus(struct reader *reader)
{
    uint32_t count = 0;
    size_t found = 0;
    if (reader->api.count(&count) != ROCM_SUCCESS || count > DEVICES_MAX)
        return 0;
    for (uint32_t index = 0; index < count; index++) {
        uint64_t address = 0;
        if (reader->api.pci(index, &address) != ROCM_SUCCESS)
            continue;
        for (size_t i = 0; i < reader->count; i++) {
            if (reader->gpus[i].is_known || reader->gpus[i].address != (address & ADDRESS_MASK))
                continue;
            reader->gpus[i].is_known = true;
            reader->gpus[i].index = index;
            found++;
        }
    }
    return found;
}

static int open_library(struct reader *reader, const char *library, struct error *err)
{
    int r = rocm_api_load(library, &reader->api, err);
    if (r < 0)
        return r;
    int code = reader->api.init(ROCM_INIT_OWN_LOCKS);
    if (code != ROCM_SUCCESS)
        return error_set(err, -EIO, "it does not start: %s", rocm_api_describe(&reader->api, code));
    return find_gpus(reader) > 0 ? 0 : error_set(err, -ENODEV, "it knows none of these GPUs");
}

static bool write_news(int fd, const struct rocm_news *news)
{
    return write(fd, news, sizeof(*news)) == (ssize_t)sizeof(*news);
}

static bool read_gpus(const struct reader *reader, int fd)
{
    for (size_t i = 0; i < reader->count; i++) {
        struct rocm_news news = { .position = (uint32_t)i };
        for (size_t k = 0; reader->gpus[i].is_known && k < sizeof(readers) / sizeof(readers[0]); k++)
            readers[k](&reader->api, reader->gpus[i].index, &news.values);
        if (!write_news(fd, &news))
            return false;
    }
    return write_news(fd, &(struct rocm_news){ .position = ROCM_ALL_GPUS });
}

void rocm_reader_run(int fd, const char *library, const char *const *addresses, size_t count)
{
    struct reader reader = { .count = count < NODE_GPUS_MAX ? count : NODE_GPUS_MAX };
    struct rocm_news failure = { .position = ROCM_ALL_GPUS };
    struct error err = { 0 };
    for (size_t i = 0; i < reader.count; i++)
        reader.gpus[i].address = read_address(addresses[i]);
    if (open_library(&reader, library, &err) < 0) {
        (void)snprintf(failure.why, sizeof(failure.why), "%.*s", (int)sizeof(failure.why) - 1, err.message);
        (void)write_news(fd, &failure);
        return;
    }
    struct pollfd gone = { .fd = fd }; // POLLERR: the reader has closed
    while (read_gpus(&reader, fd) && poll(&gone, 1, ROCM_PERIOD_MS) == 0)
        ;
    (void)reader.api.shut_down();
}
