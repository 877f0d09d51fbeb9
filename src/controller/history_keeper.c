/* SPDX-License-Identifier: MIT */
#include "controller/history_keeper.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "controller/history/gpu_history.h"
#include "controller/turns.h"

#define SAVE_SAMPLES  60
#define WHOLE_SAVES   60 // one in this many saves includes the whole history
#define PART_PAUSE_US 10000

struct history_keeper {
    struct controller *controller;
    struct event *timer, *part;
    int dir_fd; // where it is kept
    unsigned samples;
    bool is_lost; // the last save failed
};

/* Logs the beginning of a failure once, and its end once. */
static void note(struct history_keeper *keeper, int r)
{
    if (r < 0 && !keeper->is_lost)
        log_warning("cannot store the GPU history: %s", strerror(-r));
    else if (r == 0 && keeper->is_lost)
        log_info("the GPU history is stored again");
    keeper->is_lost = r < 0;
}

/* Saves one part per turn: with many GPUs, a file has tens of megabytes. */
static void on_part(evutil_socket_t fd, short events, void *arg)
{
    struct history_keeper *keeper = arg;
    int r = gpu_history_save_step(keeper->controller->history);
    if (r == 1)
        (void)evtimer_add(keeper->part, &(struct timeval){ .tv_usec = PART_PAUSE_US });
    else
        note(keeper, r);
}

static void begin_save(struct history_keeper *keeper, bool is_whole)
{
    if (keeper->dir_fd < 0 || evtimer_pending(keeper->part, NULL) != 0)
        return; // or the last save has not ended yet: a very slow disk
    int r = gpu_history_save_begin(keeper->controller->history, keeper->dir_fd, is_whole);
    if (r == 0)
        (void)evtimer_add(keeper->part, &(struct timeval){ 0 });
    else
        note(keeper, r);
}

static void sample_node(void *arg, const struct core_node *node)
{
    if (node->is_up)
        gpu_history_add(arg, clock_wall_ms(), &node->hello.gpus);
}

/* An agent sends only changes, so its last report is valid until the next one. */
static void on_second(evutil_socket_t fd, short events, void *arg)
{
    struct history_keeper *keeper = arg;
    unsigned samples = ++keeper->samples;
    int64_t began_us = turns_step_begin();
    core_each_node(keeper->controller->core, sample_node, keeper->controller->history);
    turns_step_end(keeper->controller->turns, began_us, "GPU", "history");
    if (samples % SAVE_SAMPLES == 0)
        begin_save(keeper, samples / SAVE_SAMPLES % WHOLE_SAVES == 0);
}

struct history_keeper *history_keeper_new(struct controller *controller, const char *dir)
{
    struct history_keeper *keeper = xcalloc(1, sizeof(*keeper));
    struct error err = { 0 };
    controller->history = gpu_history_new();
    keeper->controller = controller;
    keeper->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (keeper->dir_fd >= 0 && gpu_history_load(controller->history, keeper->dir_fd, &err) < 0)
        log_warning("the GPU history is incomplete: %s", err.message);
    keeper->part = evtimer_new(controller->loop, on_part, keeper);
    keeper->timer = event_new(controller->loop, -1, EV_PERSIST, on_second, keeper);
    if (keeper->part == NULL || keeper->timer == NULL)
        abort(); // memory
    (void)event_add(keeper->timer, &(struct timeval){ .tv_sec = 1 });
    return keeper;
}

void history_keeper_free(struct history_keeper *keeper)
{
    if (keeper == NULL)
        return;
    if (keeper->dir_fd >= 0)
        note(keeper, gpu_history_save(keeper->controller->history, keeper->dir_fd, true));
    event_free(keeper->part);
    event_free(keeper->timer);
    gpu_history_free(keeper->controller->history);
    keeper->controller->history = NULL;
    closep(&keeper->dir_fd);
    free(keeper);
}
