/* SPDX-License-Identifier: MIT */
/*
 * A table with one place per uid modulo its size: a newcomer replaces whoever holds the place, so that the
 * cache never grows and never needs to be swept.
 */
#include "wire/usernames.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "wire/limits.h"

#define ACCOUNT_BUFFER_SIZE 16384

struct place {
    bool is_used, is_known;
    uint32_t uid;
    int64_t until_ms;
    char *name;
};

struct usernames {
    struct place places[LIMIT_USER_NAMES];
};

struct usernames *usernames_new(void)
{
    return xcalloc(1, sizeof(struct usernames));
}

void usernames_free(struct usernames *names)
{
    if (names == NULL)
        return;
    for (size_t i = 0; i < LIMIT_USER_NAMES; i++)
        free(names->places[i].name);
    free(names);
}

static char *look_up(uint32_t uid, bool *ret_is_known)
{
    struct passwd account, *found = NULL;
    char text[ACCOUNT_BUFFER_SIZE];
    int r = getpwuid_r(uid, &account, text, sizeof(text), &found);
    *ret_is_known = r == 0 && found != NULL;
    return *ret_is_known ? xstrdup(account.pw_name) : xasprintf("%" PRIu32, uid);
}

static const struct place *find_place(struct usernames *names, uint32_t uid)
{
    struct place *place = &names->places[uid % LIMIT_USER_NAMES];
    int64_t now_ms = clock_boot_ms();
    if (place->is_used && place->uid == uid && now_ms < place->until_ms)
        return place;
    free(place->name);
    *place = (struct place){
        .is_used = true,
        .uid = uid,
        .until_ms = now_ms + LIMIT_USER_NAMES_S * 1000LL,
    };
    place->name = look_up(uid, &place->is_known);
    return place;
}

const char *usernames_name(struct usernames *names, uint32_t uid)
{
    return find_place(names, uid)->name;
}

const char *usernames_known(struct usernames *names, uint32_t uid)
{
    const struct place *place = find_place(names, uid);
    return place->is_known ? place->name : NULL;
}

int usernames_uid(struct usernames *names, const char *name, uint32_t *ret_uid, struct error *err)
{
    int64_t number;
    if (parse_integer(name, "user", 0, UINT32_MAX - 1, &number, NULL) == 0) {
        *ret_uid = (uint32_t)number;
        return 0;
    }
    struct passwd account, *found = NULL;
    char text[ACCOUNT_BUFFER_SIZE];
    int r = getpwnam_r(name, &account, text, sizeof(text), &found);
    if (r != 0 || found == NULL)
        return error_set(err, -ENOENT, "there is no user '%.60s' on this machine", name);
    *ret_uid = account.pw_uid;
    return 0;
}

int usernames_account(uint32_t uid, uint32_t *ret_gid, char **ret_home)
{
    struct passwd account, *found = NULL;
    char text[ACCOUNT_BUFFER_SIZE];
    int r = getpwuid_r(uid, &account, text, sizeof(text), &found);
    if (r != 0 || found == NULL)
        return -ENOENT;
    if (ret_gid != NULL)
        *ret_gid = account.pw_gid;
    if (ret_home != NULL)
        *ret_home = xstrdup(account.pw_dir);
    return 0;
}
