/* SPDX-License-Identifier: MIT */
/* MIG instances of the stand-in library, from NVML's answers to the roster. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gpu/gpu.h"
#include "base/clock.h"
#include "base/memory.h"
#include "unit_test.h"

#define GPUS                                                                                                 \
    "gpu 0 81 143771 1024 50 61 300000 GPU-divided NVIDIA H200\n"                                            \
    "gpu 0 3b 143771 512 7 40 90000 GPU-whole NVIDIA H200\n"                                                 \
    "more 0 1 700000 1 1 1 0 0\nmore 1 0 700000 1 1 1 0 0\n"
#define SMALL  "instance 0 9 0 16384 512 MIG-small 1g.18gb\n"
#define LARGE  "instance 0 1 0 71680 128 MIG-large 3g.71gb\n"
#define SLICE  "instance 0 2 1 35840 64 MIG-slice 1c.2g.35gb\n"
#define MIG_ON "mig 0 1 1\nmig 1 0 0\n"

static char state_path[] = "/tmp/mgpu-mig-XXXXXX";

static void machine_is(const char *text)
{
    FILE *file = fopen(state_path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The GPU in MIG mode is the second, its instances follow. */
static void *open_machine(const char *text, size_t count)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    void *nvml = NULL;
    machine_is(text);
    if (gpu_nvml.open(&spec, NULL, &nvml, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(gpu_nvml.count(nvml), count);
    return nvml;
}

static void read_gpu(void *nvml, size_t i, struct gpu_state *gpu)
{
    gpu_nvml.describe(nvml, i, gpu);
    gpu_nvml.sample(nvml, i, gpu);
}

TEST(instances_are_gpus_of_their_own)
{
    struct gpu_state gpu = { 0 };
    void *nvml = open_machine(GPUS MIG_ON LARGE SMALL "process 101 compute 4711 300\n", 4);
    read_gpu(nvml, 3, &gpu);
    assert_int_equal(gpu.index, 3);
    assert_string_equal(gpu.uuid, "MIG-small");
    assert_string_equal(gpu.model, "MIG 1g.18gb");
    assert_string_equal(gpu.parent, "GPU-divided");
    assert_string_equal(gpu.pci, "0000:81:00.0");
    assert_int_equal(gpu.minor, 1);
    assert_int_equal(gpu.gpu_instance, 9);
    assert_int_equal(gpu.compute_instance, 0);
    assert_int_equal(gpu.memory_bytes, UINT64_C(16) << 30);
    assert_int_equal(gpu.memory_used_bytes, UINT64_C(512) << 20);
    assert_int_equal(gpu.valid, GPU_MEMORY_USED | GPU_PROCESSES);
    assert_int_equal(gpu.processes.count, 1);
    assert_int_equal(((const struct gpu_process *)gpu.processes.items)->pid, 4711);
    assert_null(gpu.refusal);
    record_clear(&gpu_state_record, &gpu);
    read_gpu(nvml, 2, &gpu);
    assert_string_equal(gpu.uuid, "MIG-large");
    assert_int_equal(gpu.processes.count, 0);
    record_clear(&gpu_state_record, &gpu);
    gpu_nvml.close(nvml);
}

TEST(a_gpu_with_instances_is_refused_as_a_whole)
{
    struct gpu_state gpu = { 0 };
    void *nvml = open_machine(GPUS MIG_ON LARGE SMALL "process 1 compute 9 1\n", 4);
    read_gpu(nvml, 1, &gpu);
    assert_string_equal(gpu.uuid, "GPU-divided");
    assert_string_equal(gpu.refusal, "MIG mode is on: its 2 instances are offered instead");
    assert_true((gpu.valid & GPU_LAYOUT) != 0);
    assert_int_equal(gpu.valid & GPU_PROCESSES, 0);
    record_clear(&gpu_state_record, &gpu);
    read_gpu(nvml, 0, &gpu);
    assert_string_equal(gpu.uuid, "GPU-whole");
    assert_null(gpu.refusal);
    assert_null(gpu.parent);
    record_clear(&gpu_state_record, &gpu);
    gpu_nvml.close(nvml);
}

/* Without a name that has the profile, the slices and eighths of the memory give it. */
TEST(the_profile_is_computed_where_the_name_has_none)
{
    static const struct {
        const char *line, *model;
    } rows[] = {
        { LARGE, "MIG 3g.71gb" }, { SMALL, "MIG 1g.18gb" }, { SLICE, "MIG 1c.2g.35gb" },
        { "fail nvmlDeviceGetAttributes_v2 3\n" SMALL, "MIG unknown" },
        { "fail nvmlDeviceGetMemoryInfo 3\n" SMALL, "MIG 1g.16gb" }, // the memory of the GPU is not known
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gpu_state gpu = { 0 };
        _cleanup_free_ char *text =
            xasprintf("%s%s", GPUS MIG_ON "fail nvmlDeviceGetName 999\n", rows[i].line);
        void *nvml = open_machine(text, 3);
        gpu_nvml.describe(nvml, 2, &gpu);
        assert_string_equal(gpu.model, rows[i].model);
        record_clear(&gpu_state_record, &gpu);
        gpu_nvml.close(nvml);
    }
}

/* Neither is the GPU offered, nor anything that is not known to be an instance. */
TEST(a_driver_that_does_not_list_its_instances_offers_none)
{
    static const struct {
        const char *lines, *refusal;
    } rows[] = {
        { "", "MIG mode is on, and it has no instances" },
        { SMALL "fail nvmlDeviceGetMaxMigDeviceCount 999\n",
            "MIG mode is on, and the driver does not list its instances" },
        { SMALL "fail nvmlDeviceGetMigDeviceHandleByIndex 999\n",
            "MIG mode is on, and the driver does not list its instances" },
        { SMALL "fail nvmlDeviceGetGpuInstanceId 3\n",
            "MIG mode is on, and the driver does not list its instances" },
        { SMALL "fail nvmlDeviceGetComputeInstanceId 3\n",
            "MIG mode is on, and the driver does not list its instances" },
        { SMALL "mig_count 0 0\n", "MIG mode is on, and it has no instances" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gpu_state gpu = { 0 };
        _cleanup_free_ char *text = xasprintf("%s%s", GPUS MIG_ON, rows[i].lines);
        void *nvml = open_machine(text, 2);
        read_gpu(nvml, 1, &gpu);
        assert_string_equal(gpu.refusal, rows[i].refusal);
        assert_int_equal(gpu.is_lost, 0);
        record_clear(&gpu_state_record, &gpu);
        gpu_nvml.close(nvml);
    }
}

TEST(a_senseless_number_of_instances_ends_the_search_early)
{
    void *nvml = open_machine(GPUS MIG_ON SMALL LARGE "mig_count 0 -1\n", 4);
    gpu_nvml.close(nvml);
}

TEST(a_changed_layout_is_noticed)
{
    static const char *const changes[] = { GPUS MIG_ON SMALL, GPUS MIG_ON SMALL LARGE SLICE, GPUS MIG_ON,
        GPUS "mig 0 0 0\n", GPUS MIG_ON SMALL "instance 0 1 0 71680 128 MIG-other 3g.71gb\n",
        GPUS "mig 0 1 1\nmig 1 1 1\n" SMALL LARGE };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct gpu_state gpus[4] = { 0 };
        void *nvml = open_machine(GPUS MIG_ON SMALL LARGE, 4);
        for (size_t k = 0; k < 4; k++)
            read_gpu(nvml, k, &gpus[k]);
        assert_false(gpu_nvml.is_outdated(nvml));
        machine_is(changes[i]);
        for (size_t k = 0; k < 4; k++)
            gpu_nvml.sample(nvml, k, &gpus[k]);
        assert_true(gpu_nvml.is_outdated(nvml));
        assert_int_equal(gpus[1].valid & GPU_LAYOUT, i == 5 ? GPU_LAYOUT : 0);
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(gpus[k].is_lost, 0); // of an instance that has gone, nothing is known
            record_clear(&gpu_state_record, &gpus[k]);
        }
        gpu_nvml.close(nvml);
    }
}

