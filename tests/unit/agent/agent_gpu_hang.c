/* SPDX-License-Identifier: MIT */
/* GPUs that hang, vanish, return and change places, through helper processes on the stand-in for NVML. */
#include "gpu_watcher.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"

static bool is_unkillable; // as a process inside a driver's call

int __real_process_signal(int pidfd, int signal_number);
int __wrap_process_signal(int pidfd, int signal_number);
int __wrap_process_signal(int pidfd, int signal_number)
{
    return is_unkillable ? 0 : __real_process_signal(pidfd, signal_number);
}

CASE(one_gpu_that_hangs_is_lost_and_the_others_are_sampled)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
    /* The other GPUs are sampled while it hangs. */
    machine_is("gpu 0 1b 24576 100 1 40 90000 GPU-a NVIDIA One\n"
               "gpu 0 2b 24576 2 2 40 90000 GPU-b NVIDIA One\n"
               "gpu 0 3b 24576 300 3 40 90000 GPU-c NVIDIA One\nhang_gpu 1\n");
    while (watcher.used_mib[0] != 100 || watcher.used_mib[2] != 300)
        await(&watcher, "a-c");
}

CASE(a_gpu_that_answers_again_returns_by_itself)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

CASE(the_only_gpu_that_hangs_is_lost_and_returns)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, "gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\n");
    await(&watcher, "a");
    machine_is("gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\nhang_gpu 0\n");
    await(&watcher, "-");
    await_time(&watcher, 500);
    assert_string_equal(watcher.text, "1 GPU found by nvml");
    machine_is("gpu 0 1b 24576 1 1 40 90000 GPU-a NVIDIA One\n");
    await(&watcher, "a");
}

CASE(two_that_hang_return_one_by_one)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_gpu 0\nhang_gpu 2\n");
    await(&watcher, "-b-");
    machine_is(THREE_GPUS "hang_gpu 0\n");
    await(&watcher, "-bc");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

/* From the start, and so that not even its address can be asked for. */
CASE(a_gpu_that_hangs_from_the_start_gets_its_number_when_it_is_seen)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS "hang_all 1\n");
    await(&watcher, "ac");
    assert_non_null(strstr(watcher.text, "3 GPUs"));
    machine_is(THREE_GPUS);
    await(&watcher, "acb");
}

CASE(a_known_gpu_whose_handle_hangs_is_lost_alone)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "hang_all 2\n");
    await(&watcher, "ab-");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

CASE(a_driver_that_does_not_start_is_told_and_tried_again)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS "hang_init 1\n");
    do
        await(&watcher, ""); // a busy machine reports first that it does not respond yet
    while (strcmp(watcher.text, "the GPU driver does not respond") != 0);
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

/* While a helper that started earlier works, the other GPUs are sampled; afterwards the state of all is
 * unknown. */
CASE(a_driver_that_does_not_start_again_loses_all)
{
    _cleanup_(end) struct watcher watcher = { 0 };
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
}

CASE(a_driver_that_is_unloaded_for_a_while_loses_all_until_it_is_back)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(
        "init 9\norder\n" THREE_GPUS "fail nvmlDeviceGetMemoryInfo_v2 1\nfail nvmlDeviceGetMemoryInfo 1\n");
    await(&watcher, "---");
    machine_is(THREE_GPUS "order 2 1 0\n");
    await(&watcher, "abc");
}

CASE(a_gpu_off_the_bus_returns_by_itself)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "lost 0\n");
    await(&watcher, "-bc");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

/* Each time its library is called about this GPU the process dies; twice is no chance. */
CASE(a_gpu_at_which_the_library_crashes_is_left_out)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS "crash_gpu 2\n");
    await(&watcher, "ab");
    machine_is(THREE_GPUS);
    await(&watcher, "abc");
}

/* --- looks that are asked for --- */

/* Whoever asks waits for the one that hangs no longer than a moment, also before it counts as lost. */
CASE(a_look_at_others_does_not_wait_for_one_that_hangs)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    await(&watcher, "abc"); // from here on each is read in a thread of its own
    machine_is(THREE_GPUS "hang_gpu 1\n");
    uint64_t number = gpu_helper_ask(watcher.helper, NULL);
    while (watcher.gpu_answers[0] < number || watcher.gpu_answers[2] < number)
        await(&watcher, "abc");
    assert_true(watcher.gpu_answers[1] < number);
    assert_int_equal(watcher.losses, 0); // before it counts as lost
    await(&watcher, "a-c");
    for (int i = 0; i < 20; i++)
        await_answer(&watcher, gpu_helper_ask(watcher.helper, NULL), "a-c");
}

