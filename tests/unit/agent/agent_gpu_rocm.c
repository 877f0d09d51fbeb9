/* SPDX-License-Identifier: MIT */
/*
 * What is taken from ROCm's library, with the stand-in tests/standin/rocm_smi.c. The argument says which:
 * current, or old, of before ROCm 6. Both are found by the usual name, in LD_LIBRARY_PATH.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/rocm.h"
#include "base/clock.h"
#include "unit_test.h"

#define DEADLINE_MS 20000
#define ALL         (GPU_ENERGY | GPU_ECC | GPU_POWER_LIMIT | GPU_SM_CLOCK | GPU_MEMORY_CLOCK)

static const char *const addresses[] = { "0000:03:00.0", "0001:83:00.0" };

static char state_file[] = "/tmp/mgpu-rocm-XXXXXX";
static bool is_old;

/* The library's order differs from that of the addresses, and it has a GPU that is not ours. */
#define GPUS "gpu 0 99 0 0 0\ngpu 1 83 0 0 0\ngpu 0 3 0 0 0\n"
#define VALUES                                                                                               \
    "energy 1 2000000 15.5\nlimit 1 300000000\nclocks 1 3 2 1700000000 1600000000\necc 1 5 7 2\n"            \
    "energy 2 1000000 10\n"

/* The whole at once. */
static void say(const char *text)
{
    char fresh[sizeof(state_file) + 4];
    (void)snprintf(fresh, sizeof(fresh), "%s.new", state_file);
    FILE *file = fopen(fresh, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(fresh, state_file), 0);
}

static struct rocm *start(const char *text)
{
    say(text);
    struct rocm *rocm = rocm_start(NULL, addresses, 2);
    assert_non_null(rocm);
    return rocm;
}