/* The driver's silence is no change: jobs would be ended. */
TEST(a_layout_that_cannot_be_read_is_not_another_one)
{
    static const char *const troubles[] = { GPUS MIG_ON SMALL "lost 0\n", GPUS MIG_ON SMALL "code 0 999\n",
        GPUS MIG_ON SMALL "fail nvmlDeviceGetMigMode 999\n",
        GPUS MIG_ON SMALL "fail nvmlDeviceGetMigDeviceHandleByIndex 999\n",
        GPUS MIG_ON SMALL "fail nvmlDeviceGetUUID 999\n" };
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        struct gpu_state gpus[3] = { 0 };
        void *nvml = open_machine(GPUS MIG_ON SMALL, 3);
        machine_is(troubles[i]);
        for (size_t k = 0; k < 3; k++)
            gpu_nvml.sample(nvml, k, &gpus[k]);
        assert_false(gpu_nvml.is_outdated(nvml));
        assert_int_equal(gpus[1].valid & GPU_LAYOUT, 0);
        for (size_t k = 0; k < 3; k++)
            record_clear(&gpu_state_record, &gpus[k]);
        gpu_nvml.close(nvml);
    }
}

static void await_errors(void *nvml, size_t i, struct gpu_state *gpu, uint32_t count)
{
    int64_t until_ms = clock_boot_ms() + 20000;
    while (gpu->xid_count < count && clock_boot_ms() < until_ms)
        gpu_nvml.look(nvml, i, gpu);
    assert_int_equal(gpu->xid_count, count);
}

TEST(an_error_of_an_instance_is_not_one_of_the_others)
{
    struct gpu_state gpus[4] = { 0 };
    void *nvml = open_machine(GPUS MIG_ON SMALL LARGE, 4);
    machine_is(GPUS MIG_ON SMALL LARGE "xid 0 13 9\nxid 0 79\n");
    await_errors(nvml, 1, &gpus[1], 2);
    await_errors(nvml, 2, &gpus[2], 2);
    await_errors(nvml, 3, &gpus[3], 1);
    assert_int_equal(((const struct gpu_xid *)gpus[2].xids.items)[0].number, 13);
    assert_int_equal(gpus[3].xid, 79);
    gpu_nvml.look(nvml, 0, &gpus[0]);
    assert_int_equal(gpus[0].xid_count, 0);
    for (size_t k = 0; k < 4; k++)
        record_clear(&gpu_state_record, &gpus[k]);
    gpu_nvml.close(nvml);
}

int main(void)
{
    int fd = mkstemp(state_path);
    if (fd < 0 || setenv("MGPU_NVML_STANDIN", state_path, 1) < 0)
        return EXIT_FAILURE;
    (void)close(fd);
    int failed = unit_tests_run(NULL, NULL);
    (void)unlink(state_path);
    return failed;
}
