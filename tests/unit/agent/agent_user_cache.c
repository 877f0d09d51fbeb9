/* SPDX-License-Identifier: MIT */
/* How long an answer of the user database is used again. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/user_cache.h"
#include "base/memory.h"
#include "unit_test.h"

#define UID    1001
#define NOW_MS 100000

static gid_t groups[] = { 77, 88 };
static char user_name[] = "ana", home[] = "/home/ana", shell[] = "/bin/bash";
static const struct user ana = {
    .uid = UID, .gid = 77, .name = user_name, .home = home, .shell = shell, .groups = groups, .n_groups = 2
};

struct scene {
    char place[32];
    struct user_cache *cache;
};

/* As usermod(8) does it: a new file in the place of the old one. */
static void write_file(const struct scene *scene, const char *name, const char *text)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", scene->place, name);
    _cleanup_free_ char *temporary = xasprintf("%s+", path);
    FILE *file = fopen(temporary, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(temporary, path), 0);
}

static int open_scene(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    (void)strcpy(scene->place, "/tmp/mgpu-users-XXXXXX");
    assert_non_null(mkdtemp(scene->place));
    write_file(scene, "passwd", "ana:x:1001:77::/home/ana:/bin/bash\n");
    write_file(scene, "group", "staff:x:88:ana\n");
    scene->cache = user_cache_new(scene->place);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    static const char *const names[] = { "passwd", "group", "nsswitch.conf" };
    struct scene *scene = *state;
    user_cache_free(scene->cache);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", scene->place, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(scene->place);
    free(scene);
    return 0;
}

#define CASE(name, scene) TEST_ON(name, struct scene *scene, open_scene, close_scene)

static void add(struct scene *scene, const char *name, const char *logs)
{
    const struct user_stamp stamp = user_cache_stamp(scene->cache, NOW_MS);
    user_cache_add(scene->cache, &stamp, UID, name, logs, &ana);
}

static bool is_kept(struct scene *scene, int64_t boot_ms, uid_t uid, const char *name, const char *logs)
{
    _cleanup_user_ struct user user = { 0 };
    return user_cache_find(scene->cache, boot_ms, uid, name, logs, &user);
}

CASE(answer_is_used_again_whole, scene)
{
    _cleanup_user_ struct user user = { 0 };
    add(scene, "ana", NULL);
    assert_true(user_cache_find(scene->cache, NOW_MS + USER_CACHE_MS - 1, UID, "ana", NULL, &user));
    assert_int_equal(user.uid, UID);
    assert_int_equal(user.gid, 77);
    assert_string_equal(user.name, "ana");
    assert_string_equal(user.home, "/home/ana");
    assert_string_equal(user.shell, "/bin/bash");
    assert_int_equal(user.n_groups, 2);
    assert_memory_equal(user.groups, groups, sizeof(groups));
}

CASE(answer_is_forgotten_after_its_time, scene)
{
    add(scene, NULL, NULL);
    assert_false(is_kept(scene, NOW_MS + USER_CACHE_MS, UID, NULL, NULL));
    assert_false(is_kept(scene, NOW_MS, UID, NULL, NULL)); // for good
}

CASE(change_of_any_file_ends_every_answer, scene)
{
    static const char *const names[] = { "passwd", "group", "nsswitch.conf" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        add(scene, NULL, NULL);
        assert_true(is_kept(scene, NOW_MS, UID, NULL, NULL));
        write_file(scene, names[i], "staff:x:88:bob\n");
        assert_false(is_kept(scene, NOW_MS, UID, NULL, NULL));
    }
}

/* The answer may be from before the change. */
CASE(change_during_the_lookup_ends_the_answer, scene)
{
    const struct user_stamp stamp = user_cache_stamp(scene->cache, NOW_MS);
    write_file(scene, "group", "staff:x:88:\n");
    user_cache_add(scene->cache, &stamp, UID, NULL, NULL, &ana);
    assert_false(is_kept(scene, NOW_MS, UID, NULL, NULL));
}

CASE(answer_is_for_the_same_question_only, scene)
{
    add(scene, "ana", "/var/log/mgpu");
    assert_true(is_kept(scene, NOW_MS, UID, "ana", "/var/log/mgpu"));
    assert_false(is_kept(scene, NOW_MS, UID + 1, "ana", "/var/log/mgpu"));
    assert_false(is_kept(scene, NOW_MS, UID, "bob", "/var/log/mgpu"));
    assert_false(is_kept(scene, NOW_MS, UID, NULL, "/var/log/mgpu"));
    assert_false(is_kept(scene, NOW_MS, UID, "ana", NULL)); // that directory may be missing
    assert_false(is_kept(scene, NOW_MS, UID, "ana", "/var/log"));
}

CASE(many_users_displace_the_oldest_answer, scene)
{
    for (unsigned i = 0; i < 1000; i++) {
        struct user user = ana;
        user.uid = UID + i;
        const struct user_stamp stamp = user_cache_stamp(scene->cache, NOW_MS + i);
        user_cache_add(scene->cache, &stamp, user.uid, NULL, NULL, &user);
    }
    assert_false(is_kept(scene, NOW_MS + 1000, UID, NULL, NULL));
    assert_true(is_kept(scene, NOW_MS + 1000, UID + 999, NULL, NULL));
}
