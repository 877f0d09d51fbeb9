/* SPDX-License-Identifier: MIT */
/* The user database hangs, or ends the process that asks it, for some users; the others do not wait. */

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/host/user_resolver.h"
#include "base/clock.h"
#include "base/memory.h"
#include "unit_test.h"

#define HANGING     7001
#define FATAL       7002
#define ORPHANING   7006 // as FATAL, and another process keeps its end of the socket open
#define MISSING     7003
#define SLOW        7005
#define LOGLESS     7004 // his log directory is on a file system that hangs
#define ANSWER_MS   500
#define SLOW_NS     50000000L
#define MANY        50U
#define DEADLINE_MS 20000

static unsigned n_lookups;

/* In the place of libc's, also in the resolver's processes. */
int mkdirat(int dirfd, const char *path, mode_t mode)
{
    while (strcmp(path, "7004") == 0)
        (void)pause();
    return (int)syscall(SYS_mkdirat, dirfd, path, mode);
}

int getpwnam_r(const char *name, struct passwd *entry, char *text, size_t size, struct passwd **found)
{
    n_lookups++;
    *found = NULL;
    return 0;
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t size, struct passwd **found)
{
    static char name[] = "root", home[] = "/home/ana", shell[] = "/bin/bash";
    n_lookups++;
    while (uid == HANGING)
        (void)pause();
    const struct timespec time = { .tv_nsec = SLOW_NS };
    if (uid == SLOW)
        (void)nanosleep(&time, NULL);
    if (uid == ORPHANING && fork() == 0) {
        char byte;
        (void)!read(CHILD_FD, &byte, 1); // until the agent closes it
        _exit(0);
    }
    if (uid == FATAL || uid == ORPHANING)
        _exit(3);
    *entry =
        (struct passwd){ .pw_name = name, .pw_dir = home, .pw_shell = shell, .pw_uid = uid, .pw_gid = 77 };
    *found = uid != MISSING ? entry : NULL;
    return 0;
}

struct scene {
    struct event_base *base;
    struct user_resolver *resolver;
    struct job_users users;
    uint64_t resolved; // bits: jobs whose user is known
    const char *logs;
};

static void on_resolved(void *arg, const struct spool_id *id)
{
    ((struct scene *)arg)->resolved |= 1ULL << id->job;
}

static int open_scene(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    scene->base = event_base_new();
    scene->users = (struct job_users){ .is_root = true, .is_number_enough = true, .node = "n1" };
    scene->resolver = user_resolver_new(scene->base, &scene->users, ANSWER_MS, on_resolved, scene);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    user_resolver_free(scene->resolver);
    event_base_free(scene->base);
    free(scene);
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, close_scene)

static int find(struct scene *scene, uint64_t job, uid_t uid, struct user *ret, struct error *err)
{
    const struct spool_id id = { .job = job, .attempt = 1 };
    return user_resolver_find(scene->resolver, &id, uid, NULL, scene->logs, ret, err);
}

static void begin(struct scene *scene, uint64_t job, uid_t uid)
{
    assert_int_equal(find(scene, job, uid, NULL, NULL), -EINPROGRESS);
}

static void await(struct scene *scene, uint64_t jobs)
{
    int64_t deadline_ms = clock_boot_ms() + DEADLINE_MS;
    while ((scene->resolved & jobs) != jobs && clock_boot_ms() < deadline_ms)
        (void)event_base_loop(scene->base, EVLOOP_ONCE);
    assert_int_equal(scene->resolved & jobs, jobs);
}

static void expect_user(struct scene *scene, uint64_t job, uid_t uid)
{
    _cleanup_user_ struct user user = { 0 };
    assert_int_equal(find(scene, job, uid, &user, NULL), 0);
    assert_int_equal(user.uid, uid);
    assert_int_equal(user.gid, 77);
    assert_string_equal(user.name, "root");
    assert_string_equal(user.home, "/home/ana");
    assert_string_equal(user.shell, "/bin/bash");
    assert_true(user_is_member(&user, 77));
}

CASE(answer_is_that_of_a_direct_lookup, scene)
{
    begin(scene, 1, 1001);
    await(scene, 1 << 1);
    _cleanup_(user_clear) struct user direct;
    assert_int_equal(job_user_find(&scene->users, 1001, NULL, &direct, NULL), 0);
    _cleanup_user_ struct user user = { 0 };
    assert_int_equal(find(scene, 1, 1001, &user, NULL), 0);
    assert_string_equal(user.home, direct.home);
    assert_int_equal(user.n_groups, direct.n_groups);
    assert_memory_equal(user.groups, direct.groups, user.n_groups * sizeof(gid_t));
}

CASE(refusal_keeps_its_words, scene)
{
    struct user user;
    struct error err = { 0 };
    begin(scene, 1, MISSING);
    begin(scene, 2, 0); // root, which is not allowed here
    await(scene, 1 << 1 | 1 << 2);
    assert_int_equal(find(scene, 1, MISSING, &user, &err), -ENOENT);
    assert_string_equal(err.message, "unknown user id on this node: 7003");
    assert_int_equal(find(scene, 2, 0, &user, &err), -EPERM);
    assert_string_equal(err.hint, "submit as a normal user");
}

