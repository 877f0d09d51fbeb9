/* SPDX-License-Identifier: MIT */
/* GPUs that hang, vanish, return and change places, through helper processes on the stand-in for NVML. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gpu_helper.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"

#define THREE_GPUS                                                                                           \
    "gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\n"                                                         \
    "gpu 0 2b 24576 2 2 40 90000 GPU-b NVIDIA One\n"                                                         \
    "gpu 0 3b 24576 3 3 40 90000 GPU-c NVIDIA One\n"

static char state_path[] = "/tmp/mgpu-hang-XXXXXX";
static bool is_unkillable; // as a process inside a driver's call

int __real_process_signal(int pidfd, int signal_number);
int __wrap_process_signal(int pidfd, int signal_number);
int __wrap_process_signal(int pidfd, int signal_number)
{
    return is_unkillable ? 0 : __real_process_signal(pidfd, signal_number);
}

static void machine_is(const char *text)
{
    _cleanup_free_ char *fresh = xasprintf("%s.new", state_path);
    FILE *file = fopen(fresh, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(fresh, state_path), 0);
}

struct watcher {
    struct event_base *base;
    struct gpu_roster *roster;
    struct gpu_helper *helper;
    int reports;
    const char *awaited; // as describe() makes it
    char seen[64];       // "a-b" and the like
    char text[512];
    uint32_t used_mib[8];
    uint64_t answers;
};

/* The last letter of each UUID by index, "-" for a lost one. */
static void describe(const struct gpu_report *report, char *text)
{
    const struct gpu_state *gpus = report->gpus.items;
    for (size_t i = 0; i < report->gpus.count; i++) {
        assert_int_equal(gpus[i].index, i);
        *text++ = gpus[i].is_lost ? '-' : gpus[i].uuid[strlen(gpus[i].uuid) - 1];
        assert_true(!gpus[i].is_lost || (gpus[i].valid == 0 && gpus[i].trouble != NULL));
        assert_true(gpus[i].is_lost || gpus[i].trouble == NULL);
    }
    *text = '\0';
}

static void on_report(void *arg, const struct gpu_report *report)
{
    struct watcher *watcher = arg;
    const struct gpu_state *gpus = report->gpus.items;
    watcher->reports++;
    assert_true(report->answers >= watcher->answers);
    watcher->answers = report->answers;
    describe(report, watcher->seen);
    (void)snprintf(watcher->text, sizeof(watcher->text), "%s", report->text);
    for (size_t i = 0; i < report->gpus.count && i < 8; i++)
        watcher->used_mib[i] = (uint32_t)(gpus[i].memory_used_bytes >> 20);
    if (watcher->awaited != NULL && strcmp(watcher->seen, watcher->awaited) == 0)
        (void)event_base_loopbreak(watcher->base);
}

static const struct gpu_helper_timing timing = {
    .period_ms = 20, .first_ms = 600, .silent_ms = 300, .retry_first_ms = 20, .retry_max_ms = 200
};

static void begin(struct watcher *watcher, const char *machine)
{
    const struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    machine_is(machine);
    watcher->base = event_base_new();
    watcher->roster = gpu_roster_new(-1, "");
    watcher->helper = gpu_helper_new(watcher->base, &spec, &timing, watcher->roster, on_report, watcher);
}

/* Runs until a report says so; fails after a while. */
static void await(struct watcher *watcher, const char *what)
{
    const struct timeval deadline = { 20, 0 };
    watcher->awaited = what;
    watcher->seen[0] = '\0';
    (void)event_base_loopexit(watcher->base, &deadline);
    (void)event_base_dispatch(watcher->base);
    assert_string_equal(watcher->seen, what);
}

static void end(struct watcher *watcher)
{
    gpu_helper_free(watcher->helper);
    gpu_roster_free(watcher->roster);
    event_base_free(watcher->base);
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

static void kill_children(void)
{
    char path[64];
    int pid;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%d", &pid) == 1)
        (void)kill(pid, SIGKILL);
    if (file != NULL)
        (void)fclose(file);
}

/* Whatever happens: the longest pause between trials is 200 ms. */
static void await_time(struct watcher *watcher, int64_t ms)
{
    const struct timeval time = { ms / 1000, ms % 1000 * 1000 };
    watcher->awaited = NULL;
    (void)event_base_loopexit(watcher->base, &time);
    (void)event_base_dispatch(watcher->base);
}

static void one_gpu_that_hangs_is_lost_and_the_others_are_sampled(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
    /* New numbers of the others come while it hangs. */
    machine_is("gpu 0 1b 24576 100 1 40 90000 GPU-a NVIDIA One\n"
               "gpu 0 2b 24576 2 2 40 90000 GPU-b NVIDIA One\n"
               "gpu 0 3b 24576 300 3 40 90000 GPU-c NVIDIA One\nhang_gpu 1\n");
    while (watcher.used_mib[0] != 100 || watcher.used_mib[2] != 300)
        await(&watcher, "a-c");
    end(&watcher);
}

static void a_gpu_that_answers_again_returns_by_itself(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    end(&watcher);
}

static void the_only_gpu_that_hangs_is_lost_and_returns(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, "gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\n");
    await(&watcher, "a");
    machine_is("gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\nhang_gpu 0\n");
    await(&watcher, "-");
    await_time(&watcher, 500);
    assert_string_equal(watcher.text, "1 GPU found by nvml");
    machine_is("gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\n");
    await(&watcher, "a");
    end(&watcher);
}

