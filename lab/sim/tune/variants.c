/* SPDX-License-Identifier: MIT */
/* Variants are written as mgpud's options are, so that one that is better can be used as it stands. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "lab/sim/talk.h"
#include "lab/sim/tune/tune.h"

#define RESERVATIONS_MAX 1000
#define DAY_MS           ((int64_t)24 * 3600 * 1000)

const char *const tune_usual[] = {
    "policy=learnt",
    "policy=easy-qssf",
    "policy=easy",
    "policy=conservative",
    "policy=fifo-skip",
    "policy=fifo",
    "age-cap=14d",
    "age-cap=3d",
    "half-life=1d",
    "half-life=28d",
    "reservations=0",
    "reservations=4",
    "placement=best-fit",
    "placement=consolidate",
    "park=auto",
    NULL,
};

static int set_policy(struct sched_settings *settings, const char *value, struct error *err)
{
    int r = talk_policy("policy", value, &settings->policy, err);
    if (r == 0 && settings->policy->is_oracle)
        r = error_set(err, -EINVAL, "policy %s needs the real durations, which no mgpud knows", value);
    return r;
}

static int set_placement(struct sched_settings *settings, const char *value, struct error *err)
{
    return talk_placement("placement", value, &settings->placement, err);
}

static int set_reservations(struct sched_settings *settings, const char *value, struct error *err)
{
    int64_t number = 0;
    int r = parse_integer(value, "reservations", 0, RESERVATIONS_MAX, &number, err);
    settings->reservations = (uint32_t)number;
    return r;
}

static int set_half_life(struct sched_settings *settings, const char *value, struct error *err)
{
    return parse_duration(value, "half-life", &settings->half_life_ms, err);
}

static int set_age_cap(struct sched_settings *settings, const char *value, struct error *err)
{
    return parse_duration(value, "age-cap", &settings->age_cap_ms, err);
}

static const char *const park_modes[] = {
    [PARKING_NEVER] = "never",
    [PARKING_ASKED] = "asked",
    [PARKING_AUTO] = "auto",
    NULL,
};

static int set_park(struct sched_settings *settings, const char *value, struct error *err)
{
    for (size_t i = 0; park_modes[i] != NULL; i++)
        if (strcmp(value, park_modes[i]) == 0) {
            settings->parking = (enum parking_mode)i;
            return 0;
        }
    return talk_unknown("value of park", value, park_modes, err);
}

static const struct {
    const char *name;
    int (*set)(struct sched_settings *settings, const char *value, struct error *err);
} rows[] = {
    { "policy", set_policy },
    { "placement", set_placement },
    { "reservations", set_reservations },
    { "half-life", set_half_life },
    { "age-cap", set_age_cap },
    { "park", set_park },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int apply_one(struct sched_settings *settings, const char *name, const char *value, struct error *err)
{
    const char *names[ROWS + 1] = { NULL };
    for (size_t i = 0; i < ROWS; i++) {
        names[i] = rows[i].name;
        if (strcmp(name, rows[i].name) == 0)
            return rows[i].set(settings, value, err);
    }
    return talk_unknown("setting", name, names, err);
}

int tune_apply(const char *text, struct sched_settings *settings, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = NULL;
    int r = *text == '\0' ? error_set(err, -EINVAL, "a variant is empty") : 0;
    for (char *pair = strtok_r(copy, ",", &rest); r == 0 && pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(pair, '=');
        if (equals == NULL)
            return error_set(err, -EINVAL, "variant '%.60s': '%.60s' is not NAME=VALUE", text, pair);
        *equals = '\0';
        r = apply_one(settings, pair, equals + 1, err);
    }
    return r;
}

/* As an option takes it: "7d", or seconds. */
static void span_text(int64_t ms, char *text, size_t size)
{
    if (ms % DAY_MS == 0)
        (void)snprintf(text, size, "%" PRId64 "d", ms / DAY_MS);
    else
        (void)snprintf(text, size, "%" PRId64 "s", ms / 1000);
}

void tune_describe(const struct sched_settings *settings, struct buffer *out)
{
    char half_life[32], age_cap[32];
    span_text(settings->half_life_ms, half_life, sizeof(half_life));
    span_text(settings->age_cap_ms, age_cap, sizeof(age_cap));
    buffer_printf(out, "policy=%s,placement=%s,reservations=%u,half-life=%s,age-cap=%s,park=%s",
        settings->policy->name, settings->placement->name, settings->reservations, half_life, age_cap,
        park_modes[settings->parking]);
}
