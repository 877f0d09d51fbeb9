/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/spawn.h"
#include "base/memory.h"
#include "unit_test.h"

static char *const environment[] = { (char[]){ "ONLY=this" }, NULL };

/* Runs a shell script, in a cgroup unless -1; returns its exit status, or a negative errno. */
static int run_in(int cgroup_fd, const char *shell, const char *script)
{
    char sh[] = "sh", c[] = "-c";
    _cleanup_free_ char *copy = xstrdup(script);
    _cleanup_close_ int pidfd = -1;
    char *argv[] = { sh, c, copy, NULL };
    pid_t pid;
    siginfo_t ended = { 0 };
    int r = spawn_program(shell, argv, environment, cgroup_fd, &pid, &pidfd);
    if (r < 0)
        return r;
    assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &ended, WEXITED), 0);
    assert_int_equal(ended.si_pid, pid);
    return ended.si_status;
}

static int run(const char *shell, const char *script)
{
    return run_in(-1, shell, script);
}

TEST(the_program_runs_and_is_reaped_by_its_pidfd)
{
    assert_int_equal(run("/bin/sh", "exit 21"), 21);
}

TEST(it_gets_the_fixed_environment_only)
{
    assert_int_equal(run("/bin/sh", "test \"$ONLY\" = this && test -z \"$HOME\""), 0);
}

TEST(it_gets_no_descriptors_of_ours)
{
    int fd = dup2(STDERR_FILENO, 50);
    assert_int_equal(run("/bin/sh", "test -e /proc/$$/fd/50"), 1);
    assert_int_equal(run("/bin/sh", "test \"$(readlink /proc/$$/fd/0)\" = /dev/null"), 0);
    (void)close(fd);
}

TEST(it_leads_its_own_session)
{
    assert_int_equal(run("/bin/sh", "read -r line < /proc/$$/stat; set -- $line; test $1 = $6"), 0);
}

TEST(it_starts_in_the_cgroup)
{
    static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    _cleanup_free_ char *path = NULL, *script = NULL;
    struct statfs found;
    for (size_t i = 0; path == NULL && i < sizeof(roots) / sizeof(roots[0]); i++)
        if (statfs(roots[i], &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC)
            path = xasprintf("%s/mgpu-test-spawn-%d", roots[i], (int)getpid());
    if (path == NULL || mkdir(path, 0700) < 0)
        skip();
    _cleanup_close_ int cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    script = xasprintf("grep -q '^0::.*/mgpu-test-spawn-%d$' /proc/$$/cgroup", (int)getpid());
    int r = run_in(cgroup_fd, "/bin/sh", script);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(r, 0);
}

TEST(a_program_that_is_missing_is_an_error)
{
    int r = run("/nosuchprogram", "");
    /* A sanitizer forbids the child on our memory, and then only its status tells. */
    assert_true(r == -ENOENT || r == 127);
}

TEST(our_signals_are_as_before)
{
    sigset_t before, after;
    (void)sigprocmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(run("/bin/sh", ":"), 0);
    (void)sigprocmask(SIG_BLOCK, NULL, &after);
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        assert_int_equal(sigismember(&before, signal_number), sigismember(&after, signal_number));
}
