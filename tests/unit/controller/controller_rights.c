/* SPDX-License-Identifier: MIT */
/* Every role, every action, own jobs and those of others; and the role of each user. The expectation is
 * written out here in another form than that of the table under test. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/config/roles.h"
#include "controller/core/rights.h"
#include "unit_test.h"

/* One letter for each of viewer, user, operator, admin: '-' never, 'o' with his own, 'a' with all. */
static const char *const expected[] = {
    [ACTION_GREET] = "aaaa",
    [ACTION_LOOK] = "aaaa",
    [ACTION_SUBMIT] = "-ooo",
    [ACTION_CONTROL] = "ooaa",
    [ACTION_READ] = "oooa",
    [ACTION_RAISE] = "--aa",
    [ACTION_MANAGE] = "--aa",
    [ACTION_AUDIT] = "---a",
    [ACTION_TOKEN] = "oooa",
    [ACTION_ADMIT] = "---a",
    [ACTION_KILL] = "oooa",
};
/* The scopes of a token that suffice: with any job, and with one that was submitted with it, or
 * that the caller is a command of. */
static const unsigned expected_scopes[][2] = {
    [ACTION_GREET] = { 0, 0 },
    [ACTION_LOOK] = { SCOPE_READ, SCOPE_READ },
    [ACTION_SUBMIT] = { SCOPE_SUBMIT, SCOPE_SUBMIT },
    [ACTION_CONTROL] = { SCOPE_CONTROL, SCOPE_CONTROL | SCOPE_SUBMIT | SCOPE_JOB },
    [ACTION_READ] = { SCOPE_READ, SCOPE_READ | SCOPE_SUBMIT | SCOPE_JOB },
    [ACTION_RAISE] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_MANAGE] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_AUDIT] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_TOKEN] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_ADMIT] = { SCOPE_MANAGE, SCOPE_MANAGE },
    [ACTION_KILL] = { SCOPE_CONTROL, SCOPE_CONTROL | SCOPE_SUBMIT | SCOPE_JOB },
};
static const char *const order[] = { "viewer", "user", "operator", "admin" };

TEST(every_action_has_its_scopes)
{
    assert_int_equal(sizeof(expected_scopes) / sizeof(expected_scopes[0]), ACTIONS);
    for (enum action action = 0; action < ACTIONS; action++) {
        assert_int_equal(scope_needed(action, false), expected_scopes[action][0]);
        assert_int_equal(scope_needed(action, true), expected_scopes[action][1]);
        assert_int_equal(scope_needed(action, false) == 0, action == ACTION_GREET);
    }
    for (unsigned scope = 1; scope <= SCOPE_ALL; scope *= 2)
        assert_int_equal(scope_find(scope_name((enum scope)scope)), scope);
    assert_int_equal(scope_find("all"), 0);
}

TEST(every_cell_is_as_expected)
{
    assert_int_equal(sizeof(expected) / sizeof(expected[0]), ACTIONS);
    assert_int_equal(sizeof(order) / sizeof(order[0]), ROLES);
    for (enum action action = 0; action < ACTIONS; action++) {
        const char *permits = expected[action];
        assert_string_equal(role_name(role_needed(action)), order[strspn(permits, "-")]);
        for (size_t i = 0; i < ROLES; i++) {
            enum role role = role_find(order[i]);
            char permit = permits[i];
            assert_int_equal(role_permits(role, action, false), permit == 'a');
            assert_int_equal(role_permits(role, action, true), permit != '-');
        }
    }
}

TEST(names_go_both_ways)
{
    for (enum role role = 0; role < ROLES; role++)
        assert_int_equal(role_find(role_name(role)), role);
    assert_int_equal(role_find("root"), ROLES);
    assert_int_equal(role_find(""), ROLES);
}

TEST(without_rules_everybody_is_a_user)
{
    assert_int_equal(roles_of(NULL, 1000), ROLE_USER);
}

/* root is in group root (0), daemon in daemon (1), on every Linux. */
TEST(a_name_goes_before_groups_and_the_highest_group_counts)
{
    struct roles *roles = NULL;
    struct error err = { 0 };
    assert_int_equal(roles_add(&roles, "others", ROLE_VIEWER, &err), 0);
    assert_int_equal(roles_add(&roles, "group:daemon", ROLE_USER, &err), 0);
    assert_int_equal(roles_add(&roles, "group:1", ROLE_OPERATOR, &err), 0);
    assert_int_equal(roles_add(&roles, "4711", ROLE_ADMIN, &err), 0);
    assert_int_equal(roles_of(roles, 1), ROLE_OPERATOR);
    assert_int_equal(roles_of(roles, 4711), ROLE_ADMIN);
    assert_int_equal(roles_of(roles, 4712), ROLE_VIEWER);
    assert_int_equal(roles_of(roles, 4712 + 1024), ROLE_VIEWER); // the same place in the memory
    assert_int_equal(roles_of(roles, 4712), ROLE_VIEWER);
    roles_free(roles);
    roles = NULL;
    assert_int_equal(roles_add(&roles, "group:daemon", ROLE_ADMIN, &err), 0);
    assert_int_equal(roles_add(&roles, "daemon", ROLE_VIEWER, &err), 0);
    assert_int_equal(roles_of(roles, 1), ROLE_VIEWER);
    assert_int_equal(roles_add(&roles, "group:no such group", ROLE_USER, &err), -ENOENT);
    assert_int_equal(roles_add(&roles, "no such user", ROLE_USER, &err), -ENOENT);
    roles_free(roles);
}
