/* SPDX-License-Identifier: MIT */
/* Which group of a user counts, by a user database that the test has written. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "controller/config/groups.h"
#include "unit_test.h"
#include "wire/directory.h"

enum { ANA = 1000, PRIMARY = 100, LAB = 200, CLUB = 300, OTHER = 400 };

/* The database's entry of ANA; NULL: an error instead. */
static int database_error;

int __wrap_directory_find(
    enum directory_kind kind, uint32_t number, const char *name, struct directory_entry *ret);
int __wrap_directory_find(
    enum directory_kind kind, uint32_t number, const char *name, struct directory_entry *ret)
{
    static const gid_t groups[] = { PRIMARY, LAB, CLUB };
    assert_int_equal(kind, DIRECTORY_MEMBER);
    if (database_error != 0)
        return database_error;
    if (number != ANA)
        return -ENOENT;
    *ret = (struct directory_entry){
        .id = ANA, .gid = PRIMARY, .groups = xcalloc(3, sizeof(*groups)), .n_groups = 3
    };
    memcpy(ret->groups, groups, sizeof(groups));
    return 0;
}

/* The group of ANA that counts while her process has `gid`, with these accounts configured. */
static uint32_t counts(const struct core_account *accounts, size_t count, uint32_t uid, uint32_t gid)
{
    struct core_account copy[4];
    memcpy(copy, accounts, count * sizeof(*copy));
    const struct controller_options options = { .accounts = copy, .n_accounts = count };
    return group_that_counts(&options, uid, gid);
}

TEST(the_first_configured_group_counts_of_those_that_the_user_is_in)
{
    const struct core_account user = { .kind = ACCOUNT_USER, .id = LAB };
    const struct core_account department = { .kind = ACCOUNT_DEPARTMENT, .id = CLUB };
    const struct core_account lab = { .kind = ACCOUNT_GROUP, .id = LAB };
    const struct core_account club = { .kind = ACCOUNT_GROUP, .id = CLUB };
    const struct core_account other = { .kind = ACCOUNT_GROUP, .id = OTHER };
    const struct core_account primary = { .kind = ACCOUNT_GROUP, .id = PRIMARY };
    const struct {
        struct core_account accounts[4];
        size_t count;
        uint32_t wanted;
    } cases[] = {
        { { user }, 0, PRIMARY },
        { { user, department }, 2, PRIMARY }, // of numbers alone, they are her groups
        { { other }, 1, PRIMARY },
        { { lab }, 1, LAB },
        { { other, club, lab }, 3, CLUB },
        { { lab, club }, 2, LAB },
        { { lab, club, primary }, 3, PRIMARY },
    };
    const uint32_t of_process[] = { PRIMARY, LAB, CLUB, OTHER, 0 };
    database_error = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t k = 0; k < sizeof(of_process) / sizeof(of_process[0]); k++)
            assert_int_equal(counts(cases[i].accounts, cases[i].count, ANA, of_process[k]), cases[i].wanted);
}

TEST(the_group_of_the_process_counts_where_the_database_has_no_answer)
{
    const struct core_account lab = { .kind = ACCOUNT_GROUP, .id = LAB };
    database_error = 0;
    assert_int_equal(counts(&lab, 1, ANA + 1, OTHER), OTHER);
    database_error = -EAGAIN;
    assert_int_equal(counts(&lab, 1, ANA, CLUB), CLUB);
    database_error = 0;
    assert_int_equal(counts(&lab, 1, ANA, CLUB), LAB);
}
