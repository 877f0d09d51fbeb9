/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gpu_helper.h"
#include "base/clock.h"

struct watcher {
    struct event_base *base;
    int reports, ons, offs, leave_at;
    uint32_t lost;
    uint64_t answers;
    bool is_sample;
};

static void on_report(void *arg, const struct gpu_report *report)
{
    struct watcher *watcher = arg;
    const struct gpu_state *gpus = report->gpus.items;
    watcher->reports++;
    watcher->answers = report->answers;
    watcher->is_sample = report->is_sample != 0;
    *(report->is_on ? &watcher->ons : &watcher->offs) += 1;
    watcher->lost = report->gpus.count > 0 ? gpus[0].is_lost : 99;
    if (watcher->reports == watcher->leave_at)
        (void)event_base_loopbreak(watcher->base);
}

static struct gpu_helper *start(struct watcher *watcher, const char *spec_text)
{
    const struct gpu_helper_timing timing = { 10, 2000, 1000, 10, 50 };
    struct gpu_spec spec;
    assert_int_equal(gpu_spec_parse(spec_text, &spec, NULL), 0);
    watcher->base = event_base_new();
    return gpu_helper_new(watcher->base, &spec, &timing, on_report, watcher);
}

static void run(struct watcher *watcher)
{
    const struct timeval deadline = { 20, 0 };
    (void)event_base_loopexit(watcher->base, &deadline);
    (void)event_base_dispatch(watcher->base);
}

/* The ended helper is reaped, so that the next test's is the only child. */
static void stop(struct watcher *watcher, struct gpu_helper *helper)
{
    gpu_helper_free(helper);
    event_base_free(watcher->base);
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

/* The only child of this process. */
static pid_t find_child(void)
{
    char path[64];
    int pid = 0;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &pid) != 1)
        pid = 0;
    (void)fclose(file);
    return pid;
}

static void reports_come_again_and_again(void **state)
{
    struct watcher watcher = { .leave_at = 3 };
    struct gpu_helper *helper = start(&watcher, "sim:2x8G");
    run(&watcher);
    assert_int_equal(watcher.ons, 3);
    assert_int_equal(watcher.lost, 0);
    stop(&watcher, helper);
}

static void a_helper_that_dies_is_replaced_and_its_gpus_are_lost_meanwhile(void **state)
{
    struct watcher watcher = { .leave_at = 1 };
    struct gpu_helper *helper = start(&watcher, "sim:2x8G");
    run(&watcher);
    pid_t child = find_child();
    if (child == 0) {
        stop(&watcher, helper);
        skip(); // a kernel without /proc/PID/task/PID/children
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    while (watcher.offs == 0) {
        watcher.leave_at = watcher.reports + 1;
        run(&watcher);
    }
    assert_int_equal(watcher.lost, 1);
    watcher.leave_at = watcher.reports + 1;
    run(&watcher);
    assert_int_equal(watcher.lost, 0);
    assert_int_not_equal(find_child(), child);
    stop(&watcher, helper);
}

static void a_helper_that_stops_is_noticed_by_its_silence(void **state)
{
    struct watcher watcher = { .leave_at = 1 };
    struct gpu_helper *helper = start(&watcher, "sim:1x8G");
    run(&watcher);
    pid_t child = find_child();
    if (child != 0) {
        assert_int_equal(kill(child, SIGSTOP), 0);
        while (watcher.offs == 0) {
            watcher.leave_at = watcher.reports + 1;
            run(&watcher);
        }
        assert_int_equal(watcher.lost, 1);
    }
    stop(&watcher, helper);
}

/* The samples of this helper are far apart, so that what comes sooner is an answer. */
static void a_look_that_is_asked_for_is_answered_at_once(void **state)
{
    const struct gpu_helper_timing timing = { 60000, 2000, 100000, 10, 50 };
    struct watcher watcher = { .leave_at = 1 };
    struct gpu_spec spec;
    assert_int_equal(gpu_spec_parse("sim:2x8G", &spec, NULL), 0);
    watcher.base = event_base_new();
    struct gpu_helper *helper = gpu_helper_new(watcher.base, &spec, &timing, on_report, &watcher);
    run(&watcher);
    assert_true(watcher.is_sample);
    assert_int_equal(watcher.answers, 0);
    assert_int_equal(gpu_helper_ask(helper), 1);
    assert_int_equal(gpu_helper_ask(helper), 2);
    int64_t asked_ms = clock_boot_ms();
    while (watcher.answers < 2) {
        watcher.leave_at = watcher.reports + 1;
        run(&watcher);
    }
    assert_false(watcher.is_sample);
    assert_in_range(clock_boot_ms() - asked_ms, 0, 10000);
    stop(&watcher, helper);
}

static void what_a_dead_helper_was_asked_its_successor_answers(void **state)
{
    struct watcher watcher = { .leave_at = 1 };
    struct gpu_helper *helper = start(&watcher, "sim:1x8G");
    run(&watcher);
    pid_t child = find_child();
    if (child != 0) {
        assert_int_equal(kill(child, SIGSTOP), 0);
        uint64_t number = gpu_helper_ask(helper);
        assert_int_equal(kill(child, SIGKILL), 0);
        while (watcher.offs == 0 || watcher.lost == 1 || watcher.answers < number) {
            watcher.leave_at = watcher.reports + 1;
            run(&watcher);
        }
    }
    stop(&watcher, helper);
}

static void no_gpus_are_reported_once_and_need_no_process(void **state)
{
    struct watcher watcher = { 0 };
    struct gpu_helper *helper = start(&watcher, "none");
    watcher.leave_at = 0;
    (void)event_base_dispatch(watcher.base); // ends by itself: nothing is left to wait for
    assert_int_equal(watcher.reports, 1);
    assert_int_equal(find_child(), 0);
    stop(&watcher, helper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_come_again_and_again),
        cmocka_unit_test(a_helper_that_dies_is_replaced_and_its_gpus_are_lost_meanwhile),
        cmocka_unit_test(a_helper_that_stops_is_noticed_by_its_silence),
        cmocka_unit_test(a_look_that_is_asked_for_is_answered_at_once),
        cmocka_unit_test(what_a_dead_helper_was_asked_its_successor_answers),
        cmocka_unit_test(no_gpus_are_reported_once_and_need_no_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
