/* SPDX-License-Identifier: MIT */
/*
 * A table with one entry per uid modulo its size: a new entry replaces the old one, so the cache never grows
 * and needs no clean-up.
 */
#include "wire/usernames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "wire/directory.h"
#include "wire/limits.h"

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

/* False if the user database does not respond: then the number is shown instead of the name. */
static bool look_up(struct place *place)
{
    _cleanup_entry_ struct directory_entry entry = { 0 };
    int r = directory_find(DIRECTORY_USER, place->uid, NULL, &entry);
    place->is_known = r == 0;
    place->name = r == 0 ? take_ptr(entry.name) : xasprintf("%" PRIu32, place->uid);
    return r != -EAGAIN;
}

static const struct place *find_place(struct usernames *names, uint32_t uid)
{
    struct place *place = &names->places[uid % LIMIT_USER_NAMES];
    int64_t now_ms = clock_boot_ms();
    if (place->is_used && place->uid == uid && now_ms < place->until_ms)
        return place;
    free(place->name);
    *place = (struct place){ .is_used = true, .uid = uid };
    if (look_up(place))
        place->until_ms = now_ms + LIMIT_USER_NAMES_S * 1000LL;
    return place;
}

const char *usernames_name(struct usernames *names, uint32_t uid)
{
    return find_place(names, uid)->name;
}

const char *usernames_known(struct usernames *names, uint32_t uid)
{
    names->places[uid % LIMIT_USER_NAMES].until_ms = 0;
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
    _cleanup_entry_ struct directory_entry entry = { 0 };
    int r = directory_find(DIRECTORY_USER_NAMED, 0, name, &entry);
    if (r == -EAGAIN)
        return error_set(err, r, "the user database of this machine does not respond");
    if (r < 0)
        return error_set(err, -ENOENT, "there is no user '%.60s' on this machine", name);
    *ret_uid = entry.id;
    return 0;
}

int usernames_account(uint32_t uid, uint32_t *ret_gid, char **ret_home)
{
    _cleanup_entry_ struct directory_entry entry = { 0 };
    int r = directory_find(DIRECTORY_USER, uid, NULL, &entry);
    if (r < 0)
        return r;
    if (ret_gid != NULL)
        *ret_gid = entry.gid;
    if (ret_home != NULL)
        *ret_home = take_ptr(entry.home);
    return 0;
}
