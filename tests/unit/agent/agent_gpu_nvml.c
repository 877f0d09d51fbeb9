/* SPDX-License-Identifier: MIT */
/* The real NVML backend on a stand-in library. The argument says which machine this is (see meson.build). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "agent/gpu/gpu.h"
#include "agent/gpu/helper.h"
#include "base/clock.h"
#include "base/memory.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

#define TWO_GPUS                                                                                             \
    "gpu 0 81 81920 1024 50 61 300000 GPU-second NVIDIA Big One\n"                                           \
    "gpu 0 3b 24576 512 7 40 90000 GPU-first NVIDIA Small One\n"

#define BASIC_VALUES                                                                                         \
    (GPU_MEMORY_USED | GPU_UTILIZATION | GPU_TEMPERATURE | GPU_POWER | GPU_PROCESSES | GPU_LAYOUT)
#define MORE_VALUES (GPU_POWER_LIMIT | GPU_ENERGY | GPU_SM_CLOCK | GPU_MEMORY_CLOCK | GPU_ECC)

static char state_path[] = "/tmp/mgpu-nvml-XXXXXX";

static void machine_is(const char *text)
{
    FILE *file = fopen(state_path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void open_gpus(void **ret, size_t count)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    if (gpu_nvml.open(&spec, NULL, ret, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(gpu_nvml.count(*ret), count);
}

TEST(gpus_come_in_pci_order_with_all_their_values)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS);
    open_gpus(&nvml, 2);
    gpu_nvml.describe(nvml, 0, &gpu);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.index, 0);
    assert_string_equal(gpu.uuid, "GPU-first");
    assert_string_equal(gpu.model, "NVIDIA Small One");
    assert_string_equal(gpu.pci, "0000:3b:00.0");
    assert_int_equal(gpu.memory_bytes, UINT64_C(24) << 30);
    assert_int_equal(gpu.valid, BASIC_VALUES);
    assert_int_equal(gpu.minor, -1);
    assert_int_equal(gpu.memory_used_bytes, UINT64_C(512) << 20); // without what the driver keeps
    assert_int_equal(gpu.utilization_percent, 7);
    assert_int_equal(gpu.temperature_c, 40);
    assert_int_equal(gpu.power_mw, 90000);
    record_clear(&gpu_state_record, &gpu);
    gpu_nvml.describe(nvml, 1, &gpu);
    assert_string_equal(gpu.uuid, "GPU-second");
    record_clear(&gpu_state_record, &gpu);
    gpu_nvml.close(nvml);
}

/* Each such answer about one GPU says that it cannot be used, and why. */
TEST(a_gpu_that_fell_off_the_bus_is_lost_and_has_no_values)
{
    static const struct {
        const char *line, *trouble;
    } rows[] = {
        { "lost 0\n", "GPU has fallen off the bus" },
        { "fail nvmlDeviceGetMemoryInfo_v2 1\nfail nvmlDeviceGetMemoryInfo 1\n", "the driver was restarted" },
        { "fail nvmlDeviceGetMemoryInfo_v2 16\nfail nvmlDeviceGetMemoryInfo 16\n", "it needs a reset" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *nvml;
        struct gpu_state gpu = { 0 };
        _cleanup_free_ char *machine = xasprintf("%s%s", TWO_GPUS, rows[i].line);
        machine_is(TWO_GPUS);
        open_gpus(&nvml, 2);
        machine_is(machine);
        gpu_nvml.sample(nvml, 1, &gpu);
        assert_int_equal(gpu.is_lost, 1);
        assert_int_equal(gpu.valid, 0);
        assert_string_equal(gpu.trouble, rows[i].trouble);
        machine_is(TWO_GPUS);
        gpu_nvml.sample(nvml, 1, &gpu);
        assert_int_equal(gpu.is_lost, 0);
        assert_null(gpu.trouble);
        gpu_nvml.close(nvml);
        record_clear(&gpu_state_record, &gpu);
    }
}

/* Its memory is then not known, and it has no name that jobs could be given. */
TEST(senseless_descriptions_are_dropped)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is("gpu 0 3b 4294967295 1 1 40 90000 GPU-first One\nfail nvmlDeviceGetUUID 999\n");
    open_gpus(&nvml, 1);
    gpu_nvml.describe(nvml, 0, &gpu);
    assert_null(gpu.uuid);
    assert_int_equal(gpu.memory_bytes, 0);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
}

