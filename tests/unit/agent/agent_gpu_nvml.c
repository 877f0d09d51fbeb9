/* SPDX-License-Identifier: MIT */
/* The real NVML backend on a stand-in library. The argument says which machine this is (see meson.build). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "agent/gpu.h"
#include "agent/gpu_helper.h"

#define TWO_GPUS                                                                                             \
    "gpu 0 81 81920 1024 50 61 300000 GPU-second NVIDIA Big One\n"                                           \
    "gpu 0 3b 24576 512 7 40 90000 GPU-first NVIDIA Small One\n"

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
    if (gpu_nvml.open(&spec, ret, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(gpu_nvml.count(*ret), count);
}

static void gpus_come_in_pci_order_with_all_their_values(void **state)
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
    assert_int_equal(gpu.valid, GPU_MEMORY_USED | GPU_UTILIZATION | GPU_TEMPERATURE | GPU_POWER);
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

static void a_gpu_that_fell_off_the_bus_is_lost_and_has_no_values(void **state)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS);
    open_gpus(&nvml, 2);
    machine_is(TWO_GPUS "lost 0\n");
    gpu_nvml.sample(nvml, 1, &gpu);
    assert_int_equal(gpu.is_lost, 1);
    assert_int_equal(gpu.valid, 0);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_int_equal(gpu.is_lost, 0);
    gpu_nvml.close(nvml);
}

static void a_driver_that_is_not_loaded_is_no_driver(void **state)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    void *nvml;
    machine_is("init 9\n");
    assert_int_equal(gpu_nvml.open(&spec, &nvml, &err), -ENODEV);
    assert_non_null(strstr(err.message, "kernel module is not loaded"));
    assert_non_null(strstr(err.hint, "nvidia-smi"));
}

static void a_sick_driver_is_not_taken_for_none(void **state)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    void *nvml;
    machine_is("init 999\n");
    assert_int_equal(gpu_nvml.open(&spec, &nvml, &err), -EIO);
    assert_non_null(strstr(err.message, "Unknown Error"));
}

/* --- through the helper process --- */

struct watcher {
    struct event_base *base;
    int reports, lost_reports;
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
    const struct gpu_helper_timing timing = { 20, 400, 200, 20, 100 };
    const struct timeval deadline = { 20, 0 };
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    if (helper == NULL) {
        watcher->base = event_base_new();
        helper = gpu_helper_new(watcher->base, &spec, &timing, on_report, watcher);
    }
    assert_int_equal(event_base_loopexit(watcher->base, &deadline), 0);
    assert_int_equal(event_base_dispatch(watcher->base), 0);
    return helper;
}

static void a_helper_that_hangs_is_replaced_when_the_driver_answers_again(void **state)
{
    struct watcher watcher = { .stop_after_lost = 1, .when_on = TWO_GPUS "hang 1\n" };
    machine_is(TWO_GPUS);
    struct gpu_helper *helper = run(&watcher, NULL);
    assert_int_equal(watcher.lost_reports, 1);
    assert_int_equal(watcher.is_on, 0);
    assert_string_equal(watcher.text, "the GPU driver does not answer");
    machine_is(TWO_GPUS);
    watcher.stop_after_lost = 0;
    watcher.stop_after_on = 1;
    (void)run(&watcher, helper);
    assert_int_equal(watcher.is_on, 1);
    gpu_helper_free(helper);
    event_base_free(watcher.base);
}

static void an_old_driver_gives_what_it_has(void **state)
{
    void *nvml;
    struct gpu_state gpu = { 0 };
    machine_is(TWO_GPUS);
    open_gpus(&nvml, 2);
    gpu_nvml.describe(nvml, 0, &gpu);
    gpu_nvml.sample(nvml, 0, &gpu);
    assert_string_equal(gpu.uuid, "GPU-second"); // it cannot tell the PCI order
    assert_null(gpu.pci);
    assert_int_equal(gpu.valid, GPU_MEMORY_USED);
    assert_int_equal(gpu.memory_used_bytes, UINT64_C(1424) << 20);
    record_clear(&gpu_state_record, &gpu);
    gpu_nvml.close(nvml);
}

static void a_machine_without_a_driver_says_so(void **state)
{
    struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    struct error err = { 0 };
    void *nvml;
    int r = gpu_nvml.open(&spec, &nvml, &err);
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
    event_base_free(watcher.base);
    if (watcher.is_on)
        skip(); // this machine has GPUs
    assert_string_equal(watcher.backend, "none");
    assert_non_null(strstr(watcher.text, "no NVIDIA driver found"));
    assert_int_equal(watcher.reports, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest current[] = {
        cmocka_unit_test(gpus_come_in_pci_order_with_all_their_values),
        cmocka_unit_test(a_gpu_that_fell_off_the_bus_is_lost_and_has_no_values),
        cmocka_unit_test(a_driver_that_is_not_loaded_is_no_driver),
        cmocka_unit_test(a_sick_driver_is_not_taken_for_none),
        cmocka_unit_test(a_helper_that_hangs_is_replaced_when_the_driver_answers_again),
    };
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
    int failed = strcmp(machine, "current") == 0 ? cmocka_run_group_tests(current, NULL, NULL)
                 : strcmp(machine, "old") == 0   ? cmocka_run_group_tests(old, NULL, NULL)
                                                 : cmocka_run_group_tests(missing, NULL, NULL);
    (void)unlink(state_path);
    return failed;
}
