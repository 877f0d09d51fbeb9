/* SPDX-License-Identifier: MIT */
/* A user database that hangs: it is waited for once, and what it says later is known. */

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "unit_test.h"
#include "wire/directory.h"

#define DEADLINE_MS 20000

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; // a look-up waits while the test holds it
static unsigned calls;                                   // under the gate

/* In the place of libc's. */
int getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, struct passwd **found)
{
    static char name[] = "ana", home[] = "/home/ana";
    (void)pthread_mutex_lock(&gate);
    calls++;
    *entry = (struct passwd){ .pw_name = name, .pw_dir = home, .pw_uid = uid, .pw_gid = 77 };
    *found = uid < 100 ? entry : NULL;
    (void)pthread_mutex_unlock(&gate);
    return 0;
}

static int find_user(uint32_t uid)
{
    _cleanup_entry_ struct directory_entry entry = { 0 };
    int r = directory_find(DIRECTORY_USER, uid, NULL, &entry);
    if (r == 0) {
        assert_string_equal(entry.name, "ana");
        assert_int_equal(entry.gid, 77);
        assert_int_equal(entry.id, uid);
    }
    return r;
}

TEST(without_the_thread_each_question_is_asked)
{
    calls = 0;
    assert_int_equal(find_user(1), 0);
    assert_int_equal(find_user(1), 0);
    assert_int_equal(find_user(100), -ENOENT);
    assert_int_equal(calls, 3);
}

TEST(an_answer_is_kept)
{
    directory_start();
    calls = 0;
    assert_int_equal(find_user(1), 0);
    assert_int_equal(find_user(1), 0);
    assert_int_equal(find_user(100), -ENOENT);
    assert_int_equal(calls, 2);
}

TEST(a_hanging_database_is_waited_for_once)
{
    directory_start();
    assert_int_equal(find_user(1), 0);
    (void)pthread_mutex_lock(&gate);
    int64_t begin_ms = clock_boot_ms();
    assert_int_equal(find_user(2), -EAGAIN);
    int64_t first_ms = clock_boot_ms();
    assert_in_range(first_ms - begin_ms, DIRECTORY_WAIT_MS / 2, DIRECTORY_WAIT_MS + DEADLINE_MS);
    for (uint32_t uid = 2; uid < 92; uid++) // more than are noted
        assert_int_equal(find_user(uid), -EAGAIN);
    assert_int_equal(find_user(1), 0); // known from before
    assert_true(clock_boot_ms() - first_ms < DIRECTORY_WAIT_MS);
    (void)pthread_mutex_unlock(&gate);
    int64_t deadline_ms = clock_boot_ms() + DEADLINE_MS;
    while (find_user(2) != 0)
        assert_true(clock_boot_ms() < deadline_ms);
    while (find_user(91) != 0)
        assert_true(clock_boot_ms() < deadline_ms);
}
