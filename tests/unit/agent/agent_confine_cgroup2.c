/* SPDX-License-Identifier: MIT */
/* Against the real kernel; skipped where cgroups cannot be created. */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confine/confine.h"
#include "agent/confine/name.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

static const struct spool_id id = { .job = 5, .attempt = 2, .step = 1, .rank = 3 };

struct place {
    char run_dir[64];
    struct confine_state *cells;
    char *cell;
    int shepherd_fd;
};

static int setup(void **state)
{
    struct place *place = xcalloc(1, sizeof(*place));
    struct error err = { 0 };
    (void)snprintf(place->run_dir, sizeof(place->run_dir), "/tmp/mgpu-confine.XXXXXX");
    assert_non_null(mkdtemp(place->run_dir));
    *state = place;
    if (confine_cgroup2.open(place->run_dir, NULL, &place->cells, &err) < 0) {
        assert_true(err.message[0] != '\0' && err.hint[0] != '\0');
        return 0;
    }
    assert_int_equal(confine_cgroup2.prepare(place->cells, &id, &place->cell, &place->shepherd_fd, &err), 0);
    return 0;
}

/* Where the v1 hierarchies are. */
static void forget_v1(const char *run_dir)
{
    _cleanup_free_ char *path = xasprintf("%s/cgroup-v1", run_dir);
    (void)unlink(path);
}

/* An instance without cells leaves nothing behind. */
static void assert_instance_is_gone(const char *cell)
{
    _cleanup_free_ char *instance = xstrdup(cell);
    *strrchr(instance, '/') = '\0';
    *strrchr(instance, '/') = '\0';
    assert_int_equal(access(instance, F_OK), -1);
}

static int teardown(void **state)
{
    struct place *place = *state;
    char path[96];
    (void)snprintf(path, sizeof(path), "%s/cgroup", place->run_dir);
    if (place->cells != NULL)
        (void)confine_cgroup2.remove(place->cells, &id);
    confine_cgroup2.close(place->cells);
    if (place->cell != NULL)
        assert_instance_is_gone(place->cell);
    (void)unlink(path);
    forget_v1(place->run_dir);
    (void)rmdir(place->run_dir);
    free(place->cell);
    free(place);
    return 0;
}

#define CASE(name, place) TEST_ON(name, struct place *place, setup, teardown)

/* A child that sleeps in the cgroup. */
static pid_t enter(const char *cgroup)
{
    _cleanup_free_ char *procs = xasprintf("%s/cgroup.procs", cgroup);
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            (void)pause();
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", (int)pid);
    _cleanup_close_ int fd = open(procs, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, text, (size_t)n), n);
    return pid;
}

static void await_empty(const struct place *place)
{
    _cleanup_free_ char *events = xasprintf("%s/cgroup.events", place->cell);
    _cleanup_close_ int fd = open(events, O_RDONLY | O_CLOEXEC);
    struct pollfd source = { fd, POLLPRI, 0 };
    char text[64];
    while (pread(fd, text, sizeof(text), 0) > 0 && confine_cgroup2.is_populated(place->cells, &id) == 1)
        assert_int_equal(poll(&source, 1, 10000), 1);
}