static void expect_remark(struct rocm *rocm, const char *words)
{
    char text[256];
    rocm_remark(rocm, text, sizeof(text));
    if (*words == '\0')
        assert_string_equal(text, "");
    else if (strstr(text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static uint32_t expected(uint32_t bits)
{
    return is_old ? bits & ~(uint32_t)GPU_ENERGY : bits;
}

TEST(each_gpu_has_its_own_values_by_its_address)
{
    struct gpu_state first = { 0 }, second = { 0 };
    struct rocm *rocm = start(GPUS VALUES);
    rocm_fill(rocm, 0, &first);
    rocm_fill(rocm, 1, &second);
    assert_int_equal(first.valid, expected(GPU_ENERGY));
    assert_int_equal(second.valid, expected(ALL));
    if (!is_old) {
        assert_int_equal(first.energy_mj, 10000);
        assert_int_equal(second.energy_mj, 31000);
    }
    assert_int_equal(second.power_limit_mw, 300000);
    assert_int_equal(second.sm_clock_mhz, 1700);
    assert_int_equal(second.memory_clock_mhz, 1600);
    assert_int_equal(second.ecc_corrected, 7);
    assert_int_equal(second.ecc_uncorrected, 2);
    expect_remark(rocm, "");
    rocm_stop(rocm);
}

TEST(what_sysfs_told_stays_also_when_it_stops_telling)
{
    struct gpu_state gpu = {
        .valid = GPU_ECC | GPU_SM_CLOCK | GPU_POWER, .ecc_corrected = 1, .sm_clock_mhz = 5
    };
    struct rocm *rocm = start(GPUS VALUES);
    rocm_fill(rocm, 1, &gpu);
    assert_int_equal(gpu.valid, expected(ALL | GPU_POWER));
    assert_int_equal(gpu.ecc_corrected, 1);
    assert_int_equal(gpu.ecc_uncorrected, 0);
    assert_int_equal(gpu.sm_clock_mhz, 5);
    gpu.valid = 0;
    rocm_fill(rocm, 1, &gpu);
    assert_int_equal(gpu.valid, expected(GPU_ENERGY | GPU_POWER_LIMIT | GPU_MEMORY_CLOCK));
    rocm_stop(rocm);
}

TEST(partitions_of_a_gpu_are_not_taken_for_it)
{
    struct gpu_state gpu = { 0 };
    struct rocm *rocm = start("gpu 0 3 0 1 1\ngpu 0 3 0 0 0\ngpu 0 3 0 0 2\n"
                              "limit 0 1000000\nlimit 1 2000000\nlimit 2 3000000\n");
    rocm_fill(rocm, 0, &gpu);
    assert_int_equal(gpu.power_limit_mw, 2000);
    rocm_stop(rocm);
}

TEST(nonsense_and_errors_are_no_values)
{
    static const char *const nonsense[] = {
        GPUS "energy 1 18446744073709551615 15.3\nlimit 1 18446744073709551615\n"
             "ecc 1 1 18446744073709551615 0\n",
        GPUS "energy 1 0 15.3\nlimit 1 0\necc 1 4 1 1\nclocks 1 0 0 5000000 5000000\n",
        GPUS "energy 1 5 nan\nclocks 1 3 3 5000000 5000000\n",
        GPUS "energy 1 5 -1\nclocks 1 34 1 5000000 5000000\n",
        GPUS "clocks 1 3 1 18446744073709551615 18446744073709551615\n",
        GPUS VALUES "fail rsmi_dev_energy_count_get 2\nfail rsmi_dev_power_cap_get 4\n"
                    "fail rsmi_dev_gpu_clk_freq_get 15\nfail rsmi_dev_ecc_count_get 3\n",
    };
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        struct gpu_state gpu = { 0 };
        struct rocm *rocm = start(nonsense[i]);
        rocm_fill(rocm, 1, &gpu);
        assert_int_equal(gpu.valid, 0);
        expect_remark(rocm, "");
        rocm_stop(rocm);
    }
}

TEST(a_library_that_is_not_used_says_why)
{
    static const struct {
        const char *machine, *why;
    } cases[] = {
        { GPUS VALUES "fail rsmi_init 8\n", "it does not start: RSMI_STATUS_SOME_ERROR" },
        { GPUS VALUES "fail rsmi_num_monitor_devices 6\n", "it knows none of these GPUs" },
        { GPUS VALUES "fail rsmi_dev_pci_id_get 6\n", "it knows none of these GPUs" },
        { "gpu 0 99 0 0 0\nlimit 0 1000000\n", "it knows none of these GPUs" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gpu_state gpu = { 0 };
        struct rocm *rocm = start(cases[i].machine);
        rocm_fill(rocm, 1, &gpu);
        assert_int_equal(gpu.valid, 0);
        expect_remark(rocm, cases[i].why);
        rocm_stop(rocm);
    }
}

TEST(a_file_that_is_not_the_library_is_not_used)
{
    static const struct {
        const char *path, *why;
    } cases[] = { { "/nowhere/librocm_smi64.so", "it cannot be loaded: /nowhere/librocm_smi64.so" },
        { "libm.so.6", "it has no rsmi_init" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gpu_state gpu = { 0 };
        struct rocm *rocm = rocm_start(cases[i].path, addresses, 2);
        rocm_fill(rocm, 0, &gpu);
        assert_int_equal(gpu.valid, 0);
        expect_remark(rocm, cases[i].why);
        rocm_stop(rocm);
    }
}

/* Whether `bits` of a GPU are all there, or all gone, before the deadline. */
static bool await_bits(struct rocm *rocm, uint32_t bits, bool is_there)
{
    int64_t until_ms = clock_boot_ms() + DEADLINE_MS;
    while (clock_boot_ms() < until_ms) {
        struct gpu_state gpu = { 0 };
        rocm_fill(rocm, 1, &gpu);
        if ((gpu.valid & bits) == (is_there ? bits : 0))
            return true;
        (void)poll(NULL, 0, 10);
    }
    return false;
}

TEST(a_library_that_hangs_loses_its_values_and_gets_them_back)
{
    struct rocm *rocm = start(GPUS VALUES);
    assert_true(await_bits(rocm, expected(ALL), true));
    say(GPUS VALUES "hang rsmi_dev_power_cap_get\n");
    assert_true(await_bits(rocm, ALL, false));
    expect_remark(rocm, "it does not respond");
    say(GPUS VALUES);
    assert_true(await_bits(rocm, expected(ALL), true));
    expect_remark(rocm, "");
    rocm_stop(rocm);
}

TEST(a_library_that_hangs_at_its_start_holds_up_nobody)
{
    struct gpu_state gpu = { 0 };
    int64_t begin_ms = clock_boot_ms();
    struct rocm *rocm = start(GPUS VALUES "hang rsmi_init\n");
    rocm_fill(rocm, 1, &gpu);
    assert_int_equal(gpu.valid, 0);
    assert_true(clock_boot_ms() - begin_ms < DEADLINE_MS);
    say(GPUS VALUES);
    assert_true(await_bits(rocm, expected(ALL), true));
    rocm_stop(rocm);
}

TEST(a_library_that_crashes_loses_its_values_alone)
{
    static const char *const functions[] = { "rsmi_init", "rsmi_dev_pci_id_get", "rsmi_dev_power_cap_get" };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text), GPUS VALUES "crash %s\n", functions[i]);
        struct rocm *rocm = start(text);
        expect_remark(rocm, "it crashed");
        rocm_stop(rocm);
    }
}

TEST(without_gpus_to_read_there_is_nothing)
{
    struct gpu_state gpu = { 0 };
    char text[16] = "?";
    rocm_fill(NULL, 0, &gpu);
    rocm_remark(NULL, text, sizeof(text));
    rocm_stop(NULL);
    assert_int_equal(gpu.valid, 0);
    assert_string_equal(text, "");
}

int main(int argc, char **argv)
{
    int fd = mkstemp(state_file);
    if (argc != 2 || fd < 0 || setenv("MGPU_ROCM_STANDIN", state_file, 1) < 0)
        return EXIT_FAILURE;
    (void)close(fd);
    is_old = strcmp(argv[1], "old") == 0;
    int failed = unit_tests_run(NULL, NULL);
    (void)unlink(state_file);
    return failed;
}
