/* SPDX-License-Identifier: MIT */
/* A driver that hangs in one function of NVML: in each, at the start and later. Nearly all of the time is
 * silence that is waited for, so several functions are tried side by side: each by this program, started with
 * the words of the case. */
#include "gpu_watcher.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

#define MOST_AT_ONCE 8
#define N_CALLS      (sizeof(calls) / sizeof(calls[0]))

/* A GPU has 60 seconds to start: no function hangs for that long but the one with which the driver starts it.
 */
static const struct gpu_helper_timing real_start = {
    .period_ms = 100,
    .notice_ms = 60000,
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

/* Those that the backend calls for GPU 1, in the order of the table in gpu/nvml_api.c. The result of each
 * older call is used only if there is no newer one. */
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

static void hang_from_the_start(void **state)
{
    const size_t *i = *state;
    _cleanup_(end) struct watcher watcher = { .timing = &real_start };
    _cleanup_free_ char *machine = machine_that_hangs_in(*i);
    begin(&watcher, machine);
    await(&watcher, "ac");
}

static void begin_to_hang(void **state)
{
    const size_t *i = *state;
    _cleanup_(end) struct watcher watcher = { .timing = &real_start };
    _cleanup_free_ char *machine = machine_that_hangs_in(*i);
    begin(&watcher, calls[*i].is_of_mig ? THREE_GPUS MORE WITH_INSTANCE : THREE_GPUS MORE);
    await(&watcher, calls[*i].is_of_mig ? "abcx" : "abc");
    machine_is(machine);
    await(&watcher, calls[*i].is_of_mig ? "a-c-" : "a-c");
}

static const struct {
    const char *name;
    CMUnitTestFunction run;
} cases[] = { { "start", hang_from_the_start }, { "later", begin_to_hang } };
enum { START, LATER };

static void wait_for_one(void)
{
    int status = 0;
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
}

static void try_side_by_side(size_t which)
{
    size_t running = 0;
    for (size_t i = 0; i < N_CALLS; i++) {
        pid_t pid;
        char function[64], name[16];
        (void)snprintf(function, sizeof(function), "%s", calls[i].function);
        (void)snprintf(name, sizeof(name), "%s", cases[which].name);
        char program[] = "agent_gpu_hang_calls", *arguments[] = { program, name, function, NULL };
        if (which == LATER && !calls[i].is_sampled)
            continue;
        if (running == MOST_AT_ONCE)
            wait_for_one();
        else
            running++;
        assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    }
    for (; running > 0; running--)
        wait_for_one();
}

CASE(a_gpu_that_hangs_in_any_function_from_the_start_costs_no_other)
{
    try_side_by_side(START);
}

CASE(a_gpu_that_begins_to_hang_in_any_function_is_lost_alone)
{
    try_side_by_side(LATER);
}

/* Those that are for no GPU. */
CASE(a_driver_that_hangs_as_a_whole_is_told_and_tried_again)
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

/* The helper waits for errors of GPUs in addition to everything else. */
CASE(a_driver_that_hangs_while_it_waits_for_errors_costs_no_gpu)
{
    _cleanup_(end) struct watcher watcher = { .timing = &real_start };
    begin(&watcher, THREE_GPUS MORE "hang_in nvmlEventSetWait_v2 0\n");
    await(&watcher, "abc");
    await_time(&watcher, 1000);
    assert_string_equal(watcher.seen, "abc");
}

static int run_case(const char *name, const char *function)
{
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        for (size_t i = 0; i < N_CALLS; i++) {
            struct CMUnitTest tests[] = { { function, cases[k].run, NULL, watcher_leave, &i } };
            if (strcmp(name, cases[k].name) == 0 && strcmp(function, calls[i].function) == 0)
                return cmocka_run_group_tests(tests, watcher_set_up, watcher_tear_down);
        }
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    return argc == 3 ? run_case(argv[1], argv[2]) : unit_tests_run(watcher_set_up, watcher_tear_down);
}
