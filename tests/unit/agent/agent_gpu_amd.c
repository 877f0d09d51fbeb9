/* SPDX-License-Identifier: MIT */
/* The AMD backend on a made-up sysfs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/gpu.h"
#include "base/files.h"
#include "base/memory.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

#define NO_LIBRARY "/nowhere/librocm_smi64.so"

static char root[] = "/tmp/mgpu-sysfs-XXXXXX";

static void put(const char *path, const char *text)
{
    _cleanup_free_ char *whole = xasprintf("%s/%s", root, path), *folder = xstrdup(whole);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(make_directories(folder, 0755), 0);
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void put_in(const char *folder, const char *name, const char *text)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
    put(path, text);
}

static void remove_tree(const char *path)
{
    _cleanup_free_ char *whole = xasprintf("%s%s", root, path);
    (void)unit_test_remove(whole);
}

/* What class/drm has of every card, whoever made it. The caller frees the folder's name. */
static char *add_card(unsigned number, const char *pci, const char *vendor)
{
    char *folder = xasprintf("devices/%s", pci);
    _cleanup_free_ char *card = xasprintf("%s/class/drm/card%u", root, number);
    _cleanup_free_ char *link = xasprintf("%s/device", card);
    _cleanup_free_ char *target = xasprintf("../../../devices/%s", pci);
    put_in(folder, "vendor", vendor);
    put_in(folder, "device", "0x740f\n");
    assert_int_equal(make_directories(card, 0755), 0);
    assert_int_equal(symlink(target, link), 0);
    return folder;
}

static void add_node(unsigned number, unsigned gpu_id, const char *properties)
{
    _cleanup_free_ char *folder = xasprintf("class/kfd/kfd/topology/nodes/%u", number);
    _cleanup_free_ char *id = xasprintf("%u\n", gpu_id);
    put_in(folder, "gpu_id", id);
    put_in(folder, "properties", properties);
}

static int set_up(void **state)
{
    char *folder = add_card(2, "0000:83:00.0", "0x1002\n");
    put_in(folder, "unique_id", "1a2b3c4d5e6f7081\n");
    put_in(folder, "product_name", "AMD Instinct MI210\n");
    put_in(folder, "gpu_busy_percent", "37\n");
    put_in(folder, "mem_info_vram_total", "68702699520\n");
    put_in(folder, "mem_info_vram_used", "1073741824\n");
    put_in(folder, "drm/renderD129/dev", "226:129\n");
    put_in(folder, "hwmon/hwmon5/temp2_input", "61000\n"); // it has no temp1
    put_in(folder, "hwmon/hwmon5/power1_average", "143000000\n");
    put_in(folder, "hwmon/hwmon5/power1_cap", "300000000\n");
    put_in(folder, "hwmon/hwmon5/freq1_input", "1700000000\n");
    put_in(folder, "hwmon/hwmon5/freq2_input", "1600000000\n");
    put_in(folder, "hwmon/hwmon5/energy1_input", "123456789\n");
    put_in(folder, "ras/umc_err_count", "ue: 1\nce: 5\n");
    free(folder);
    folder = add_card(0, "0000:03:00.0", "0x1002\n");
    put_in(folder, "unique_id", "00000000000000ab\n");
    put_in(folder, "mem_info_vram_total", "68702699520\n");
    put_in(folder, "drm/renderD128/dev", "226:128\n");
    free(folder);
    free(add_card(1, "0000:01:00.0", "0x1a03\n")); // what the console is on
    free(add_card(3, "0000:99:00.0", "0x1002\n")); // it draws and cannot compute
    put("class/drm/card0-DP-1/status", "disconnected\n");
    add_node(0, 0, "cpu_cores_count 64\n");
    add_node(1, 4711, "simd_count 416\ndomain 0\nlocation_id 768\n");
    add_node(2, 4712, "simd_count 416\ndomain 0\nlocation_id 33536\n");
    put("class/kfd/kfd/topology/nodes/1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\n");
    put("class/kfd/kfd/topology/nodes/1/io_links/1/properties", "type 11\nnode_from 1\nnode_to 2\n");
    put("class/kfd/kfd/topology/nodes/2/io_links/0/properties", "type 11\nnode_from 2\nnode_to 1\n");
    put("class/kfd/kfd/proc/100/vram_4711", "0\n");
    put("class/kfd/kfd/proc/100/vram_4712", "4096\n");
    put("class/kfd/kfd/proc/200/vram_4712", "8192\n");
    return 0;
}

static int tear_down(void **state)
{
    remove_tree("/class");
    remove_tree("/devices");
    return 0;
}

#define CASE(name) TEST_WITH(name, set_up, tear_down)