CASE(a_cell_knows_whether_it_is_empty, place)
{
    if (place->cells == NULL)
        skip();
    assert_int_equal(confine_cgroup2.is_populated(place->cells, &id), 0);
    pid_t pid = enter(place->cell);
    assert_int_equal(confine_cgroup2.is_populated(place->cells, &id), 1);
    assert_int_equal(confine_cgroup2.remove(place->cells, &id), -EBUSY);
    assert_int_equal(confine_cgroup2.kill(place->cells, &id), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    await_empty(place);
    assert_int_equal(confine_cgroup2.remove(place->cells, &id), 0);
    assert_int_equal(access(place->cell, F_OK), -1);
}

CASE(preparing_and_removing_twice_is_harmless, place)
{
    if (place->cells == NULL)
        skip();
    char *again = NULL;
    int shepherd_fd;
    assert_int_equal(confine_cgroup2.prepare(place->cells, &id, &again, &shepherd_fd, NULL), 0);
    assert_string_equal(again, place->cell);
    free(again);
    assert_int_equal(confine_cgroup2.remove(place->cells, &id), 0);
    assert_int_equal(confine_cgroup2.remove(place->cells, &id), 0);
    assert_int_equal(confine_cgroup2.is_populated(place->cells, &id), 0);
    assert_int_equal(confine_cgroup2.kill(place->cells, &id), 0);
}

static void note_cell(void *arg, const struct spool_id *found, bool is_populated)
{
    int *count = arg;
    assert_memory_equal(found, &id, sizeof(id));
    assert_false(is_populated);
    (*count)++;
}

CASE(cells_are_found_again_by_the_next_agent, place)
{
    int count = 0;
    if (place->cells == NULL)
        skip();
    confine_cgroup2.close(place->cells);
    assert_int_equal(confine_cgroup2.open(place->run_dir, NULL, &place->cells, NULL), 0);
    assert_int_equal(confine_cgroup2.list(place->cells, note_cell, &count), 0);
    assert_int_equal(count, 1);
}

/* The directory of a cgroup beside the instance, and its name as /proc/PID/cgroup has it. */
static char *parent_beside(const struct place *place, const char **ret_name)
{
    _cleanup_free_ char *beside = xstrdup(place->cell);
    for (int level = 0; level < 3; level++)
        *strrchr(beside, '/') = '\0';
    char *parent = xasprintf("%s/mgpu-test.%d", beside, (int)getpid());
    static const char unified[] = "/sys/fs/cgroup/unified", plain[] = "/sys/fs/cgroup";
    bool is_unified = strncmp(parent, unified, strlen(unified)) == 0;
    *ret_name = parent + (is_unified ? strlen(unified) : strlen(plain));
    return parent;
}

/* Its pid, or 0. */
static pid_t first_process(const char *cgroup)
{
    _cleanup_free_ char *procs = xasprintf("%s/cgroup.procs", cgroup);
    _cleanup_buffer_ struct buffer text = { 0 };
    assert_int_equal(file_read(AT_FDCWD, procs, 4096, &text), 0);
    return text.length == 0 ? 0 : atoi(buffer_text(&text));
}

static char *instance_in(const char *parent)
{
    glob_t found;
    _cleanup_free_ char *pattern = xasprintf("%s/mgpu.*", parent);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    char *instance = xstrdup(found.gl_pathv[0]);
    globfree(&found);
    return instance;
}

/* As a service manager does it: a cgroup with a process that keeps it, and an instance that is told of it. */
struct given {
    char run_dir[64];
    char *parent;
    struct confine_state *cells;
    pid_t pid;
};

static void open_given(const struct place *place, struct given *given)
{
    const char *name;
    *given = (struct given){ .run_dir = "/tmp/mgpu-given.XXXXXX", .parent = parent_beside(place, &name) };
    assert_non_null(mkdtemp(given->run_dir));
    assert_int_equal(confine_cgroup2.open(given->run_dir, name, &given->cells, NULL), -ENOENT);
    assert_int_equal(mkdir(given->parent, 0755), 0);
    given->pid = enter(given->parent);
    assert_int_equal(confine_cgroup2.open(given->run_dir, name, &given->cells, NULL), 0);
}

static void end_holder(const struct given *given)
{
    _cleanup_free_ char *holder = xasprintf("%s/holder", given->parent);
    assert_int_equal(kill(given->pid, SIGKILL), 0);
    assert_int_equal(waitpid(given->pid, NULL, 0), given->pid);
    assert_int_equal(rmdir(holder), 0);
}

static void close_given(struct given *given)
{
    _cleanup_free_ char *remembered = xasprintf("%s/cgroup", given->run_dir);
    assert_int_equal(confine_cgroup2.remove(given->cells, &id), 0);
    confine_cgroup2.close(given->cells);
    assert_int_equal(rmdir(given->parent), 0);
    assert_int_equal(unlink(remembered), 0);
    forget_v1(given->run_dir);
    assert_int_equal(rmdir(given->run_dir), 0);
    free(given->parent);
}

CASE(a_given_cgroup_has_the_cells_and_no_process_of_its_own, place)
{
    struct given given;
    if (place->cells == NULL)
        skip();
    open_given(place, &given);
    _cleanup_free_ char *holder = xasprintf("%s/holder", given.parent), *cell = NULL;
    int shepherd_fd;
    assert_int_equal(first_process(given.parent), 0);
    assert_int_equal(first_process(holder), given.pid);
    assert_int_equal(confine_cgroup2.prepare(given.cells, &id, &cell, &shepherd_fd, NULL), 0);
    assert_memory_equal(cell, given.parent, strlen(given.parent));
    end_holder(&given);
    close_given(&given);
}

CASE(a_given_cgroup_that_was_made_anew_is_used_again, place)
{
    struct given given;
    if (place->cells == NULL)
        skip();
    open_given(place, &given);
    _cleanup_free_ char *instance = instance_in(given.parent), *cell = NULL;
    _cleanup_free_ char *shepherds = xasprintf("%s/shepherds", instance);
    int shepherd_fd;
    end_holder(&given);
    assert_int_equal(rmdir(shepherds), 0);
    assert_int_equal(rmdir(instance), 0);
    assert_int_equal(rmdir(given.parent), 0);
    assert_int_equal(confine_cgroup2.prepare(given.cells, &id, &cell, &shepherd_fd, NULL), -ENOENT);
    assert_int_equal(mkdir(given.parent, 0755), 0);
    assert_int_equal(confine_cgroup2.prepare(given.cells, &id, &cell, &shepherd_fd, NULL), 0);
    assert_int_equal(access(cell, F_OK), 0);
    close_given(&given);
}

TEST(the_last_kind_always_opens)
{
    struct confine_state *cells = NULL;
    const struct confine *last = NULL;
    char *cell = (char[]){ "" };
    int shepherd_fd = 7;
    for (size_t i = 0; confine_kinds[i] != NULL; i++)
        last = confine_kinds[i];
    assert_string_equal(last->name, "none");
    assert_int_equal(last->open("/nosuchdir", NULL, &cells, NULL), 0);
    assert_int_equal(last->prepare(cells, &id, &cell, &shepherd_fd, NULL), 0);
    assert_null(cell);
    assert_int_equal(shepherd_fd, -1);
    assert_int_equal(last->is_populated(cells, &id), -EOPNOTSUPP);
    assert_int_equal(last->kill(cells, &id), 0);
    assert_int_equal(last->remove(cells, &id), 0);
    last->close(cells);
}

static void assert_name(const char *run_dir, const char *state_dir, char name[CONFINE_NAME_SIZE])
{
    struct error err = { 0 };
    assert_int_equal(confine_name_choose(run_dir, state_dir, &err), 0);
    confine_name_read(run_dir, name);
    assert_memory_equal(name, "mgpu.", 5);
    assert_int_equal(strlen(name), 13);
}

CASE(an_instance_is_named_by_its_directories_and_keeps_its_name, place)
{
    _cleanup_free_ char *chosen = xasprintf("%s/cgroup-name", place->run_dir);
    _cleanup_free_ char *made = xasprintf("%s/cgroup", place->run_dir);
    char before[CONFINE_NAME_SIZE], first[CONFINE_NAME_SIZE], second[CONFINE_NAME_SIZE];
    confine_name_read(place->run_dir, before);
    assert_int_equal(file_write(AT_FDCWD, made, "", 0, false), 0);
    assert_name(place->run_dir, "/", second);
    assert_string_equal(second, before); // a version before made cgroups
    assert_int_equal(unlink(made), 0);
    forget_v1(place->run_dir);
    assert_name(place->run_dir, "/", first);
    assert_string_not_equal(first, before);
    assert_name(place->run_dir, "/tmp", second);
    assert_string_equal(second, first); // it is kept
    assert_int_equal(unlink(chosen), 0);
    assert_name(place->run_dir, "/tmp", second);
    assert_string_not_equal(second, first);
    assert_int_equal(unlink(chosen), 0);
}
