/* SPDX-License-Identifier: MIT */
/* Additional steps of a job that cannot be staged, with a launcher that is none. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/attach/exec_steps.h"
#include "agent/attach/exec_waiting.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

#define TOKEN 77U

static const struct spool_id host = { .job = 7, .attempt = 1 };
static struct {
    int fd;
    int open_error, limit_error; // of the exec step
} spool;

int __wrap_launcher_spool_fd(const struct launcher *launcher);
int __wrap_launcher_open_entry(const struct launcher *launcher, const struct spool_id *id);
int __wrap_launcher_limit_step(
    struct launcher *launcher, const struct spool_id *id, struct launch_spec *spec, struct error *err);
int __wrap_launcher_discard(struct launcher *launcher, const struct spool_id *id);

int __wrap_launcher_spool_fd(const struct launcher *launcher)
{
    return spool.fd;
}

int __wrap_launcher_open_entry(const struct launcher *launcher, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    if (id->step > 0 && spool.open_error < 0)
        return spool.open_error;
    int fd = openat(spool.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int __wrap_launcher_limit_step(
    struct launcher *launcher, const struct spool_id *id, struct launch_spec *spec, struct error *err)
{
    return spool.limit_error < 0 ? error_set(err, spool.limit_error, "no cgroup for it") : 0;
}

int __wrap_launcher_discard(struct launcher *launcher, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    return unlinkat(spool.fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

struct scene {
    char dir[32], *link_path;
    int listener;
    struct event_base *base;
    struct exec_steps *exec_steps;
};

static void add_host(void)
{
    char name[SPOOL_NAME_SIZE];
    struct launch_spec spec = { .id = host, .token = TOKEN };
    spool_name(&host, name);
    assert_int_equal(mkdirat(spool.fd, name, 0700), 0);
    _cleanup_close_ int dirfd = openat(spool.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_write_record(dirfd, SPOOL_SPEC, &launch_spec_record, &spec, false), 0);
    assert_int_equal(file_write(dirfd, SPOOL_STARTED, "", 0, false), 0);
}

static int open_scene(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(scene->dir, sizeof(scene->dir), "/tmp/mgpu-exec-XXXXXX");
    assert_non_null(mkdtemp(scene->dir));
    spool.fd = open(scene->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    spool.open_error = spool.limit_error = 0;
    add_host();
    scene->link_path = xasprintf("%s/link", scene->dir);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", scene->link_path);
    scene->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(scene->listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(scene->listener, 1), 0);
    scene->base = event_base_new();
    scene->exec_steps = exec_steps_new(scene->base, NULL, scene->link_path);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    char name[SPOOL_NAME_SIZE], path[SPOOL_NAME_SIZE + 16];
    static const char *const files[] = { SPOOL_SPEC, SPOOL_STARTED };
    spool_name(&host, name);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", name, files[i]);
        assert_int_equal(unlinkat(spool.fd, path, 0), 0);
    }
    assert_int_equal(unlinkat(spool.fd, name, AT_REMOVEDIR), 0);
    assert_int_equal(unlink(scene->link_path), 0);
    assert_int_equal(rmdir(scene->dir), 0); // nothing else was left
    closep(&spool.fd);
    closep(&scene->listener);
    exec_steps_free(scene->exec_steps);
    event_base_free(scene->base);
    free(scene->link_path);
    free(scene);
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, close_scene)

static const struct message_open_step asked = {
    .id = { .job = 7, .attempt = 1 }, // `host`
    .token = TOKEN,
    .stream = 5,
};

/* Expects the head of the stream of the one that was opened to refuse it. */
static void expect_head(struct scene *scene, int error, const char *words)
{
    struct message_stream head;
    uint8_t bytes[1024];
    _cleanup_close_ int fd = accept4(scene->listener, NULL, NULL, SOCK_CLOEXEC);
    ssize_t length = read(fd, bytes, sizeof(bytes));
    assert_true(length > 0);
    assert_int_equal(record_decode(&message_stream_record, bytes, (size_t)length, &head, NULL), 0);
    assert_int_equal(head.stream, 5);
    assert_int_equal(head.error, error);
    assert_non_null(head.text);
    assert_non_null(strstr(head.text, words));
    record_clear(&message_stream_record, &head);
}

static void expect_refusal(struct scene *scene, int error, const char *words)
{
    exec_steps_open(scene->exec_steps, &asked);
    expect_head(scene, error, words);
}

