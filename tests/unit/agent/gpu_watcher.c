/* SPDX-License-Identifier: MIT */
#include "gpu_watcher.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

static char state_path[] = "/tmp/mgpu-hang-XXXXXX";

void machine_is(const char *text)
{
    _cleanup_free_ char *fresh = xasprintf("%s.new", state_path);
    FILE *file = fopen(fresh, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(fresh, state_path), 0);
}

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

/* A lost GPU answers no query, and no caller waits for it. */
static void note_gpu(struct watcher *watcher, const struct gpu_state *gpu, size_t i)
{
    watcher->used_mib[i] = (uint32_t)(gpu->memory_used_bytes >> 20);
    watcher->gpu_answers[i] = gpu->is_lost ? UINT64_MAX : gpu->answers;
}

static void on_report(void *arg, const struct gpu_report *report)
{
    struct watcher *watcher = arg;
    const struct gpu_state *gpus = report->gpus.items;
    watcher->reports++;
    describe(report, watcher->seen);
    (void)snprintf(watcher->text, sizeof(watcher->text), "%s", report->text);
    watcher->losses += strchr(watcher->seen, '-') != NULL;
    for (size_t i = 0; i < report->gpus.count && i < 8; i++)
        note_gpu(watcher, &gpus[i], i);
    if (watcher->awaited != NULL && strcmp(watcher->seen, watcher->awaited) == 0)
        (void)event_base_loopbreak(watcher->base);
}

const struct gpu_helper_timing watcher_timing = {
    .period_ms = 20,
    .notice_ms = 5000,
    .first_ms = 1600,
    .silent_ms = 800, // a machine with other work takes longer
    .leave_ms = 50,
    .retry_first_ms = 20,
    .retry_max_ms = 200,
};

void begin(struct watcher *watcher, const char *machine)
{
    const struct gpu_spec spec = { .kind = GPU_SPEC_AUTO };
    machine_is(machine);
    watcher->base = event_base_new();
    watcher->roster = gpu_roster_new(-1, "");
    watcher->helper = gpu_helper_new(watcher->base, &spec,
        watcher->timing != NULL ? watcher->timing : &watcher_timing, watcher->roster, on_report, watcher);
}

/* Runs until a report says so; fails after a while. */
void await(struct watcher *watcher, const char *what)
{
    const struct timeval deadline = { 60, 0 }; // a machine with other work takes longer
    watcher->awaited = what;
    watcher->seen[0] = '\0';
    (void)event_base_loopexit(watcher->base, &deadline);
    (void)event_base_dispatch(watcher->base);
    assert_string_equal(watcher->seen, what);
}

void end(struct watcher *watcher)
{
    gpu_helper_free(watcher->helper);
    gpu_roster_free(watcher->roster);
    event_base_free(watcher->base);
    kill_children(); // one that hangs in the driver's start would leave by itself only after first_ms
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

void kill_children(void)
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
void await_time(struct watcher *watcher, int64_t ms)
{
    const struct timeval time = { ms / 1000, ms % 1000 * 1000 };
    watcher->awaited = NULL;
    (void)event_base_loopexit(watcher->base, &time);
    (void)event_base_dispatch(watcher->base);
}

pid_t first_child(void)
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

int count_children(void)
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

void await_answer(struct watcher *watcher, uint64_t number, const char *what)
{
    for (size_t i = 0; i < strlen(what); i++)
        while (watcher->gpu_answers[i] < number)
            await(watcher, what);
}

int watcher_leave(void **state)
{
    kill_children();
    while (waitpid(-1, NULL, 0) > 0)
        ;
    return 0;
}

int watcher_set_up(void **state)
{
    int fd = mkstemp(state_path);
    return fd < 0 || close(fd) < 0 || setenv("MGPU_NVML_STANDIN", state_path, 1) < 0;
}

int watcher_tear_down(void **state)
{
    return unlink(state_path);
}