/* Also those that were asked of a helper that hangs, by the next one or by the loss of all. */
CASE(every_look_that_is_asked_for_is_answered)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    uint64_t early = gpu_helper_ask(watcher.helper, NULL);
    await(&watcher, "abc");
    await_answer(&watcher, early, "abc");
    machine_is(THREE_GPUS "hang_gpu 1\n");
    uint64_t number = gpu_helper_ask(watcher.helper, NULL);
    assert_int_equal(number, 2);
    await(&watcher, "a-c");
    await_answer(&watcher, number, "a-c");
    number = gpu_helper_ask(watcher.helper, NULL);
    await_answer(&watcher, number, "a-c");
    machine_is(THREE_GPUS);
    number = gpu_helper_ask(watcher.helper, NULL);
    await(&watcher, "abc");
    await_answer(&watcher, number, "abc");
    machine_is(THREE_GPUS "hang_init 1\n");
    kill_children();
    number = gpu_helper_ask(watcher.helper, NULL);
    await(&watcher, "---");
    await_answer(&watcher, number, "---");
}

/* --- identity --- */

/* The machine with the GPUs in other slots. */
#define MOVED_GPUS                                                                                           \
    "gpu 0 3b 24576 11 1 40 90000 GPU-a NVIDIA One\n"                                                        \
    "gpu 0 1b 24576 22 2 40 90000 GPU-b NVIDIA One\n"                                                        \
    "gpu 0 2b 24576 33 3 40 90000 GPU-c NVIDIA One\n"

CASE(another_order_changes_no_number)
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

/* --- a machine with other work --- */

#define BUSY_LOOPS 3

/* The threads of the helpers get a processor only when no other process needs it. */
static void starve_children(void)
{
    const struct sched_param none = { 0 };
    _cleanup_free_ char *command =
        xasprintf("for p in $(cat /proc/%d/task/*/children); do ls /proc/$p/task; done", (int)getpid());
    int tid;
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    while (fscanf(pipe, "%d", &tid) == 1)
        (void)sched_setscheduler(tid, SCHED_IDLE, &none); // that of the shell is over
    (void)pclose(pipe);
}

/* On the first processor that this process may use, where it stays with all that it starts. */
static void share_one_processor(void)
{
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

CASE(a_helper_that_gets_no_processor_costs_no_gpu)
{
    cpu_set_t all;
    pid_t loops[BUSY_LOOPS];
    _cleanup_(end) struct watcher watcher = { 0 };
    struct process_times times;
    if (process_read_times(getpid(), getpid(), &times) < 0)
        skip(); // a kernel that does not count them
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    share_one_processor();
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    await(&watcher, "abc"); // each has a thread of its own
    starve_children();
    for (size_t i = 0; i < BUSY_LOOPS; i++) {
        loops[i] = fork();
        assert_true(loops[i] >= 0);
        while (loops[i] == 0)
            ;
    }
    await_time(&watcher, 4 * watcher_timing.silent_ms);
    assert_int_equal(watcher.losses, 0);
    for (size_t i = 0; i < BUSY_LOOPS; i++) {
        assert_int_equal(kill(loops[i], SIGKILL), 0);
        assert_int_equal(waitpid(loops[i], NULL, 0), loops[i]);
    }
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
}

/* --- processes that cannot be killed --- */

CASE(helpers_that_cannot_be_killed_are_bounded_and_reaped)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    is_unkillable = true;
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
    int reports = watcher.reports;
    await_time(&watcher, 1500);
    while (watcher.reports <= reports + 10) // the others go on
        await(&watcher, "a-c");
    assert_in_range(count_children(), 1, 2); // the one that hangs, and the current one
    is_unkillable = false;
    machine_is(THREE_GPUS);
    kill_children(); // the driver lets go
    do
        await(&watcher, "abc");
    while (count_children() != 1);
}

CASE(helpers_in_a_driver_that_does_not_start_are_one)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    is_unkillable = true;
    begin(&watcher, THREE_GPUS "hang_init 1\n");
    await(&watcher, "");
    await_time(&watcher, 1500);
    assert_int_equal(count_children(), 1);
    is_unkillable = false;
    machine_is(THREE_GPUS);
    kill_children();
    await(&watcher, "abc");
}

/* More of them than helpers may exist: it is told, and nothing more is started. */
CASE(with_too_many_that_cannot_be_killed_all_gpus_are_lost)
{
    _cleanup_(end) struct watcher watcher = { 0 };
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
}

/* --- release --- */

/* How many descriptors of helper processes lead to that file of the stand-in. */
static unsigned count_open(const char *suffix)
{
    _cleanup_free_ char *command = xasprintf(
        "for p in $(cat /proc/%d/task/*/children); do readlink /proc/$p/fd/*; done | grep -cx '%s%s'",
        (int)getpid(), getenv("MGPU_NVML_STANDIN"), suffix);
    unsigned count = 0;
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%u", &count), 1);
    (void)pclose(pipe);
    return count;
}