TEST(gpus_that_are_left_out_are_not_asked_for_anything)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    struct gpu_progress *stage = gpu_progress_new();
    void *nvml;
    struct gpu_state gpu = { 0 };
    /* The first is linked with the second, which is excluded: that is no link to a switch. */
    machine_is(TWO_GPUS "gpu 0 91 1024 0 0 40 1 GPU-third Three\nlink 1 0\nlink 2 9\nlink 0 1\nhang_gpu 0\n");
    assert_true(gpu_progress_leave_out(stage, "0000:81:00.0"));
    assert_int_equal(gpu_nvml.open(&spec, stage, &nvml, &err), 0);
    assert_int_equal(gpu_nvml.count(nvml), 2);
    assert_string_equal(gpu_nvml.key(nvml, 0), "0000:3b:00.0");
    gpu_nvml.describe(nvml, 0, &gpu);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.links, 0);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
    gpu_progress_free(stage);
}

#define MORE "more 1 5 700000 123456789 1980 2619 3 1\n"

static void sample_first(const char *machine, struct gpu_state *gpu)
{
    void *nvml;
    machine_is(machine);
    open_gpus(&nvml, 2);
    gpu_nvml.describe(nvml, 0, gpu);
    gpu_nvml.sample(nvml, 0, gpu);
    gpu_nvml.close(nvml);
}

TEST(a_current_gpu_gives_limits_clocks_energy_and_errors)
{
    struct gpu_state gpu = { 0 };
    sample_first(TWO_GPUS MORE, &gpu);
    assert_int_equal(gpu.vendor, GPU_VENDOR_NVIDIA);
    assert_int_equal(gpu.minor, 5);
    assert_int_equal(gpu.render_minor, -1);
    assert_int_equal(gpu.valid, BASIC_VALUES | MORE_VALUES);
    assert_int_equal(gpu.power_limit_mw, 700000);
    assert_int_equal(gpu.energy_mj, 123456789);
    assert_int_equal(gpu.sm_clock_mhz, 1980);
    assert_int_equal(gpu.memory_clock_mhz, 2619);
    assert_int_equal(gpu.ecc_corrected, 3);
    assert_int_equal(gpu.ecc_uncorrected, 1);
    record_clear(&gpu_state_record, &gpu);
}