static void open_amd(void **ret, size_t count)
{
    const struct gpu_spec spec = {
        .kind = GPU_SPEC_VENDOR, .vendor = GPU_VENDOR_AMD, .sysfs_root = root, .rocm_library = NO_LIBRARY
    };
    struct error err = { 0 };
    if (gpu_amd.open(&spec, NULL, ret, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(gpu_amd.count(*ret), count);
}

CASE(without_its_library_it_says_that)
{
    void *amd;
    char text[256];
    open_amd(&amd, 2);
    gpu_amd.remark(amd, text, sizeof(text));
    assert_non_null(strstr(text, "ROCm's library is not used: it cannot be loaded: " NO_LIBRARY));
    gpu_amd.close(amd);
}

CASE(gpus_that_compute_come_in_pci_order_with_all_their_values)
{
    void *amd;
    struct gpu_state gpu = { 0 };
    open_amd(&amd, 2);
    assert_string_equal(gpu_amd.key(amd, 1), "0000:83:00.0");
    gpu_amd.describe(amd, 1, &gpu);
    gpu_amd.sample(amd, 1, &gpu);
    assert_string_equal(gpu.uuid, "GPU-1a2b3c4d5e6f7081");
    assert_string_equal(gpu.model, "AMD Instinct MI210");
    assert_string_equal(gpu.pci, "0000:83:00.0");
    assert_int_equal(gpu.vendor, GPU_VENDOR_AMD);
    assert_int_equal(gpu.render_minor, 129);
    assert_int_equal(gpu.minor, -1);
    assert_int_equal(gpu.memory_bytes, UINT64_C(68702699520));
    assert_int_equal(gpu.links, 1);
    assert_int_equal(gpu.valid, GPU_MEMORY_USED | GPU_UTILIZATION | GPU_TEMPERATURE | GPU_POWER |
                                    GPU_POWER_LIMIT | GPU_ENERGY | GPU_SM_CLOCK | GPU_MEMORY_CLOCK | GPU_ECC |
                                    GPU_PROCESSES);
    assert_int_equal(gpu.memory_used_bytes, 1 << 30);
    assert_int_equal(gpu.utilization_percent, 37);
    assert_int_equal(gpu.temperature_c, 61);
    assert_int_equal(gpu.power_mw, 143000);
    assert_int_equal(gpu.power_limit_mw, 300000);
    assert_int_equal(gpu.energy_mj, 123456);
    assert_int_equal(gpu.sm_clock_mhz, 1700);
    assert_int_equal(gpu.memory_clock_mhz, 1600);
    assert_int_equal(gpu.ecc_uncorrected, 1);
    assert_int_equal(gpu.ecc_corrected, 5);
    record_clear(&gpu_state_record, &gpu);
    gpu_amd.close(amd);
}

/* The kernel lists a process with every GPU. */
CASE(processes_are_those_with_memory_there)
{
    void *amd;
    struct gpu_state gpu = { 0 };
    open_amd(&amd, 2);
    gpu_amd.sample(amd, 1, &gpu);
    const struct gpu_process *processes = gpu.processes.items;
    assert_int_equal(gpu.processes.count, 2);
    assert_int_equal(processes[0].pid, 200);
    assert_int_equal(processes[0].memory_bytes, 8192);
    assert_int_equal(processes[1].pid, 100);
    gpu_amd.sample(amd, 0, &gpu);
    assert_int_equal(gpu.processes.count, 0);
    assert_true((gpu.valid & GPU_PROCESSES) != 0);
    record_clear(&gpu_state_record, &gpu);
    gpu_amd.close(amd);
}

CASE(what_is_not_told_or_cannot_be_true_is_missing)
{
    void *amd;
    struct gpu_state gpu = { 0 };
    open_amd(&amd, 2);
    gpu_amd.describe(amd, 0, &gpu);
    gpu_amd.sample(amd, 0, &gpu);
    assert_string_equal(gpu.model, "AMD GPU 0x740f");
    assert_int_equal(gpu.valid, GPU_PROCESSES);
    record_clear(&gpu_state_record, &gpu);
    put("devices/0000:83:00.0/gpu_busy_percent", "101\n");
    put("devices/0000:83:00.0/mem_info_vram_used", "68702699521\n");
    put("devices/0000:83:00.0/hwmon/hwmon5/temp2_input", "N/A\n");
    put("devices/0000:83:00.0/hwmon/hwmon5/power1_average", "99999999999999999999999\n");
    put("devices/0000:83:00.0/hwmon/hwmon5/freq1_input", "\n");
    put("devices/0000:83:00.0/hwmon/hwmon5/energy1_input", "-1\n");
    put("devices/0000:83:00.0/ras/umc_err_count", "ue: -\n");
    gpu_amd.describe(amd, 1, &gpu);
    gpu_amd.sample(amd, 1, &gpu);
    assert_int_equal(gpu.valid, GPU_POWER_LIMIT | GPU_MEMORY_CLOCK | GPU_PROCESSES);
    record_clear(&gpu_state_record, &gpu);
    gpu_amd.close(amd);
}

/* A card without a programmed EEPROM has anything there. */
CASE(what_a_card_calls_itself_is_text)
{
    void *amd;
    struct gpu_state gpu = { 0 };
    struct error err = { 0 };
    char name[256];
    memset(name, 'x', sizeof(name) - 1);
    memcpy(name, "\xff\x1b[31m", 6);
    name[sizeof(name) - 1] = '\0';
    put("devices/0000:83:00.0/product_name", name);
    open_amd(&amd, 2);
    gpu_amd.describe(amd, 1, &gpu);
    assert_non_null(strstr(gpu.model, "\\xff\\x1b[31mxxx"));
    assert_int_equal(record_check(&gpu_state_record, &gpu, &err), 0);
    record_clear(&gpu_state_record, &gpu);
    gpu_amd.close(amd);
}

CASE(a_gpu_without_a_unique_id_is_known_by_its_slot)
{
    void *amd;
    struct gpu_state gpu = { 0 };
    put("devices/0000:03:00.0/unique_id", "0\n");
    open_amd(&amd, 2);
    gpu_amd.describe(amd, 0, &gpu);
    assert_string_equal(gpu.uuid, "PCI-0000:03:00.0");
    record_clear(&gpu_state_record, &gpu);
    gpu_amd.close(amd);
}

CASE(a_gpu_in_partitions_is_not_offered)
{
    struct gpu_state gpu = { 0 };
    void *amd = NULL;
    open_amd(&amd, 2);
    gpu_amd.describe(amd, 0, &gpu);
    gpu_amd.sample(amd, 0, &gpu);
    assert_null(gpu.refusal);
    put_in("devices/0000:03:00.0", "current_compute_partition", "CPX\n");
    gpu_amd.sample(amd, 0, &gpu);
    assert_string_equal(
        gpu.refusal, "its compute partition mode is CPX, and mgpu offers whole GPUs only (SPX)");
    put_in("devices/0000:03:00.0", "current_compute_partition", "SPX\n");
    gpu_amd.sample(amd, 0, &gpu);
    assert_null(gpu.refusal);
    record_clear(&gpu_state_record, &gpu);
    gpu_amd.close(amd);
}

CASE(a_gpu_that_vanishes_is_lost)
{
    void *amd;
    struct gpu_state gpu = { 0 };
    open_amd(&amd, 2);
    remove_tree("/devices/0000:83:00.0");
    gpu_amd.sample(amd, 1, &gpu);
    assert_int_equal(gpu.is_lost, 1);
    assert_int_equal(gpu.valid, 0);
    assert_non_null(gpu.trouble);
    record_clear(&gpu_state_record, &gpu);
    gpu_amd.close(amd);
}

CASE(a_gpu_that_is_left_out_is_not_looked_at)
{
    const struct gpu_spec spec = {
        .kind = GPU_SPEC_VENDOR, .vendor = GPU_VENDOR_AMD, .sysfs_root = root, .rocm_library = NO_LIBRARY
    };
    struct gpu_progress *stage = gpu_progress_new();
    void *amd;
    assert_true(gpu_progress_leave_out(stage, "0000:03:00.0"));
    assert_int_equal(gpu_amd.open(&spec, stage, &amd, NULL), 0);
    assert_int_equal(gpu_amd.count(amd), 1);
    assert_string_equal(gpu_amd.key(amd, 0), "0000:83:00.0");
    gpu_amd.close(amd);
    gpu_progress_free(stage);
}

CASE(a_machine_without_one_says_so)
{
    const struct gpu_spec spec = {
        .kind = GPU_SPEC_VENDOR, .vendor = GPU_VENDOR_AMD, .sysfs_root = root, .rocm_library = NO_LIBRARY
    };
    struct error err = { 0 };
    void *amd;
    remove_tree("/class/kfd");
    assert_int_equal(gpu_amd.open(&spec, NULL, &amd, &err), -ENODEV);
    assert_non_null(strstr(err.message, "no AMD GPU with compute support"));
    assert_true(err.hint[0] != '\0');
}

int main(void)
{
    if (mkdtemp(root) == NULL)
        return EXIT_FAILURE;
    int failed = unit_tests_run(NULL, NULL);
    (void)rmdir(root);
    return failed;
}