static const char *const device_files[] = { ".ctl", ".gpu0", ".gpu1", ".gpu2" };
#define DEVICE_FILES (sizeof(device_files) / sizeof(device_files[0]))

static void make_devices(bool is_there)
{
    for (size_t i = 0; i < DEVICE_FILES; i++) {
        _cleanup_free_ char *path = xasprintf("%s%s", getenv("MGPU_NVML_STANDIN"), device_files[i]);
        FILE *file = is_there ? fopen(path, "we") : NULL;
        assert_true(is_there ? file != NULL : unlink(path) == 0);
        if (file != NULL)
            (void)fclose(file);
    }
}

/* "" for none. */
static void release(struct watcher *watcher, const char *names)
{
    _cleanup_strings_ struct strings uuids = { 0 };
    for (const char *p = names; *p != '\0'; p++) {
        const char uuid[] = { 'G', 'P', 'U', '-', *p, '\0' };
        strings_add(&uuids, uuid);
    }
    gpu_helper_release(watcher->helper, &uuids);
}

static bool is_released(const struct watcher *watcher, size_t i)
{
    return ((const struct gpu_state *)gpu_roster_gpus(watcher->roster)->items)[i].is_released != 0;
}

CASE(a_released_gpu_is_open_in_no_process_and_comes_back)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    make_devices(true);
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    assert_true(count_open(".gpu1") > 0);
    release(&watcher, "b");
    assert_false(is_released(&watcher, 1)); // its process is still there
    while (!is_released(&watcher, 1))
        await(&watcher, "a-c");
    assert_int_equal(count_open(".gpu1"), 0);
    await(&watcher, "a-c");
    await_time(&watcher, 500); // nothing is tried meanwhile
    assert_int_equal(count_open(".gpu1"), 0);
    assert_int_equal(count_open(".gpu0"), 1);
    assert_int_equal(count_open(".gpu2"), 1);
    assert_int_equal(count_children(), 1);
    assert_string_equal(watcher.text, "2 GPUs found by nvml; 1 released");
    release(&watcher, "");
    await(&watcher, "abc");
    assert_false(is_released(&watcher, 1));
    assert_int_equal(count_open(".gpu1"), 1);
    make_devices(false);
}

CASE(with_all_gpus_released_nothing_has_the_driver_open)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    make_devices(true);
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    release(&watcher, "abc");
    while (!is_released(&watcher, 0) || !is_released(&watcher, 1) || !is_released(&watcher, 2))
        await(&watcher, "---");
    assert_int_equal(count_children(), 0);
    await_time(&watcher, 300);
    assert_int_equal(count_children(), 0);
    assert_non_null(strstr(watcher.text, "all GPUs are released"));
    release(&watcher, "ac");
    await(&watcher, "-b-");
    assert_int_equal(count_open(".ctl"), 1);
    assert_int_equal(count_open(".gpu0") + count_open(".gpu2"), 0);
    release(&watcher, "");
    await(&watcher, "abc");
    make_devices(false);
}

CASE(a_gpu_that_vanishes_beside_a_released_one_changes_no_other)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    make_devices(true);
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    machine_is(THREE_GPUS "lost 0\norder 1 2\n"); // the driver's numbers move up
    await(&watcher, "-bc");
    release(&watcher, "b");
    while (!is_released(&watcher, 1))
        await(&watcher, "--c");
    await(&watcher, "--c");
    assert_int_equal(count_open(".gpu1"), 0);
    machine_is(THREE_GPUS);
    await(&watcher, "a-c");
    assert_int_equal(count_open(".gpu1"), 0);
    make_devices(false);
}

CASE(a_gpu_at_which_a_process_hangs_is_not_called_released)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    is_unkillable = true;
    machine_is(THREE_GPUS "hang_gpu 1\n");
    await(&watcher, "a-c");
    release(&watcher, "b");
    await_time(&watcher, 500);
    assert_false(is_released(&watcher, 1));
    is_unkillable = false;
    kill_children();
    while (!is_released(&watcher, 1))
        await(&watcher, "a-c");
}

CASE(what_is_released_while_gpus_are_opened_is_let_go_of_then)
{
    _cleanup_(end) struct watcher watcher = { 0 };
    make_devices(true);
    begin(&watcher, THREE_GPUS);
    await(&watcher, "abc");
    release(&watcher, "a");
    machine_is(THREE_GPUS "open 2 300\n");
    while (!is_released(&watcher, 0))
        await(&watcher, "-bc");
    release(&watcher, "ab"); // the helper may still be opening
    while (!is_released(&watcher, 1))
        await(&watcher, "--c");
    assert_int_equal(count_open(".gpu0") + count_open(".gpu1"), 0);
    make_devices(false);
}

int main(void)
{
    return unit_tests_run(watcher_set_up, watcher_tear_down);
}