TEST(what_the_driver_refuses_is_missing)
{
    static const struct {
        const char *line;
        uint32_t missing;
    } rows[] = {
        { "fail nvmlDeviceGetEnforcedPowerLimit 3\n", GPU_POWER_LIMIT },
        { "fail nvmlDeviceGetTotalEnergyConsumption 3\n", GPU_ENERGY },
        { "fail nvmlDeviceGetClockInfo 999\n", GPU_SM_CLOCK | GPU_MEMORY_CLOCK },
        { "fail nvmlDeviceGetTotalEccErrors 3\n", GPU_ECC },
        { "fail nvmlDeviceGetUtilizationRates 3\n", GPU_UTILIZATION },
        { "fail nvmlDeviceGetComputeRunningProcesses_v3 3\n", GPU_PROCESSES },
        { "fail nvmlDeviceGetMPSComputeRunningProcesses_v3 3\n", 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gpu_state gpu = { 0 };
        _cleanup_free_ char *machine = xasprintf("%s%s", TWO_GPUS MORE, rows[i].line);
        sample_first(machine, &gpu);
        assert_int_equal(gpu.valid, (BASIC_VALUES | MORE_VALUES) & ~rows[i].missing);
        record_clear(&gpu_state_record, &gpu);
    }
}

/* Memory used above the total, utilisation above 100 %, and so on; at the limit each is believed. */
TEST(nonsense_is_dropped)
{
    struct gpu_state gpu = { 0 };
    sample_first("gpu 0 3b 24576 24577 101 201 10000001 GPU-first One\n"
                 "gpu 0 81 1 0 0 0 0 GPU-second Two\n"
                 "more 0 0 10000001 18446744073709551615 100001 100001 18446744073709551615 0\n",
        &gpu);
    assert_int_equal(gpu.valid & ~(uint32_t)GPU_PROCESSES, GPU_LAYOUT);
    record_clear(&gpu_state_record, &gpu);
    sample_first("gpu 0 3b 24576 24576 100 200 10000000 GPU-first One\n"
                 "gpu 0 81 1 0 0 0 0 GPU-second Two\n"
                 "more 0 0 10000000 1 100000 100000 1 0\n",
        &gpu);
    assert_int_equal(gpu.valid, BASIC_VALUES | MORE_VALUES);
    record_clear(&gpu_state_record, &gpu);
}

/* `mib` -1: its memory is not known. */
static void assert_process(const struct gpu_state *gpu, size_t i, uint32_t pid, uint32_t kind, int64_t mib)
{
    assert_true(i < gpu->processes.count);
    const struct gpu_process *process = (const struct gpu_process *)gpu->processes.items + i;
    assert_int_equal(process->pid, pid);
    assert_int_equal(process->kind, kind);
    assert_int_equal(process->is_memory_known, mib >= 0);
    assert_int_equal(process->memory_bytes, mib < 0 ? 0 : (uint64_t)mib << 20);
}

/* Whether the driver's elements have 24 bytes, 32 or 16. */
TEST(processes_come_once_with_all_their_kinds_and_the_largest_first)
{
    static const char *const sizes[] = { "", "processes 32\n", "processes 16\n" };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct gpu_state gpu = { 0 };
        _cleanup_free_ char *machine = xasprintf("%s%s",
            TWO_GPUS "process 1 compute 300 10\nprocess 1 compute 100 -1\nprocess 1 compute 200 20\n"
                     "process 0 compute 900 1\nprocess 1 graphics 200 25\nprocess 1 graphics 400 2\n"
                     "process 1 mps 300 10\nprocess 1 mps 500 -1\n",
            sizes[i]);
        sample_first(machine, &gpu);
        assert_int_equal(gpu.processes.count, 5);
        assert_process(&gpu, 0, 200, GPU_PROCESS_COMPUTE | GPU_PROCESS_GRAPHICS, 25);
        assert_process(&gpu, 1, 300, GPU_PROCESS_COMPUTE | GPU_PROCESS_MPS, 10);
        assert_process(&gpu, 2, 400, GPU_PROCESS_GRAPHICS, 2);
        assert_process(&gpu, 3, 100, GPU_PROCESS_COMPUTE, -1);
        assert_process(&gpu, 4, 500, GPU_PROCESS_MPS, -1);
        record_clear(&gpu_state_record, &gpu);
    }
}

TEST(of_300_processes_the_largest_are_told)
{
    struct gpu_state gpu = { 0 };
    _cleanup_free_ char *machine = xstrdup(TWO_GPUS);
    for (int pid = 1; pid <= 300; pid++) {
        char *longer = xasprintf("%sprocess 1 compute %d %d\n", machine, pid, pid);
        free(machine);
        machine = longer;
    }
    sample_first(machine, &gpu);
    assert_int_equal(gpu.processes.count, GPU_PROCESSES_MAX);
    assert_process(&gpu, 0, 300, GPU_PROCESS_COMPUTE, 300);
    assert_process(&gpu, GPU_PROCESSES_MAX - 1, 301 - GPU_PROCESSES_MAX, GPU_PROCESS_COMPUTE,
        301 - (int64_t)GPU_PROCESSES_MAX);
    record_clear(&gpu_state_record, &gpu);
}

