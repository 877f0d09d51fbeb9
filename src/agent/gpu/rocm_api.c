/* SPDX-License-Identifier: MIT */
/*
 * The name of the library contains its version, and distributions have their own versions: the names are a
 * table, as are those of the functions.
 *
 * Clocks have had two layouts, which no version number distinguishes reliably:
 *
 *      before ROCm 6   count u32, current u32, hertz u64[32]
 *      since           sleeps bool, count u32, current u32, hertz u64[33]
 *
 * They are distinguished by their contents. The new layout read as the old one has a count of 0 or 1, or an
 * implausible one with a current clock beyond it; the old one read as the new one has a count of 0.
 */
#include "agent/gpu/rocm_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define CLOCKS_OLD 32U // maximum number of clocks of one kind
#define CLOCKS_NEW 33U

static const char *const files[] = { "librocm_smi64.so", "librocm_smi64.so.7", "librocm_smi64.so.6",
    "librocm_smi64.so.5", "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so" };

static const struct {
    size_t offset;
    bool is_required;
    const char *name;
} symbols[] = {
    { offsetof(struct rocm_api, init), true, "rsmi_init" },
    { offsetof(struct rocm_api, shut_down), true, "rsmi_shut_down" },
    { offsetof(struct rocm_api, status_string), false, "rsmi_status_string" },
    { offsetof(struct rocm_api, count), true, "rsmi_num_monitor_devices" },
    { offsetof(struct rocm_api, pci), true, "rsmi_dev_pci_id_get" },
    { offsetof(struct rocm_api, energy), false, "rsmi_dev_energy_count_get" },
    { offsetof(struct rocm_api, power_limit), false, "rsmi_dev_power_cap_get" },
    { offsetof(struct rocm_api, clocks), false, "rsmi_dev_gpu_clk_freq_get" },
    { offsetof(struct rocm_api, ecc_blocks), false, "rsmi_dev_ecc_enabled_get" },
    { offsetof(struct rocm_api, ecc), false, "rsmi_dev_ecc_count_get" },
};

static int load_symbols(struct rocm_api *api, struct error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(api->library, symbols[i].name);
        if (symbol == NULL && symbols[i].is_required)
            return error_set(err, -ENODEV, "it has no %s", symbols[i].name);
        memcpy((char *)api + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

static void *open_library(const char *path)
{
    void *library = NULL;
    if (path != NULL)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library == NULL && i < sizeof(files) / sizeof(files[0]); i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

int rocm_api_load(const char *path, struct rocm_api *ret, struct error *err)
{
    *ret = (struct rocm_api){ .library = open_library(path) };
    if (ret->library == NULL)
        return path == NULL ? error_set(err, -ENODEV, "no librocm_smi64.so can be loaded")
                            : error_set(err, -ENODEV, "it cannot be loaded: %s", dlerror());
    int r = load_symbols(ret, err);
    if (r < 0) {
        (void)dlclose(ret->library);
        *ret = (struct rocm_api){ 0 };
    }
    return r;
}

const char *rocm_api_describe(const struct rocm_api *api, int code)
{
    const char *text = NULL;
    if (api->status_string == NULL || api->status_string(code, &text) != ROCM_SUCCESS || text == NULL)
        return "unknown error";
    return text;
}

/* True if the value is plausible with the count at byte `at`. */
static bool read_clock(const unsigned char *bytes, size_t at, uint32_t max, uint64_t *ret_hertz)
{
    uint32_t count, current;
    size_t first = (at + 2 * sizeof(count) + 7) / 8 * 8;
    memcpy(&count, bytes + at, sizeof(count));
    memcpy(&current, bytes + at + sizeof(count), sizeof(current));
    if (count == 0 || count > max || current >= count)
        return false;
    memcpy(ret_hertz, bytes + first + current * sizeof(*ret_hertz), sizeof(*ret_hertz));
    return true;
}

bool rocm_api_clock(const void *clocks, uint64_t *ret_hertz)
{
    return read_clock(clocks, 0, CLOCKS_OLD, ret_hertz) ||
           read_clock(clocks, sizeof(uint32_t), CLOCKS_NEW, ret_hertz);
}
