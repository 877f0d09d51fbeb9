/* SPDX-License-Identifier: MIT */
/* The switch to the user, each in its own child, because it cannot be undone. */

#include <grp.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shepherd/user.h"
#include "unit_test.h"

#define CHILD_FINE 0
#define JOB_UID    65534U

/* Becomes the user in a child. Returns the step that failed, or 100 when `check` is not content. */
static int become(const struct launch_spec *spec, bool (*check)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        enum launch_step step = STEP_NONE;
        if (user_become(spec, &step) < 0)
            _exit((int)step);
        _exit(check() ? CHILD_FINE : 100);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static bool cannot_come_back(void)
{
    return getuid() == JOB_UID && geteuid() == JOB_UID && getgid() == JOB_UID && setuid(0) < 0 &&
           setgid(0) < 0 && getgroups(0, NULL) == 2 && umask(0) == 077;
}

int __wrap_setgroups(size_t size, const gid_t *list);
int __real_setgroups(size_t size, const gid_t *list);
static bool is_deaf; // the groups stay as they are, and nobody says so

int __wrap_setgroups(size_t size, const gid_t *list)
{
    return is_deaf ? 0 : __real_setgroups(size, list);
}

static bool is_unchanged(void)
{
    return true;
}

TEST(the_switch_is_whole)
{
    if (geteuid() != 0)
        skip();
    struct group_id groups[] = { { 4242 }, { JOB_UID } };
    struct launch_spec spec = {
        .uid = JOB_UID, .gid = JOB_UID, .umask = 077, .groups = { .items = groups, .count = 2 }
    };
    assert_int_equal(become(&spec, cannot_come_back), CHILD_FINE);
}

/* Each call says that it went well. */
TEST(a_switch_that_kept_something_of_root_is_refused)
{
    struct group_id groups[] = { { 4242 }, { JOB_UID } };
    const struct launch_spec spec = {
        .uid = JOB_UID, .gid = JOB_UID, .groups = { .items = groups, .count = 2 }
    };
    const struct launch_spec root = { .uid = 0, .gid = JOB_UID, .groups = { .items = groups, .count = 2 } };
    if (geteuid() != 0)
        skip();
    is_deaf = true;
    assert_int_equal(become(&spec, is_unchanged), STEP_PROOF);
    assert_int_equal(become(&root, is_unchanged), STEP_PROOF);
    is_deaf = false;
    /* Whoever started mgpu may have set these. */
    assert_int_equal(prctl(PR_SET_SECUREBITS, 1 << SECURE_KEEP_CAPS), 0);
    assert_int_equal(become(&spec, is_unchanged), STEP_PROOF);
    assert_int_equal(prctl(PR_SET_SECUREBITS, 1 << SECURE_NO_SETUID_FIXUP), 0);
    assert_int_equal(become(&spec, is_unchanged), STEP_PROOF);
    assert_int_equal(prctl(PR_SET_SECUREBITS, 0), 0);
    assert_int_equal(become(&spec, is_unchanged), CHILD_FINE);
}

static bool is_kept_from_rights(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

static bool may_gain_rights(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
}

TEST(a_job_gains_rights_unless_the_site_says_otherwise)
{
    struct launch_spec spec = { .uid = geteuid() != 0 ? geteuid() : JOB_UID, .gid = JOB_UID };
    if (!may_gain_rights())
        skip();
    assert_int_equal(become(&spec, may_gain_rights), CHILD_FINE);
    spec.has_no_new_privs = true;
    assert_int_equal(become(&spec, is_kept_from_rights), CHILD_FINE);
}

TEST(without_root_only_our_own_uid_can_be_had)
{
    struct launch_spec spec = { .uid = geteuid(), .gid = getegid() };
    if (geteuid() == 0)
        skip();
    assert_int_equal(become(&spec, is_unchanged), CHILD_FINE);
    spec.uid++;
    assert_int_equal(become(&spec, is_unchanged), STEP_UID);
}

TEST(a_limit_that_cannot_be_set_fails)
{
    struct launch_spec spec = { .uid = geteuid(), .gid = getegid(), .nofile_hard = UINT64_MAX - 1 };
    assert_int_equal(become(&spec, is_unchanged), STEP_LIMITS);
}
