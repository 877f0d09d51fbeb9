/* SPDX-License-Identifier: MIT */
/* Fractions are written as "0.8" or "80%". */
#include "controller/config/settings_external.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/options.h"

static struct external_settings *settings_of(void *target)
{
    return &(*(struct controller_options **)target)->external;
}

static int set_part(uint32_t *field, const char *what, const char *value, struct error *err)
{
    char *end = NULL;
    double part = strtod(value, &end);
    bool is_number = end != value;
    if (is_number && strcmp(end, "%") == 0)
        part /= 100;
    else if (*end != '\0')
        is_number = false;
    if (!is_number || !(part >= 0 && part <= 1))
        return error_set(
            err, -EINVAL, "%s: '%.60s' is neither a fraction from 0 to 1 nor a percentage", what, value);
    *field = (uint32_t)(part * 100 + 0.5);
    return 0;
}

static int option_set_part(void *target, const struct option_row *row, const char *value, struct error *err)
{
    return set_part(option_member(target, row), option_name_of(row).text, value, err);
}

static int set_external(void *target, const char *value, struct error *err)
{
    enum external_policy policy = external_policy_find(value);
    if (policy == EXTERNAL_POLICIES) {
        (void)error_set(err, -EINVAL, "--foreign: unknown policy '%.40s'", value);
        return error_hint(err, "one of avoid, fit-around, ignore");
    }
    settings_of(target)->policy = policy;
    return 0;
}

static int set_external_memory(void *target, const char *value, struct error *err)
{
    struct external_settings *settings = settings_of(target);
    settings->external_part = 0;
    if (strchr(value, '%') == NULL)
        return parse_size(value, "--foreign-memory", &settings->external_memory, err);
    int r = set_part(&settings->external_part, "--foreign-memory", value, err);
    if (r == 0 && settings->external_part == 0)
        settings->external_memory = 0; // the same as 0 bytes of one process
    return r;
}

const struct option_row external_rows[] = {
    { 0, "foreign", "POLICY", "GPUs with external processes: avoid, fit-around, ignore", set_external,
        "avoid" },
    { 0, "foreign-memory", "SIZE", "memory above which a process counts, or N% for all of a GPU",
        set_external_memory, "512M" },
    { 0, "foreign-load", "PART", "load above which they count on a GPU without jobs",
        OPTION_INNER(part, struct controller_options, external.external_load), .preset = "5%" },
    { 0, "share-max-memory", "PART", "memory use above which a shared GPU gets no more jobs",
        OPTION_INNER(part, struct controller_options, external.share_memory), .preset = "0.8" },
    { 0, "share-max-load", "PART", "load above which a shared GPU gets no more jobs",
        OPTION_INNER(part, struct controller_options, external.share_load), .preset = "0.8" },
    { 0, NULL, NULL, NULL, NULL },
};