TEST(processes_that_left_are_not_told_again)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS "process 1 compute 300 10\n");
    open_gpus(&nvml, 2);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.processes.count, 1);
    machine_is(TWO_GPUS);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.processes.count, 0);
    assert_true((gpu.valid & GPU_PROCESSES) != 0);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
}

#define BOTH_TELL "more 0 0 1 1 1 1 0 0\n" MORE

/* Samples until `count` errors of this GPU were seen. Each sample reads files, so the loop is no busy one. */
static void await_xids(void *nvml, size_t i, struct gpu_state *gpu, uint32_t count)
{
    int64_t deadline_ms = clock_boot_ms() + 20000;
    do {
        assert_true(clock_boot_ms() < deadline_ms);
        gpu_nvml.sample(nvml, i, gpu);
    } while (gpu->xid_count < count);
    assert_int_equal(gpu->xid_count, count);
}

TEST(errors_of_the_driver_are_counted_for_their_gpu)
{
    void *nvml;
    struct gpu_state first = { 0 }, second = { 0 };
    machine_is(TWO_GPUS BOTH_TELL "xid 1 43\n"); // before anybody watched
    open_gpus(&nvml, 2);
    int64_t before_ms = clock_wall_ms();
    gpu_nvml.sample(nvml, 0, &first);
    assert_int_equal(first.xid_count, 0);
    machine_is(TWO_GPUS BOTH_TELL "xid 1 43\nxid 1 31\nxid 0 13\nxid 1 48\n");
    await_xids(nvml, 0, &first, 2);
    assert_int_equal(first.xid, 48);
    assert_in_range(first.xid_wall_ms, before_ms, clock_wall_ms() + 1); // no two have the same time
    const struct gpu_xid *xids = first.xids.items;
    assert_int_equal(first.xids.count, 2);
    assert_int_equal(xids[0].number, 31);
    assert_int_equal(xids[1].number, 48);
    assert_true(xids[0].wall_ms < xids[1].wall_ms);
    await_xids(nvml, 1, &second, 1);
    assert_int_equal(second.xid, 13);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &first);
    record_clear(&gpu_state_record, &second);
}

TEST(of_many_errors_the_last_are_told)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS BOTH_TELL);
    open_gpus(&nvml, 2);
    _cleanup_free_ char *machine = xstrdup(TWO_GPUS BOTH_TELL);
    for (int number = 1; number <= 20; number++) {
        char *longer = xasprintf("%sxid 1 %d\n", machine, number);
        free(machine);
        machine = longer;
    }
    machine_is(machine);
    await_xids(nvml, 0, &gpu, 20);
    const struct gpu_xid *xids = gpu.xids.items;
    assert_int_equal(gpu.xids.count, GPU_XIDS_MAX);
    for (uint32_t i = 0; i < GPU_XIDS_MAX; i++)
        assert_int_equal(xids[i].number, 20 - GPU_XIDS_MAX + 1 + i);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
}

/* What it does not refresh stays as the last sample left it. */
TEST(a_look_refreshes_memory_and_processes_alone)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    sample_first(TWO_GPUS MORE "process 1 compute 300 10\n", &gpu);
    uint32_t valid = gpu.valid, percent = gpu.utilization_percent;
    machine_is("gpu 0 81 81920 1024 50 61 300000 GPU-second Big\n"
               "gpu 0 3b 24576 777 99 61 300000 GPU-first Small\n" MORE);
    open_gpus(&nvml, 2);
    gpu_nvml.look(nvml, 0, &gpu);
    assert_int_equal(gpu.memory_used_bytes >> 20, 777);
    assert_int_equal(gpu.processes.count, 0);
    assert_int_equal(gpu.valid, valid);
    assert_int_equal(gpu.utilization_percent, percent);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
}

