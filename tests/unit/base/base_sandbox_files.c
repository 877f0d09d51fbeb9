/* SPDX-License-Identifier: MIT */
/* Each in its own child, because the sandbox cannot be left. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox_files.h"
#include "unit_test.h"

#define UNKNOWN 77 // this kernel has no Landlock

/* The working directory has `own/file`, `others/file` and `single`. */
static int enter(void **state)
{
    char *place = strdup("/tmp/mgpu-sandbox-XXXXXX");
    *state = mkdtemp(place);
    return *state == NULL || chdir(place) < 0 || mkdir("own", 0700) < 0 || mkdir("others", 0700) < 0 ||
           close(creat("own/file", 0600)) < 0 || close(creat("others/file", 0600)) < 0 ||
           close(creat("single", 0600)) < 0;
}

static int leave(void **state)
{
    char command[100];
    (void)snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
    free(*state);
    return chdir("/") < 0 || system(command) != 0;
}

#define CASE(name) TEST_WITH(name, enter, leave)

static int inside(int (*does)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        static const char *const paths[] = { "own", "single" };
        struct error err = { 0 };
        int r = sandbox_limit_changes(paths, 2, &err);
        _exit(r == -ENOTSUP ? UNKNOWN : r < 0 ? 100 : does());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == UNKNOWN)
        skip();
    return WEXITSTATUS(status);
}

static bool can_write(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
    bool is_open = fd >= 0 && write(fd, "x", 1) == 1;
    (void)close(fd);
    return is_open;
}

static int change_own(void)
{
    if (!can_write("own/file", 0) || !can_write("own/new", O_CREAT | O_EXCL) || !can_write("single", O_TRUNC))
        return 1;
    if (mkdir("own/below", 0700) < 0 || rename("own/new", "own/below/new") < 0 || truncate("own/file", 7) < 0)
        return 2;
    return unlink("own/below/new") < 0 || rmdir("own/below") < 0 ? 3 : 0;
}

CASE(its_own_files_are_as_before)
{
    assert_int_equal(inside(change_own), 0);
}

static int change_others(void)
{
    if (can_write("others/file", 0) || can_write("others/new", O_CREAT))
        return 1;
    if (unlink("others/file") == 0 || mkdir("others/below", 0700) == 0 || symlink("x", "others/link") == 0)
        return 2;
    if (rename("own/file", "others/moved") == 0 || rename("others/file", "own/moved") == 0)
        return 3;
    if (unlink("single") == 0)
        return 4;
    return open("others/file", O_RDONLY | O_CLOEXEC) < 0 ? 5 : 0;
}

CASE(those_of_others_can_only_be_read)
{
    assert_int_equal(inside(change_others), 0);
}

static int change_in_a_child(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(can_write("others/file", 0) ? 1 : 42);
    return waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 42 &&
                   prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
               ? 0
               : 1;
}

CASE(children_are_limited_too)
{
    assert_int_equal(inside(change_in_a_child), 0);
}

CASE(a_path_that_is_not_there_is_named)
{
    static const char *const paths[] = { "nothing" };
    struct error err = { 0 };
    int r = sandbox_limit_changes(paths, 1, &err);
    if (r == -ENOTSUP)
        skip();
    assert_int_equal(r, -ENOENT);
    assert_string_equal(err.message, "cannot open nothing: No such file or directory");
    assert_true(can_write("others/file", 0)); // nothing has changed
}
