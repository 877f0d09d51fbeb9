/* SPDX-License-Identifier: MIT */
/*
 * A machine with a GPU may be lent for minutes: what decides most comes first, and what does not fit is left
 * out, so that something shorter after it is tried in its place.
 */
#include "lab/kit/plan.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define SPARE_PERCENT 150 // of its usual time a check must have: another GPU may be slower
#define SPARE_MS      2000

static const struct check *const lists[] = { kit_machine_checks, kit_nvml_checks, kit_cuda_checks,
    kit_amd_checks, kit_agent_checks, kit_job_checks, kit_feature_checks, kit_limit_checks, kit_array_checks,
    kit_several_checks, kit_park_checks, kit_park_way_checks, kit_framework_checks, kit_container_checks,
    kit_mig_checks, kit_load_checks };

/* Whether `name` is one of the names in `list`, between commas. */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ','), at += at != NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static bool is_wanted(const struct check *check, const char *only)
{
    if (only == NULL)
        return check->rank != RANK_ASKED;
    return check->rank == RANK_FIRST || is_listed(only, check->name);
}

void plan_each(const char *only, void (*visit)(const struct check *check, void *arg), void *arg)
{
    for (int rank = RANK_FIRST; rank < RANKS; rank++)
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
            for (const struct check *check = lists[i]; check->name != NULL; check++)
                if ((int)check->rank == rank && is_wanted(check, only))
                    visit(check, arg);
}

/* --- names --- */

static bool is_check(const char *name)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const struct check *check = lists[i]; check->name != NULL; check++)
            if (strcmp(check->name, name) == 0)
                return true;
    return false;
}

int plan_check_names(const char *only, struct error *err)
{
    _cleanup_free_ char *copy = only != NULL ? xstrdup(only) : NULL;
    char *rest = copy;
    for (char *name = strsep(&rest, ","); name != NULL; name = strsep(&rest, ","))
        if (!is_check(name))
            return error_set(err, -EINVAL, "--only: there is no check '%.40s'; --list shows all", name);
    return 0;
}

/* --- times --- */

bool plan_has_time(const struct kit *kit, const struct check *check)
{
    int64_t needed_ms = check->usual_ms > 0 ? check->usual_ms * SPARE_PERCENT / 100 + SPARE_MS : 0;
    return kit_left_ms(kit, needed_ms > 0 ? needed_ms : 1) >= needed_ms;
}

struct listing {
    FILE *out;
    int64_t ms;
};

static void print_check(const struct check *check, void *arg)
{
    struct listing *listing = arg;
    bool is_asked = check->rank == RANK_ASKED;
    listing->ms += is_asked ? 0 : check->usual_ms;
    (void)fprintf(listing->out, "%-14s %5.1f s  %5.0f s  %s%s\n", check->name, (double)check->usual_ms / 1000,
        (double)listing->ms / 1000, check->title, is_asked ? " (only if --only names it)" : "");
}

void plan_print(const char *only, FILE *out)
{
    struct listing listing = { .out = out };
    plan_each(only, print_check, &listing);
    for (size_t i = 0; only == NULL && i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const struct check *check = lists[i]; check->name != NULL; check++)
            if (check->rank == RANK_ASKED)
                print_check(check, &listing);
}