static void two_that_hang_return_one_by_one(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_gpu 0\nhang_gpu 2\n");
    await(&watcher, "-b-");
    machine_is(THREE_GPUS "hang_gpu 0\n");
    await(&watcher, "-bc");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    end(&watcher);
}

/* From the start, and so that not even its address can be asked for. */
static void a_gpu_that_hangs_from_the_start_gets_its_number_when_it_is_seen(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS "hang_all 1\n");
    await(&watcher, "ac");
    assert_non_null(strstr(watcher.text, "3 GPUs"));
    machine_is(THREE_GPUS);
    await(&watcher, "acb");
    end(&watcher);
}

static void a_known_gpu_whose_handle_hangs_is_lost_alone(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_all 2\n");
    await(&watcher, "ab-");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    end(&watcher);
}

static void a_driver_that_does_not_start_is_told_and_tried_again(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS "hang_init 1\n");
    await(&watcher, "");
    assert_string_equal(watcher.text, "the GPU driver does not answer");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    end(&watcher);
}

/* As long as a helper works that started before, the others go on; after that nothing can be said of any. */
static void a_driver_that_does_not_start_again_loses_all(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_gpu 1\nhang_init 1\n");
    await(&watcher, "a-c");
    await_time(&watcher, 1000);
    assert_string_equal(watcher.seen, "a-c");
    kill_children();
    await(&watcher, "---");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    end(&watcher);
}

static void a_driver_that_is_unloaded_for_a_while_loses_all_until_it_is_back(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(
        "init 9\norder\n" THREE_GPUS "fail nvmlDeviceGetMemoryInfo_v2 1\nfail nvmlDeviceGetMemoryInfo 1\n");
    await(&watcher, "---");
    machine_is(THREE_GPUS "order 2 1 0\n");
    await(&watcher, "abc");
    end(&watcher);
}

static void a_gpu_off_the_bus_returns_by_itself(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "lost 0\n");
    await(&watcher, "-bc");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    end(&watcher);
}

/* Each time its library is called about this GPU the process dies; twice is no chance. */
static void a_gpu_at_which_the_library_crashes_is_left_out(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS "crash_gpu 2\n");
    await(&watcher, "ab");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
    end(&watcher);
}

/* --- looks that are asked for --- */

static void await_answer(struct watcher *watcher, uint64_t number, const char *what)
{
    while (watcher->answers < number)
        await(watcher, what);
}

/* Whoever asks waits for the one that hangs no longer than a moment, also before it counts as lost. */
static void a_look_at_others_does_not_wait_for_one_that_hangs(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    await(&watcher, "abc"); // from here on each is read in a thread of its own
    machine_is(THREE_GPUS "hang_gpu 1\n");
    int64_t began_ms = clock_boot_ms();
    uint64_t number = gpu_helper_ask(watcher.helper);
    await_answer(&watcher, number, "abc");
    assert_true(clock_boot_ms() - began_ms < timing.silent_ms);
    await(&watcher, "a-c");
    for (int i = 0; i < 20; i++) {
        began_ms = clock_boot_ms();
        await_answer(&watcher, gpu_helper_ask(watcher.helper), "a-c");
        assert_true(clock_boot_ms() - began_ms < timing.silent_ms);
    }
    end(&watcher);
}

/* Also those that were asked of a helper that hangs, by the next one or by the loss of all. */
static void every_look_that_is_asked_for_is_answered(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    uint64_t early = gpu_helper_ask(watcher.helper);
    await(&watcher, "abc");
    await_answer(&watcher, early, "abc");
    machine_is(THREE_GPUS "hang_gpu 1\n");
    uint64_t number = gpu_helper_ask(watcher.helper);
    assert_int_equal(number, 2);
    await(&watcher, "a-c");
    await_answer(&watcher, number, "a-c");
    number = gpu_helper_ask(watcher.helper);
    await_answer(&watcher, number, "a-c");
    machine_is(THREE_GPUS);
    number = gpu_helper_ask(watcher.helper);
    await(&watcher, "abc");
    await_answer(&watcher, number, "abc");
    machine_is(THREE_GPUS "hang_init 1\n");
    kill_children();
    number = gpu_helper_ask(watcher.helper);
    await(&watcher, "---");
    await_answer(&watcher, number, "---");
    end(&watcher);
}

/* --- identity --- */

/* The machine with the GPUs in other slots. */
#define MOVED_GPUS                                                                                           \
    "gpu 0 3b 24576 11 1 40 90000 GPU-a NVIDIA One\n"                                                        \
    "gpu 0 1b 24576 22 2 40 90000 GPU-b NVIDIA One\n"                                                        \
    "gpu 0 2b 24576 33 3 40 90000 GPU-c NVIDIA One\n"

