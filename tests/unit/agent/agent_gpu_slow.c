/* SPDX-License-Identifier: MIT */
/* Slow drivers: in each call, in one call after the other, or only until a GPU is initialised. */
#include "gpu_watcher.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"
#include "job/event.h"

/* A whole sample of three GPUs fits into silent_ms, one call after the other. */
static const struct gpu_helper_timing timing = {
    .period_ms = 20,
    .notice_ms = 500,
    .first_ms = 15000,
    .silent_ms = 4000,
    .leave_ms = 8000,
    .retry_first_ms = 20,
    .retry_max_ms = 200,
};

/* Three GPUs whose used memory is `mib`, `mib` + 1 and `mib` + 2. */
static void machine_uses(unsigned mib, const char *mood)
{
    _cleanup_free_ char *text = xasprintf("gpu 0 1b 24576 %u 1 40 90000 GPU-a NVIDIA One\n"
                                          "gpu 0 2b 24576 %u 2 40 90000 GPU-b NVIDIA One\n"
                                          "gpu 0 3b 24576 %u 3 40 90000 GPU-c NVIDIA One\n%s",
        mib, mib + 1, mib + 2, mood);
    machine_is(text);
}

static void await_memory(struct watcher *watcher, unsigned mib)
{
    int64_t deadline_ms = clock_boot_ms() + 20000;
    while (
        watcher->used_mib[0] != mib || watcher->used_mib[1] != mib + 1 || watcher->used_mib[2] != mib + 2) {
        assert_true(clock_boot_ms() < deadline_ms);
        await(watcher, "abc");
    }
}

/* A sample of each GPU takes longer than a report waits for it. */
CASE(values_of_slow_gpus_are_refreshed_and_none_is_lost)
{
    static const char *const moods[] = { "delay 8\n", "delay 8\nserial 1\n", "delay_gpu 1 15\n" };
    for (size_t i = 0; i < sizeof(moods) / sizeof(moods[0]); i++) {
        struct watcher watcher = { .timing = &timing };
        begin(&watcher, THREE_GPUS);
        await(&watcher, "abc");
        for (unsigned mib = 100; mib <= 300; mib += 100) {
            machine_uses(mib, moods[i]);
            await_memory(&watcher, mib);
        }
        assert_int_equal(watcher.losses, 0);
        end(&watcher);
    }
}

/* For longer than a helper may be silent. */
CASE(a_helper_whose_gpus_are_all_slow_is_not_replaced)
{
    _cleanup_(end) struct watcher watcher = { .timing = &timing };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_uses(1, "delay 8\nserial 1\n");
    pid_t helper = first_child();
    await_time(&watcher, 3 * timing.silent_ms / 2);
    assert_int_equal(watcher.losses, 0);
    assert_int_equal(first_child(), helper);
}

/* A reported answer was read after the question. */
CASE(a_look_is_answered_with_values_that_were_read_after_it)
{
    _cleanup_(end) struct watcher watcher = { .timing = &timing };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    for (unsigned mib = 100; mib <= 500; mib += 100) {
        machine_uses(mib, "delay 8\nserial 1\n");
        uint64_t number = gpu_helper_ask(watcher.helper, NULL);
        for (size_t i = 0; i < 3; i++) {
            while (watcher.gpu_answers[i] < number)
                await(&watcher, "abc");
            assert_int_equal(watcher.used_mib[i], mib + i);
        }
    }
}

/* The check does not wait for GPUs that the job did not have, and none of their threads wakes up. */
CASE(a_look_reads_no_other_gpus_than_those_it_is_about)
{
    struct gpu_helper_timing seldom = timing;
    seldom.period_ms = 60000;
    _cleanup_(end) struct watcher watcher = { .timing = &seldom };
    _cleanup_(gpu_grants_clear) struct record_list grants = { 0 };
    (void)gpu_grants_add(&grants, 1, "GPU-b", 0, 0);
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_uses(100, "");
    uint64_t number = gpu_helper_ask(watcher.helper, &grants);
    while (watcher.gpu_answers[1] < number)
        await(&watcher, "abc");
    assert_int_equal(watcher.used_mib[1], 101);
    assert_true(watcher.used_mib[0] != 100 && watcher.used_mib[2] != 102);
    assert_true(watcher.gpu_answers[0] < number && watcher.gpu_answers[2] < number);
    await_answer(&watcher, gpu_helper_ask(watcher.helper, NULL), "abc");
    assert_true(watcher.used_mib[0] == 100 && watcher.used_mib[2] == 102);
}

/* Without nvidia-persistenced the driver initialises a GPU when it is opened first. The error says so. */
CASE(gpus_that_take_long_to_open_are_not_lost)
{
    _cleanup_(end) struct watcher watcher = { .timing = &timing };
    begin(&watcher, THREE_GPUS "open 0 1600\nopen 1 100\nopen 2 1600\n");
    pid_t helper = first_child();
    await(&watcher, "");
    assert_string_equal(watcher.text, "the GPU driver does not respond yet");
    await(&watcher, "abc");
    assert_int_equal(first_child(), helper);
    assert_int_equal(watcher.losses, 0);
}

/* The agent exits; the helper's current call is not interrupted. */
static void end_in_order(struct watcher *watcher)
{
    pid_t helper = first_child();
    int status = 0;
    gpu_helper_free(watcher->helper);
    watcher->helper = NULL;
    if (helper > 0)
        assert_int_equal(waitpid(helper, &status, 0), helper);
    assert_true(WIFEXITED(status));
    end(watcher);
}

/* It is killed only when it has been given time to leave. */
CASE(a_helper_that_is_not_needed_any_more_ends_its_call_first)
{
    struct watcher watcher = { .timing = &timing };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_uses(1, "delay 20\n");
    await_time(&watcher, 100);
    end_in_order(&watcher);
    watcher = (struct watcher){ .timing = &timing };
    begin(&watcher, THREE_GPUS "open 0 1000\n");
    await_time(&watcher, 100);
    end_in_order(&watcher);
}

/* --- drivers without a GPU that can be used --- */

CASE(gpus_that_cannot_be_opened_are_told_and_tried_again)
{
    _cleanup_(end) struct watcher watcher = { .timing = &timing };
    begin(&watcher, THREE_GPUS "handle 0 999\nhandle 1 999\nhandle 2 999\n");
    await(&watcher, "");
    assert_string_equal(watcher.text, "0 GPUs found by nvml; 3 cannot be opened: Unknown Error");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    assert_string_equal(watcher.text, "3 GPUs found by nvml");
    machine_is(THREE_GPUS "handle 0 999\nhandle 1 999\nhandle 2 999\n");
    kill_children();
    await(&watcher, "---");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

CASE(a_driver_that_comes_later_is_found)
{
    _cleanup_(end) struct watcher watcher = { .timing = &timing };
    begin(&watcher, "init 9\n" THREE_GPUS);
    await(&watcher, "");
    assert_non_null(strstr(watcher.text, "kernel module is not loaded"));
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

int main(void)
{
    return unit_tests_run(watcher_set_up, watcher_tear_down);
}
