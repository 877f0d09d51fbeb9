/* SPDX-License-Identifier: MIT */
#include "controller/config/roles.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/config/groups.h"
#include "wire/usernames.h"

#define GROUP       "group:"
#define OTHERS      "others"
#define REMEMBERED  1024U // number of users whose role is cached; a power of two
#define REMEMBER_MS 60000

struct rule {
    bool is_group;
    uint32_t id;
    enum role role;
};

struct remembered {
    int64_t until_ms; // 0: unused
    uint32_t uid;
    enum role role;
};

struct roles {
    struct rule *rules;
    size_t n_rules;
    enum role others;
    struct remembered remembered[REMEMBERED];
};

/* The order in which roles add rights. */
static int rank(enum role role)
{
    static const int ranks[ROLES] = {
        [ROLE_VIEWER] = 0, [ROLE_USER] = 1, [ROLE_OPERATOR] = 2, [ROLE_ADMIN] = 3
    };
    return ranks[role];
}

static int find_id(const char *who, struct rule *rule, struct error *err)
{
    if (strncmp(who, GROUP, strlen(GROUP)) == 0) {
        rule->is_group = true;
        return group_find(who + strlen(GROUP), &rule->id, err);
    }
    struct usernames *names = usernames_new();
    int r = usernames_uid(names, who, &rule->id, err);
    usernames_free(names);
    return r;
}

int roles_add(struct roles **roles, const char *who, enum role role, struct error *err)
{
    struct rule rule = { .role = role };
    bool is_others = strcmp(who, OTHERS) == 0;
    int r = is_others ? 0 : find_id(who, &rule, err);
    if (r < 0)
        return r;
    if (*roles == NULL)
        *roles = xcalloc(1, sizeof(**roles)); // others: ROLE_USER
    if (is_others) {
        (*roles)->others = role;
        return 0;
    }
    (*roles)->rules = xreallocarray((*roles)->rules, (*roles)->n_rules + 1, sizeof(rule));
    (*roles)->rules[(*roles)->n_rules++] = rule;
    return 0;
}

/* *ret_is_sure is false if the user database did not respond. In that case fewer rights are granted, for a
 * short time only. */
static enum role look_up(const struct roles *roles, uint32_t uid, bool *ret_is_sure)
{
    bool is_found = false;
    enum role role = roles->others;
    for (size_t i = 0; i < roles->n_rules; i++)
        if (!roles->rules[i].is_group && roles->rules[i].id == uid)
            return roles->rules[i].role;
    for (size_t i = 0; i < roles->n_rules; i++) {
        const struct rule *rule = &roles->rules[i];
        if (!rule->is_group || (is_found && rank(rule->role) <= rank(role)))
            continue;
        int has = group_has(rule->id, uid);
        *ret_is_sure &= has >= 0;
        if (has <= 0)
            continue;
        role = rule->role;
        is_found = true;
    }
    return role;
}

enum role roles_of(struct roles *roles, uint32_t uid)
{
    if (roles == NULL)
        return ROLE_USER;
    struct remembered *kept = &roles->remembered[uid % REMEMBERED];
    int64_t now_ms = clock_boot_ms();
    if (kept->until_ms > now_ms && kept->uid == uid)
        return kept->role;
    bool is_sure = true;
    enum role role = look_up(roles, uid, &is_sure);
    *kept = (struct remembered){ .until_ms = is_sure ? now_ms + REMEMBER_MS : 0, .uid = uid, .role = role };
    return role;
}

void roles_free(struct roles *roles)
{
    if (roles == NULL)
        return;
    free(roles->rules);
    free(roles);
}