/* Each GPU has a set of events of its own. */
TEST(one_lost_gpu_keeps_no_error_of_another_back)
{
    void *nvml;
    struct gpu_state first = { 0 }, second = { 0 };
    machine_is(TWO_GPUS BOTH_TELL);
    open_gpus(&nvml, 2);
    machine_is(TWO_GPUS BOTH_TELL "lost 1\n");
    gpu_nvml.sample(nvml, 0, &first);
    assert_int_equal(first.is_lost, 1);
    for (uint32_t number = 1; number <= 3; number++) {
        _cleanup_free_ char *machine = xasprintf("%slost 1\nxid 0 13\n%s%s", TWO_GPUS BOTH_TELL,
            number > 1 ? "xid 0 31\n" : "", number > 2 ? "xid 0 48\n" : "");
        machine_is(machine);
        int64_t before_ms = clock_boot_ms();
        await_xids(nvml, 1, &second, number);
        assert_true(clock_boot_ms() - before_ms < 900); // a wait that fails is tried again after a second
    }
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &first);
    record_clear(&gpu_state_record, &second);
}

/* "Fell off the bus" is itself an error, number 79. */
TEST(a_lost_gpu_still_tells_its_last_error)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS BOTH_TELL);
    open_gpus(&nvml, 2);
    machine_is(TWO_GPUS BOTH_TELL "lost 1\nxid 1 79\n");
    await_xids(nvml, 0, &gpu, 1);
    assert_int_equal(gpu.xid, 79);
    assert_int_equal(gpu.is_lost, 1);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
}

TEST(without_events_everything_else_works)
{
    static const char *const lines[] = { "fail nvmlDeviceGetSupportedEventTypes 3\n",
        "fail nvmlDeviceRegisterEvents 999\n" };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct gpu_state gpu = { 0 };
        _cleanup_free_ char *machine = xasprintf("%s%s", TWO_GPUS BOTH_TELL, lines[i]);
        sample_first(machine, &gpu);
        assert_int_equal(gpu.valid, BASIC_VALUES | MORE_VALUES);
        assert_int_equal(gpu.xid_count, 0);
        record_clear(&gpu_state_record, &gpu);
    }
}

/* After a boot nobody else may have done it. */
TEST(the_module_that_cuda_needs_is_loaded)
{
    char place[] = "/tmp/mgpu-modprobe-XXXXXX", said[32] = "";
    void *nvml;
    assert_non_null(mkdtemp(place));
    _cleanup_free_ char *tool = xasprintf("%s/nvidia-modprobe", place);
    _cleanup_free_ char *result = xasprintf("%s/said", place);
    _cleanup_free_ char *path = xasprintf("%s:%s", place, getenv("PATH"));
    FILE *file = fopen(tool, "we");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\necho \"$@\" >%s\n", result) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(tool, 0755), 0);
    assert_int_equal(setenv("PATH", path, 1), 0);
    machine_is(TWO_GPUS);
    open_gpus(&nvml, 2);
    gpu_nvml.close(nvml);
    assert_int_equal(setenv("PATH", path + strlen(place) + 1, 1), 0);
    file = fopen(result, "re");
    assert_non_null(file);
    assert_non_null(fgets(said, sizeof(said), file));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(said, "-u -c=0\n");
    assert_int_equal(unlink(result) + unlink(tool) + rmdir(place), 0);
}

TEST(a_driver_that_is_not_loaded_is_no_driver)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    void *nvml;
    machine_is("init 9\n");
    assert_int_equal(gpu_nvml.open(&spec, NULL, &nvml, &err), -ENODEV);
    assert_non_null(strstr(err.message, "kernel module is not loaded"));
    assert_non_null(strstr(err.hint, "nvidia-smi"));
}

