/* SPDX-License-Identifier: MIT */
/* A driver that hangs in one function of NVML: in each in turn, at the start and later. */
#include "gpu_watcher.h"

#include <string.h>

#include "base/memory.h"

/* A GPU has 60 seconds to start: no function hangs for that long but the one with which the driver starts it.
 */
static const struct gpu_helper_timing real_start = {
    .period_ms = 100,
    .told_ms = 60000,
    .first_ms = 60000,
    .silent_ms = 800, // a machine with other work takes longer
    .leave_ms = 50,
    .retry_first_ms = 20,
    .retry_max_ms = 200,
};

#define MORE                                                                                                 \
    "more 0 0 300000 1 1 1 0 0\nmore 1 1 300000 1 1 1 0 0\nmore 2 2 300000 1 1 1 0 0\n"                      \
    "link 0 1\nlink 1 0\n"
#define WITH_INSTANCE "mig 1 1 1\ninstance 1 1 0 8192 1 MIG-x 1g.8gb\n"

/* Those that the backend calls for GPU 1, in the order of the table in gpu/nvml_api.c. The number that each
 * of the older ones returns is used only where there is no newer one. */
static const struct {
    const char *function;
    bool is_of_mig, is_sampled;
} calls[] = {
    { "nvmlDeviceGetUUID", false, false },
    { "nvmlDeviceGetName", false, false },
    { "nvmlDeviceGetPciInfo_v3", false, false },
    { "nvmlDeviceGetMinorNumber", false, false },
    { "nvmlDeviceGetMemoryInfo", false, false },
    { "nvmlDeviceGetMemoryInfo_v2", false, true },
    { "nvmlDeviceGetUtilizationRates", false, true },
    { "nvmlDeviceGetTemperature", false, true },
    { "nvmlDeviceGetPowerUsage", false, true },
    { "nvmlDeviceGetEnforcedPowerLimit", false, true },
    { "nvmlDeviceGetTotalEnergyConsumption", false, true },
    { "nvmlDeviceGetClockInfo", false, true },
    { "nvmlDeviceGetTotalEccErrors", false, true },
    { "nvmlDeviceGetMigMode", false, true },
    { "nvmlDeviceGetMaxMigDeviceCount", true, true },
    { "nvmlDeviceGetMigDeviceHandleByIndex", true, true },
    { "nvmlDeviceGetGpuInstanceId", true, true },
    { "nvmlDeviceGetComputeInstanceId", true, true },
    { "nvmlDeviceGetComputeMode", false, true },
    { "nvmlDeviceGetNumaNodeId", false, false },
    { "nvmlDeviceGetFieldValues", false, true },
    { "nvmlDeviceGetNvLinkState", false, false },
    { "nvmlDeviceGetNvLinkRemotePciInfo_v2", false, false },
    { "nvmlDeviceGetComputeRunningProcesses_v3", false, true },
    { "nvmlDeviceGetGraphicsRunningProcesses_v3", false, true },
    { "nvmlDeviceGetMPSComputeRunningProcesses_v3", false, true },
    { "nvmlDeviceGetSupportedEventTypes", false, false },
    { "nvmlDeviceRegisterEvents", false, false },
};

static char *machine_that_hangs_in(size_t i)
{
    return xasprintf(
        THREE_GPUS MORE "%shang_in %s 1\n", calls[i].is_of_mig ? WITH_INSTANCE : "", calls[i].function);
}

static void a_gpu_that_hangs_in_any_function_from_the_start_costs_no_other(void **state)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct watcher watcher = { .timing = &real_start };
        _cleanup_free_ char *machine = machine_that_hangs_in(i);
        print_message("%s\n", calls[i].function);
        begin(&watcher, machine);
        await(&watcher, "ac");
        end(&watcher);
    }
}

static void a_gpu_that_begins_to_hang_in_any_function_is_lost_alone(void **state)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct watcher watcher = { .timing = &real_start };
        _cleanup_free_ char *machine = machine_that_hangs_in(i);
        if (!calls[i].is_sampled)
            continue;
        print_message("%s\n", calls[i].function);
        begin(&watcher, calls[i].is_of_mig ? THREE_GPUS MORE WITH_INSTANCE : THREE_GPUS MORE);
        await(&watcher, calls[i].is_of_mig ? "abcx" : "abc");
        machine_is(machine);
        await(&watcher, calls[i].is_of_mig ? "a-c-" : "a-c");
        end(&watcher);
    }
}

/* Those that are for no GPU. */
static void a_driver_that_hangs_as_a_whole_is_told_and_tried_again(void **state)
{
    static const char *const functions[] = { "nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlEventSetCreate" };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        struct watcher watcher = { 0 };
        _cleanup_free_ char *machine = xasprintf(THREE_GPUS MORE "hang_in %s 0\n", functions[i]);
        begin(&watcher, machine);
        do
            await(&watcher, ""); // a busy machine reports first that it does not respond yet
        while (strcmp(watcher.text, "the GPU driver does not respond") != 0);
        machine_is(THREE_GPUS MORE);
        await(&watcher, "abc");
        end(&watcher);
    }
}

/* Errors of GPUs are awaited beside everything else. */
static void a_driver_that_hangs_while_it_waits_for_errors_costs_no_gpu(void **state)
{
    struct watcher watcher = { .timing = &real_start };
    begin(&watcher, THREE_GPUS MORE "hang_in nvmlEventSetWait_v2 0\n");
    await(&watcher, "abc");
    await_time(&watcher, 1000);
    assert_string_equal(watcher.seen, "abc");
    end(&watcher);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_that_hangs_in_any_function_from_the_start_costs_no_other),
        cmocka_unit_test(a_gpu_that_begins_to_hang_in_any_function_is_lost_alone),
        cmocka_unit_test(a_driver_that_hangs_as_a_whole_is_told_and_tried_again),
        cmocka_unit_test(a_driver_that_hangs_while_it_waits_for_errors_costs_no_gpu),
    };
    return watcher_run_tests(tests, sizeof(tests) / sizeof(tests[0]));
}