CASE(hanging_user_delays_no_other, scene)
{
    for (uint64_t job = 1; job <= 20; job++) // more than there are processes
        begin(scene, job, HANGING);
    begin(scene, 30, 1001);
    begin(scene, 31, 1002);
    await(scene, 1ULL << 30 | 1ULL << 31);
    assert_int_equal(scene->resolved & 2, 0);
    expect_user(scene, 30, 1001);
    expect_user(scene, 31, 1002);
}

CASE(database_that_does_not_answer_is_named, scene)
{
    struct user user;
    struct error err = { 0 };
    int64_t began_ms = clock_boot_ms();
    begin(scene, 1, HANGING);
    await(scene, 1 << 1);
    assert_true(clock_boot_ms() - began_ms >= ANSWER_MS - 10);
    assert_int_equal(find(scene, 1, HANGING, &user, &err), -ETIMEDOUT);
    assert_string_equal(
        err.message, "the user database of node n1 did not respond within 0.5 s for uid 7001");
    assert_string_equal(err.hint, "try getent passwd 7001 there");
    begin(scene, 2, 1001); // by another process
    await(scene, 1 << 2);
    expect_user(scene, 2, 1001);
}

CASE(log_directory_that_hangs_delays_no_other_user, scene)
{
    char place[] = "/tmp/mgpu-logs-XXXXXX", path[64];
    struct user user;
    struct error err = { 0 };
    struct stat st;
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(place));
    scene->logs = place;
    begin(scene, 1, LOGLESS);
    begin(scene, 2, 1001);
    await(scene, 1 << 2);
    assert_int_equal(scene->resolved & 2, 0);
    expect_user(scene, 2, 1001);
    (void)snprintf(path, sizeof(path), "%s/1001", place);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_uid == 1001 && st.st_gid == 77 && (st.st_mode & 07777) == 0700);
    await(scene, 1 << 1);
    assert_int_equal(find(scene, 1, LOGLESS, &user, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.message, "the log directory /tmp/mgpu-logs-"));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(place), 0);
}

CASE(database_is_asked_once_where_the_names_agree, scene)
{
    scene->users.is_number_enough = false;
    _cleanup_user_ struct user user = { 0 };
    n_lookups = 0;
    assert_int_equal(job_user_find(&scene->users, 1001, "root", &user, NULL), 0);
    assert_int_equal(n_lookups, 1);
    struct user other;
    struct error err = { 0 };
    assert_int_equal(job_user_find(&scene->users, 1001, "ana", &other, &err), -EPERM);
    assert_string_equal(err.message, "on node n1 user id 1001 is root, not ana");
}

CASE(each_of_many_hanging_users_is_given_up, scene)
{
    struct user user;
    for (uint64_t job = 1; job <= 20; job++)
        begin(scene, job, HANGING);
    await(scene, 0x1ffffe);
    for (uint64_t job = 1; job <= 20; job++)
        assert_int_equal(find(scene, job, HANGING, &user, NULL), -ETIMEDOUT);
}

CASE(process_that_dies_is_replaced, scene)
{
    struct user user;
    struct error err = { 0 };
    begin(scene, 1, FATAL);
    begin(scene, 2, 1001);
    await(scene, 1 << 1 | 1 << 2);
    assert_int_equal(find(scene, 1, FATAL, &user, &err), -EIO);
    assert_non_null(strstr(err.message, "uid 7002"));
    expect_user(scene, 2, 1001);
}

CASE(process_that_dies_before_its_socket_is_replaced, scene)
{
    struct user user;
    struct error err = { 0 };
    begin(scene, 1, ORPHANING);
    await(scene, 1 << 1);
    assert_int_equal(find(scene, 1, ORPHANING, &user, &err), -EIO);
    assert_string_equal(err.message, "cannot look up uid 7006: the helper process has ended");
    begin(scene, 2, 1001);
    await(scene, 1 << 2);
    expect_user(scene, 2, 1001);
}

CASE(dropped_question_is_not_answered, scene)
{
    const struct spool_id id = { .job = 1, .attempt = 1 };
    begin(scene, 1, HANGING);
    user_resolver_drop(scene->resolver, &id);
    begin(scene, 2, HANGING);
    await(scene, 1 << 2);
    assert_int_equal(scene->resolved, 1 << 2);
}

/* After a failure, the database is queried again each time. */
CASE(next_step_of_a_user_gets_the_same_answer_at_once, scene)
{
    struct user user;
    begin(scene, 1, 1001);
    await(scene, 1 << 1);
    expect_user(scene, 1, 1001);
    expect_user(scene, 2, 1001);
    begin(scene, 3, MISSING);
    await(scene, 1 << 3);
    assert_int_equal(find(scene, 3, MISSING, &user, NULL), -ENOENT);
    begin(scene, 4, MISSING);
}

/* Asked one after the other, they would wait five times as long as any may. */
CASE(many_jobs_of_a_user_share_an_answer, scene)
{
    uint64_t all = 0;
    for (uint64_t job = 1; job <= MANY; job++) {
        begin(scene, job, SLOW);
        all |= 1ULL << job;
    }
    await(scene, all);
    for (uint64_t job = 1; job <= MANY; job++)
        expect_user(scene, job, SLOW);
}