TEST(a_sick_driver_is_not_taken_for_none)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    void *nvml;
    machine_is("init 999\n");
    assert_int_equal(gpu_nvml.open(&spec, NULL, &nvml, &err), -EIO);
    assert_non_null(strstr(err.message, "Unknown Error"));
}

TEST(a_library_given_by_its_path_is_the_one_that_is_loaded)
{
    const struct gpu_spec spec = { .kind = GPU_SPEC_AUTO, .nvml_library = "/nowhere/libnvidia-ml.so.1" };
    struct error err = { 0 };
    void *nvml;
    machine_is(TWO_GPUS);
    assert_int_equal(gpu_nvml.open(&spec, NULL, &nvml, &err), -ENODEV);
    assert_non_null(strstr(err.message, "/nowhere/libnvidia-ml.so.1"));
    assert_non_null(strstr(err.hint, "--nvml-library"));
}

/* --- through the helper process --- */

struct watcher {
    struct event_base *base;
    struct gpu_roster *roster;
    int reports, lost_reports;
    int64_t first_ms; // most time for the first report, 0: short
    size_t processes; // of all GPUs in the last report
    uint32_t is_on;
    char backend[16], text[512];
    int stop_after_lost, stop_after_on; // leave the loop at the so-manieth such report
    const char *when_on;                // becomes the machine once the GPUs were seen
};

static void on_report(void *arg, const struct gpu_report *report)
{
    struct watcher *watcher = arg;
    const struct gpu_state *gpus = report->gpus.items;
    watcher->reports++;
    watcher->processes = 0;
    for (size_t i = 0; i < report->gpus.count; i++)
        watcher->processes += gpus[i].processes.count;
    watcher->is_on = report->is_on;
    (void)snprintf(watcher->backend, sizeof(watcher->backend), "%s", report->backend);
    (void)snprintf(watcher->text, sizeof(watcher->text), "%s", report->text);
    if (report->gpus.count > 0 && gpus[0].is_lost)
        watcher->lost_reports++;
    if (report->is_on && watcher->when_on != NULL) {
        machine_is(watcher->when_on);
        watcher->when_on = NULL;
    }
    bool is_over = (watcher->stop_after_lost > 0 && watcher->lost_reports >= watcher->stop_after_lost) ||
                   (watcher->stop_after_on > 0 && report->is_on) || report->is_final;
    if (is_over)
        (void)event_base_loopbreak(watcher->base);
}

/* Runs the loop until the watcher leaves it; a deadline keeps a failing test from hanging. */
static struct gpu_helper *run(struct watcher *watcher, struct gpu_helper *helper)
{
    const struct gpu_helper_timing timing = {
        .period_ms = 20,
        .notice_ms = 20000,
        .first_ms = watcher->first_ms != 0 ? watcher->first_ms : 400,
        .silent_ms = 200,
        .leave_ms = 50,
        .retry_first_ms = 20,
        .retry_max_ms = 100,
    };
    const struct timeval deadline = { 20, 0 };
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    if (helper == NULL) {
        watcher->base = event_base_new();
        watcher->roster = gpu_roster_new(-1, "");
        helper = gpu_helper_new(watcher->base, &spec, &timing, watcher->roster, on_report, watcher);
    }
    assert_int_equal(event_base_loopexit(watcher->base, &deadline), 0);
    assert_int_equal(event_base_dispatch(watcher->base), 0);
    return helper;
}