static pid_t first_child(void)
{
    char path[64];
    int pid = 0;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    (void)!fscanf(file, "%d", &pid);
    (void)fclose(file);
    return pid;
}

static void another_order_changes_no_number(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(MOVED_GPUS "order 1 2 0\n");
    pid_t child = first_child();
    if (child == 0) {
        end(&watcher);
        skip(); // a kernel without /proc/PID/task/PID/children
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    while (first_child() == child || first_child() == 0 || watcher.used_mib[0] != 11)
        await(&watcher, "abc");
    assert_int_equal(watcher.used_mib[1], 22);
    assert_int_equal(watcher.used_mib[2], 33);
    end(&watcher);
}

/* --- processes that cannot be killed --- */

static int count_children(void)
{
    int pid, count = 0;
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%d", &pid) == 1)
        count++;
    if (file != NULL)
        (void)fclose(file);
    return count;
}

static void helpers_that_cannot_be_killed_are_bounded_and_reaped(void **state)
{
    struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    is_unkillable = true;
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
    int reports = watcher.reports;
    await_time(&watcher, 1500);
    assert_true(watcher.reports > reports + 10); // the others go on
    assert_in_range(count_children(), 1, 2);     // the one that hangs, and the current one
    is_unkillable = false;
    machine_is(THREE_GPUS);
    kill_children(); // the driver lets go
    await(&watcher, "abc");
    await_time(&watcher, 200);
    assert_int_equal(count_children(), 1);
    end(&watcher);
}

static void helpers_in_a_driver_that_does_not_start_are_one(void **state)
{
    struct watcher watcher = { 0 };
    is_unkillable = true;
    begin(&watcher, THREE_GPUS "hang_init 1\n");
    await(&watcher, "");
    await_time(&watcher, 1500);
    assert_int_equal(count_children(), 1);
    is_unkillable = false;
    machine_is(THREE_GPUS);
    kill_children();
    await(&watcher, "abc");
    end(&watcher);
}

/* More of them than helpers may exist: it is told, and nothing more is started. */
static void with_too_many_that_cannot_be_killed_all_gpus_are_lost(void **state)
{
    struct watcher watcher = { 0 };
    _cleanup_free_ char *machine = xstrdup("");
    _cleanup_free_ char *hanging = NULL;
    for (unsigned i = 0; i < GPU_HELPERS_MAX + 2; i++) {
        char *longer =
            xasprintf("%sgpu 0 %x 24576 1 1 40 90000 GPU-%c NVIDIA One\n", machine, i + 1, (int)('a' + i));
        free(machine);
        machine = longer;
    }
    hanging = xasprintf("%shang 1\n", machine);
    begin(&watcher, machine);
    await(&watcher, "abcdefghij");
    is_unkillable = true;
    machine_is(hanging);
    do
        await(&watcher, "----------");
    while (strstr(watcher.text, "too many") == NULL);
    await_time(&watcher, 600);
    assert_int_equal(count_children(), GPU_HELPERS_MAX);
    is_unkillable = false;
    machine_is(machine);
    kill_children();
    await(&watcher, "abcdefghij");
    end(&watcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gpu_that_hangs_is_lost_and_the_others_are_sampled),
        cmocka_unit_test(a_gpu_that_answers_again_returns_by_itself),
        cmocka_unit_test(the_only_gpu_that_hangs_is_lost_and_returns),
        cmocka_unit_test(two_that_hang_return_one_by_one),
        cmocka_unit_test(a_gpu_that_hangs_from_the_start_gets_its_number_when_it_is_seen),
        cmocka_unit_test(a_known_gpu_whose_handle_hangs_is_lost_alone),
        cmocka_unit_test(a_driver_that_does_not_start_is_told_and_tried_again),
        cmocka_unit_test(a_driver_that_does_not_start_again_loses_all),
        cmocka_unit_test(a_driver_that_is_unloaded_for_a_while_loses_all_until_it_is_back),
        cmocka_unit_test(a_gpu_off_the_bus_returns_by_itself),
        cmocka_unit_test(a_gpu_at_which_the_library_crashes_is_left_out),
        cmocka_unit_test(a_look_at_others_does_not_wait_for_one_that_hangs),
        cmocka_unit_test(every_look_that_is_asked_for_is_answered),
        cmocka_unit_test(another_order_changes_no_number),
        cmocka_unit_test(helpers_that_cannot_be_killed_are_bounded_and_reaped),
        cmocka_unit_test(helpers_in_a_driver_that_does_not_start_are_one),
        cmocka_unit_test(with_too_many_that_cannot_be_killed_all_gpus_are_lost),
    };
    int fd = mkstemp(state_path);
    if (fd < 0 || close(fd) < 0 || setenv("MGPU_NVML_STANDIN", state_path, 1) < 0)
        return EXIT_FAILURE;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(state_path);
    return failed;
}