static bool is_dialled(const struct scene *scene)
{
    struct pollfd ready = { .fd = scene->listener, .events = POLLIN };
    return poll(&ready, 1, 0) == 1;
}

static void change(const char *file, bool is_there)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(&host, name);
    _cleanup_close_ int dirfd = openat(spool.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (is_there)
        assert_int_equal(file_write(dirfd, file, "", 0, false), 0);
    else
        assert_int_equal(unlinkat(dirfd, file, 0), 0);
}

/* On a node of several, the job may start a moment later than on the first. */
CASE(exec_step_of_a_job_that_has_not_started_here_waits_for_it, scene)
{
    const struct spool_id other = { .job = 8, .attempt = 1 };
    spool.limit_error = -ENOSPC; // by which it is told that it was tried
    change(SPOOL_STARTED, false);
    exec_steps_open(scene->exec_steps, &asked);
    exec_steps_reconcile(scene->exec_steps, &host); // for some other reason
    exec_steps_reconcile(scene->exec_steps, &other);
    assert_false(is_dialled(scene));
    change(SPOOL_STARTED, true);
    exec_steps_reconcile(scene->exec_steps, &host);
    expect_head(scene, ENOSPC, "no cgroup for it");
    exec_steps_reconcile(scene->exec_steps, &host);
    assert_false(is_dialled(scene));
}

CASE(exec_step_of_a_job_that_ends_without_a_start_is_refused, scene)
{
    change(SPOOL_STARTED, false);
    exec_steps_open(scene->exec_steps, &asked);
    change(SPOOL_EXIT, true);
    exec_steps_reconcile(scene->exec_steps, &host);
    expect_head(scene, EALREADY, "job 7 is no longer running");
    change(SPOOL_EXIT, false);
    change(SPOOL_STARTED, true);
}

/* The client has been told by then that the node did not respond: nothing may begin for it. */
CASE(exec_step_that_has_waited_for_long_is_dropped, scene)
{
    struct exec_waiting *list = NULL;
    struct message_open_step request;
    exec_waiting_add(&list, &asked, 1000);
    exec_waiting_add(&list, &asked, 2000);
    assert_true(exec_waiting_take(&list, &host, 1001 + EXEC_WAITING_MS, &request));
    record_clear(&message_open_step_record, &request);
    assert_false(exec_waiting_take(&list, &host, 1001 + EXEC_WAITING_MS, &request));
    assert_null(list);
}

/* What is left is freed; the oldest one is given up. */
CASE(many_exec_steps_may_wait_and_not_all, scene)
{
    change(SPOOL_STARTED, false);
    for (unsigned i = 0; i < EXEC_WAITING_MAX + 10; i++)
        exec_steps_open(scene->exec_steps, &asked);
    assert_false(is_dialled(scene));
    change(SPOOL_STARTED, true);
}

CASE(exec_step_whose_directory_cannot_be_opened_is_refused, scene)
{
    spool.open_error = -EMFILE;
    expect_refusal(scene, EMFILE, "cannot open a spool directory of job 7");
}

CASE(exec_step_that_cannot_be_limited_leaves_nothing, scene)
{
    spool.limit_error = -ENOSPC;
    expect_refusal(scene, ENOSPC, "no cgroup for it");
}

/* A client that returns to an exec step of which this node knows nothing: it does not start one. */
CASE(the_client_of_an_ended_exec_step_is_notified, scene)
{
    const struct message_rejoin_step request = { .id = host, .token = TOKEN, .stream = 6, .key = 9 };
    const struct message_rejoin_step farewell = { .id = host, .token = TOKEN, .key = 9, .is_farewell = true };
    struct message_stream head;
    uint8_t bytes[1024];
    exec_steps_rejoin(scene->exec_steps, &farewell);
    exec_steps_rejoin(scene->exec_steps, &request);
    _cleanup_close_ int fd = accept4(scene->listener, NULL, NULL, SOCK_CLOEXEC);
    ssize_t length = read(fd, bytes, sizeof(bytes));
    assert_true(length > 0);
    assert_int_equal(record_decode(&message_stream_record, bytes, (size_t)length, &head, NULL), 0);
    assert_int_equal(head.stream, 6);
    assert_int_equal(head.error, ENOENT);
    record_clear(&message_stream_record, &head);
}