TEST(a_node_full_of_processes_tells_as_many_as_a_report_holds)
{
    struct watcher watcher = { .stop_after_on = 1, .first_ms = 20000 };
    _cleanup_free_ char *machine = xstrdup("");
    for (unsigned i = 0; i < 10; i++) {
        char *longer = xasprintf("%sgpu 0 %x 24576 0 0 40 9000 GPU-%u One\n", machine, i + 1, i);
        free(machine);
        machine = longer;
    }
    for (int i = 0; i < 10 * 120; i++) {
        char *longer = xasprintf("%sprocess %d compute %d 1\n", machine, i % 10, i + 1);
        free(machine);
        machine = longer;
    }
    machine_is(machine);
    struct gpu_helper *helper = run(&watcher, NULL);
    assert_int_equal(watcher.processes, NODE_PROCESSES_MAX / 10 * 10);
    gpu_helper_free(helper);
    gpu_roster_free(watcher.roster);
    event_base_free(watcher.base);
}

/* A mode that is pending changes nothing yet. */
TEST(modes_that_keep_jobs_away_are_told)
{
    static const struct {
        const char *lines, *refusal;
        uint32_t is_one_process;
    } rows[] = {
        { "mig 1 0 1\ncompute 1 0\n", NULL, 0 },
        { "mig 1 1 1\n", "MIG mode is on, and it has no instances", 0 },
        { "compute 1 2\n", "its compute mode is Prohibited", 0 },
        { "compute 1 3\n", NULL, 1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gpu_state gpu = { 0 };
        _cleanup_free_ char *machine = xasprintf("%s%s", TWO_GPUS MORE, rows[i].lines);
        sample_first(machine, &gpu);
        if (rows[i].refusal != NULL)
            assert_string_equal(gpu.refusal, rows[i].refusal);
        else
            assert_null(gpu.refusal);
        assert_int_equal(gpu.is_one_process, rows[i].is_one_process);
        assert_int_equal(gpu.is_lost, 0);
        record_clear(&gpu_state_record, &gpu);
    }
}

TEST(the_action_required_by_the_driver_is_reported)
{
    struct gpu_state gpu = { 0 };
    sample_first(TWO_GPUS MORE "recovery 1 2\n", &gpu);
    assert_true((gpu.valid & GPU_RECOVERY) != 0);
    assert_int_equal(gpu.recovery, GPU_RECOVERY_REBOOT);
    record_clear(&gpu_state_record, &gpu);
    sample_first(TWO_GPUS MORE "recovery 1 77\n", &gpu);
    assert_int_equal(gpu.valid & GPU_RECOVERY, 0);
    record_clear(&gpu_state_record, &gpu);
}

TEST(memory_that_is_the_system_s_too_is_known)
{
    struct gpu_state gpu = { 0 };
    sample_first(TWO_GPUS, &gpu);
    assert_int_equal(gpu.is_host_memory, 0);
    record_clear(&gpu_state_record, &gpu);
    sample_first(TWO_GPUS "numa 1 9\n", &gpu);
    assert_int_equal(gpu.is_host_memory, 1);
    record_clear(&gpu_state_record, &gpu);
}

/* A GPU whose memory can be read by neither call is lost after some samples. */
TEST(a_gpu_that_answers_with_errors_again_and_again_is_lost)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS);
    open_gpus(&nvml, 2);
    machine_is(TWO_GPUS "code 1 999\n");
    for (int i = 0; i < 4; i++) {
        gpu_nvml.sample(nvml, 0, &gpu);
        assert_int_equal(gpu.is_lost, 0);
        assert_int_equal(gpu.valid & GPU_MEMORY_USED, 0);
        gpu_nvml.look(nvml, 0, &gpu); // as many as are asked for: they do not count
        assert_int_equal(gpu.is_lost, 0);
    }
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.is_lost, 1);
    assert_string_equal(gpu.trouble, "the driver reports an error about it: Unknown Error");
    gpu_nvml.look(nvml, 0, &gpu);
    assert_int_equal(gpu.is_lost, 1);
    machine_is(TWO_GPUS);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.is_lost, 0);
    assert_null(gpu.trouble);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
}

