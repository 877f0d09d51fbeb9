/* SPDX-License-Identifier: MIT */
/* Notifications by a command. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/notify/notifier.h"
#include "base/memory.h"
#include "job/notify.h"
#include "unit_test.h"

#define DEADLINE_MS 20000

struct scene {
    struct event_base *base;
    struct notifiers *notifiers;
    char dir[32], *fifo;
    unsigned n_told;
    int32_t error;
    char *text;
};

/* --- no cgroups, also where there are some --- */

static int prepare(struct confine_state *state, const struct spool_id *id, char **ret_job_cgroup,
    int *ret_shepherd_fd, struct error *err)
{
    *ret_job_cgroup = NULL;
    *ret_shepherd_fd = -1;
    return 0;
}

static int limit(
    struct confine_state *state, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    return 0;
}

static int nothing(struct confine_state *state, const struct spool_id *id)
{
    return 0;
}

static const struct confine confine = {
    .prepare = prepare, .limit = limit, .kill = nothing, .remove = nothing
};

/* --- the scene --- */

static void on_told(void *arg, const struct message_notified *told)
{
    struct scene *scene = arg;
    scene->n_told++;
    scene->error = told->error;
    free(scene->text);
    scene->text = xstrdup(told->text);
}

static int open_scene(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    const struct notifiers_options options = {
        .sendmail = "/nonexistent",
        .users = { .is_root = geteuid() == 0,
            .is_root_job_allowed = true,
            .is_number_enough = true,
            .node = "n1" },
    };
    (void)snprintf(scene->dir, sizeof(scene->dir), "/tmp/mgpu-notifier-XXXXXX");
    assert_non_null(mkdtemp(scene->dir));
    scene->fifo = xasprintf("%s/end", scene->dir);
    assert_int_equal(mkfifo(scene->fifo, 0600), 0);
    scene->base = event_base_new();
    scene->notifiers = notifiers_new(scene->base, &confine, NULL, &options, on_told, scene);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    notifiers_free(scene->notifiers);
    event_base_free(scene->base);
    assert_int_equal(unlink(scene->fifo), 0);
    assert_int_equal(rmdir(scene->dir), 0);
    free(scene->fifo);
    free(scene->text);
    free(scene);
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, close_scene)

static void notify(struct scene *scene, char *command)
{
    const struct message_notify request = { .notification = 1,
        .job = 7,
        .uid = geteuid(),
        .gid = getegid(),
        .way = NOTIFY_COMMAND,
        .to = command,
        .time_ms = DEADLINE_MS };
    notifiers_notify(scene->notifiers, &request);
}

static int count_events(const struct scene *scene)
{
    return event_base_get_num_events(scene->base, EVENT_BASE_COUNT_ADDED);
}

static void await_result(struct scene *scene)
{
    while (scene->n_told == 0)
        assert_int_equal(event_base_loop(scene->base, EVLOOP_ONCE), 0);
}

CASE(failure_is_told_with_its_last_words, scene)
{
    char command[] = "echo no route >&2; exit 3";
    notify(scene, command);
    await_result(scene);
    assert_int_equal(scene->n_told, 1);
    assert_int_equal(scene->error, EIO);
    assert_string_equal(scene->text, "no route");
}

/* The number of its pipe is then that of another file of the agent. */
CASE(command_that_closes_its_standard_error_closes_nothing_else, scene)
{
    _cleanup_free_ char *command = xasprintf("exec 2>&-; read end < %s", scene->fifo);
    notify(scene, command);
    for (int count = count_events(scene); count_events(scene) == count;)
        assert_int_equal(event_base_loop(scene->base, EVLOOP_ONCE), 0);
    assert_int_equal(scene->n_told, 0);
    _cleanup_close_ int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int another = open("/dev/null", O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int end = open(scene->fifo, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(end, "\n", 1), 1);
    await_result(scene);
    assert_int_equal(scene->error, 0);
    assert_true(fcntl(other, F_GETFD) >= 0);
    assert_true(fcntl(another, F_GETFD) >= 0);
    assert_true(fcntl(end, F_GETFD) >= 0);
}
