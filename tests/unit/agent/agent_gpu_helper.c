/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gpu/failing_gpus.h"
#include "agent/gpu/helper.h"
#include "unit_test.h"

struct watcher {
    struct event_base *base;
    int reports, ons, offs, leave_at;
    uint32_t lost;
    struct gpu_roster *roster;
};

static void on_report(void *arg, const struct gpu_report *report)
{
    struct watcher *watcher = arg;
    const struct gpu_state *gpus = report->gpus.items;
    watcher->reports++;
    *(report->is_on ? &watcher->ons : &watcher->offs) += 1;
    watcher->lost = report->gpus.count > 0 ? gpus[0].is_lost : 99;
    if (watcher->reports == watcher->leave_at)
        (void)event_base_loopbreak(watcher->base);
}

static struct gpu_helper *start(struct watcher *watcher, const char *spec_text)
{
    static const struct gpu_helper_timing timing = {
        .period_ms = 10,
        .notice_ms = 2000,
        .first_ms = 2000,
        .silent_ms = 1000,
        .leave_ms = 50,
        .retry_first_ms = 10,
        .retry_max_ms = 50,
    };
    struct gpu_spec spec;
    assert_int_equal(gpu_spec_parse(spec_text, &spec, NULL), 0);
    watcher->base = event_base_new();
    watcher->roster = gpu_roster_new(-1, "");
    return gpu_helper_new(watcher->base, &spec, &timing, watcher->roster, on_report, watcher);
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
    gpu_roster_free(watcher->roster);
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

TEST(reports_come_again_and_again)
{
    struct watcher watcher = { .leave_at = 3 };
    struct gpu_helper *helper = start(&watcher, "sim:2x8G");
    run(&watcher);
    assert_true(watcher.ons >= 3); // several may come at once
    assert_int_equal(watcher.offs, 0);
    assert_int_equal(watcher.lost, 0);
    stop(&watcher, helper);
}

/* Reports until the helper process is another one. */
static void await_another(struct watcher *watcher, pid_t child)
{
    do {
        watcher->leave_at = watcher->reports + 1;
        run(watcher);
        assert_true(watcher->reports >= watcher->leave_at);
    } while (find_child() == child);
}

/* That its process ended, or was stopped by somebody, says nothing of a GPU. */
TEST(a_helper_that_ends_or_stops_is_replaced_and_no_gpu_is_lost)
{
    static const int signals[] = { SIGKILL, SIGSTOP };
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct watcher watcher = { .leave_at = 1 };
        struct gpu_helper *helper = start(&watcher, "sim:2x8G");
        run(&watcher);
        pid_t child = find_child();
        if (child == 0) {
            stop(&watcher, helper);
            skip(); // a kernel without /proc/PID/task/PID/children
        }
        assert_int_equal(kill(child, signals[i]), 0);
        await_another(&watcher, child);
        assert_int_equal(watcher.offs, 0);
        assert_int_equal(watcher.lost, 0);
        stop(&watcher, helper);
    }
}

TEST(a_gpu_that_stays_ill_is_tried_less_and_less)
{
    static const struct gpu_helper_timing timing = { .retry_first_ms = 100, .retry_max_ms = 350 };
    struct failing_gpus failing_gpus = { .timing = &timing };
    struct failing_gpu *failing_gpu = failing_gpus_add(&failing_gpus, "GPU-1", true);
    assert_int_equal(failing_gpu->pause_ms, 100);
    failing_gpus_back_off(&failing_gpus, failing_gpu);
    assert_int_equal(failing_gpu->pause_ms, 200);
    failing_gpus_back_off(&failing_gpus, failing_gpu);
    failing_gpus_back_off(&failing_gpus, failing_gpu);
    assert_int_equal(failing_gpu->pause_ms, 350);
    assert_true(failing_gpus_have_hung(&failing_gpus));
    failing_gpus_remove(&failing_gpus, "GPU-1");
    assert_null(failing_gpus_next(&failing_gpus));
    free(failing_gpus.items);
}

TEST(no_gpus_are_reported_once_and_need_no_process)
{
    struct watcher watcher = { 0 };
    struct gpu_helper *helper = start(&watcher, "none");
    watcher.leave_at = 0;
    (void)event_base_dispatch(watcher.base); // ends by itself: nothing is left to wait for
    assert_int_equal(watcher.reports, 1);
    assert_int_equal(find_child(), 0);
    stop(&watcher, helper);
}