/* The two calls count differently, so that one stands in for the other only where it is missing. */
TEST(an_error_of_one_call_for_memory_is_no_reason_to_ask_the_other)
{
    struct gpu_state gpu = { 0 };
    sample_first(TWO_GPUS "fail nvmlDeviceGetMemoryInfo_v2 999\n", &gpu);
    assert_int_equal(gpu.valid & GPU_MEMORY_USED, 0);
    record_clear(&gpu_state_record, &gpu);
    sample_first(TWO_GPUS "fail nvmlDeviceGetMemoryInfo_v2 3\n", &gpu);
    assert_int_equal(gpu.memory_used_bytes >> 20, 912);
    record_clear(&gpu_state_record, &gpu);
}

TEST(links_to_something_unknown_are_links_to_a_switch)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS "link 0 99\nlink 1 99\n");
    open_gpus(&nvml, 2);
    gpu_nvml.describe(nvml, 0, &gpu);
    assert_int_equal(gpu.links, 2);
    gpu_nvml.close(nvml);
    record_clear(&gpu_state_record, &gpu);
}

static void an_old_driver_gives_what_it_has(void **state)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS "process 0 compute 11 100\nprocess 0 compute 12 200\nprocess 0 graphics 13 1\n");
    open_gpus(&nvml, 2);
    gpu_nvml.describe(nvml, 0, &gpu);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.processes.count, 2); // it has no list of drawing processes
    assert_process(&gpu, 0, 12, GPU_PROCESS_COMPUTE, 200);
    assert_process(&gpu, 1, 11, GPU_PROCESS_COMPUTE, 100);
    assert_string_equal(gpu.uuid, "GPU-second"); // it cannot tell the PCI order
    assert_null(gpu.pci);
    assert_int_equal(gpu.minor, -1);
    assert_int_equal(gpu.valid, GPU_MEMORY_USED | GPU_PROCESSES | GPU_LAYOUT);
    assert_int_equal(gpu.memory_used_bytes, UINT64_C(1424) << 20);
    record_clear(&gpu_state_record, &gpu);
    gpu_nvml.close(nvml);
}

static void a_machine_without_a_driver_says_so(void **state)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    void *nvml;
    int r = gpu_nvml.open(&spec, NULL, &nvml, &err);
    if (r == 0) {
        gpu_nvml.close(nvml);
        skip(); // this machine has GPUs
    }
    assert_int_equal(r, -ENODEV);
    assert_non_null(strstr(err.message, "no NVIDIA driver found: libnvidia-ml.so.1"));
}

static void auto_falls_to_none_and_says_why(void **state)
{
    struct watcher watcher = { .stop_after_on = 1 };
    struct gpu_helper *helper = run(&watcher, NULL);
    gpu_helper_free(helper);
    gpu_roster_free(watcher.roster);
    event_base_free(watcher.base);
    if (watcher.is_on)
        skip(); // this machine has GPUs
    assert_string_equal(watcher.backend, "none");
    assert_non_null(strstr(watcher.text, "no NVIDIA driver found"));
    assert_int_equal(watcher.reports, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest old[] = {
        cmocka_unit_test(an_old_driver_gives_what_it_has),
        cmocka_unit_test(a_driver_that_is_not_loaded_is_no_driver),
    };
    const struct CMUnitTest missing[] = {
        cmocka_unit_test(a_machine_without_a_driver_says_so),
        cmocka_unit_test(auto_falls_to_none_and_says_why),
    };
    const char *machine = argc > 1 ? argv[1] : "missing";
    int fd = mkstemp(state_path);
    if (fd < 0 || close(fd) < 0 || setenv("MGPU_NVML_STANDIN", state_path, 1) < 0)
        return EXIT_FAILURE;
    int failed = strcmp(machine, "current") == 0 ? unit_tests_run(NULL, NULL)
                 : strcmp(machine, "old") == 0   ? cmocka_run_group_tests(old, NULL, NULL)
                                                 : cmocka_run_group_tests(missing, NULL, NULL);
    (void)unlink(state_path);
    return failed;
}
