/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/job_user.h"
#include "agent/host/users.h"
#include "base/memory.h"
#include "unit_test.h"

TEST(root_is_known_everywhere)
{
    _cleanup_(user_clear) struct user user;
    struct error err = { 0 };
    assert_int_equal(user_lookup(0, &user, &err), 0);
    assert_string_equal(user.name, "root");
    assert_int_equal(user.gid, 0);
    assert_int_equal(user.home[0], '/');
    assert_int_equal(user.shell[0], '/');
    assert_true(user_is_member(&user, 0));
    assert_false(user_is_member(&user, 54321));
}

TEST(each_group_is_listed_once)
{
    _cleanup_(user_clear) struct user user;
    assert_int_equal(user_lookup(0, &user, NULL), 0);
    assert_true(user.n_groups >= 1);
    for (size_t i = 1; i < user.n_groups; i++)
        assert_true(user.groups[i - 1] < user.groups[i]);
}

/* In a child: there is no way back. */
TEST(a_switch_to_a_user_leaves_no_group_of_root)
{
    gid_t groups[] = { 65534 }, roots[] = { 0, 4242 };
    char name[] = "nobody";
    const struct user user = { .uid = 65534, .gid = 65534, .name = name, .groups = groups, .n_groups = 1 };
    int status = 0;
    if (geteuid() != 0)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        gid_t left[8];
        if (setgroups(2, roots) < 0 || job_user_become(&user, 0, NULL) < 0)
            _exit(1);
        bool is_member_alone = getgroups(8, left) == 1 && left[0] == 65534;
        _exit(is_member_alone && getuid() == 65534 && getegid() == 65534 && setuid(0) < 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(an_unknown_uid_is_told_in_words)
{
    struct user user;
    struct error err = { 0 };
    assert_int_equal(user_lookup(4000000001U, &user, &err), -ENOENT);
    assert_string_equal(err.message, "unknown user id on this node: 4000000001");
}

TEST(a_name_that_is_the_same_is_right)
{
    assert_int_equal(user_check_name(0, "root", "root", "n1", NULL), 0);
}

TEST(a_second_name_of_a_number_is_right)
{
    assert_int_equal(user_check_name(0, "root", "toor", "n1", NULL), 0);
}

TEST(a_number_with_another_name_is_told_with_both)
{
    struct error err = { 0 };
    assert_int_equal(user_check_name(0, "no-such-user", "root", "n1", &err), -EPERM);
    assert_string_equal(err.message, "on node n1 user id 0 is root, not no-such-user");
}

TEST(a_name_with_another_number_is_told_with_both)
{
    struct error err = { 0 };
    assert_int_equal(user_check_name(4000000001U, "root", NULL, "n1", &err), -EPERM);
    assert_string_equal(err.message, "on node n1 root has user id 0, not 4000000001");
}

TEST(who_is_not_known_by_number_or_name_is_nobody_else)
{
    assert_int_equal(user_check_name(4000000001U, "no-such-user", NULL, "n1", NULL), 0);
}

/* As the check of an order does it, for an account that exists on every machine. */
TEST(jobs_of_system_accounts_are_refused_before_they_are_looked_up)
{
    struct error err = { 0 };
    struct job_users users = { .is_root = true, .min_uid = 1000, .is_number_enough = true, .node = "n1" };
    _cleanup_user_ struct user user = { 0 };
    assert_int_equal(job_user_find(&users, 1, NULL, &user, &err), -EPERM);
    assert_string_equal(
        err.message, "uid 1 is a system account, and node n1 runs jobs of uid 1000 and above");
    assert_int_equal(job_user_check(&users, 1, &err), 0); // its process may be adopted
    users.min_uid = 1;
    assert_int_equal(job_user_find(&users, 1, NULL, &user, &err), 0);
    assert_int_equal(user.uid, 1);
    users.min_uid = 1000;
    assert_int_equal(job_user_find(&users, 0, NULL, &user, &err), -EPERM);
    assert_non_null(strstr(err.message, "--allow-root-jobs"));
}
