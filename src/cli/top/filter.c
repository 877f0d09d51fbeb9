/* SPDX-License-Identifier: MIT */
/* A field is a row; a term without a field is searched everywhere. */
#include "cli/top/filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/show/job_columns.h"
#include "cli/show/usage_text.h"

static bool has(const char *text, const char *part)
{
    return text != NULL && strcasestr(text, part) != NULL;
}

static bool is_own(const struct filter *filter, const json_t *job)
{
    return field_integer(job, "uid", -1) == filter->own_uid;
}

static bool user_matches(const struct filter *filter, const json_t *job, const char *part)
{
    return strcasecmp(part, "you") == 0 ? is_own(filter, job) : has(field_text(job, "user"), part);
}

static bool state_matches(const struct filter *filter, const json_t *job, const char *part)
{
    return strncasecmp(job_state_shown(job), part, strlen(part)) == 0;
}

static bool gpu_matches(const struct filter *filter, const json_t *job, const char *part)
{
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(json_object_get(job, "granted"), index, gpu)
    {
        const char *node = field_is_known(gpu, "node") ? field_text(gpu, "node") : field_text(job, "node");
        _cleanup_free_ char *number = xasprintf("%" PRId64, field_integer(gpu, "index", -1));
        _cleanup_free_ char *full = xasprintf("%s:%s", node == NULL ? "" : node, number);
        if (text_equal(number, part) || strcasecmp(full, part) == 0)
            return true;
    }
    return false;
}

static bool name_matches(const struct filter *filter, const json_t *job, const char *part)
{
    return has(field_text(job, "name"), part);
}

static bool id_matches(const struct filter *filter, const json_t *job, const char *part)
{
    _cleanup_free_ char *id = job_id(job), *plain = field_shown(job, "id");
    return text_equal(id, part) || text_equal(plain, part);
}

static bool anything_matches(const struct filter *filter, const json_t *job, const char *part)
{
    _cleanup_free_ char *id = job_id(job);
    return has(id, part) || user_matches(filter, job, part) || has(job_state_shown(job), part) ||
           has(field_text(job, "name"), part) || has(field_text(job, "command"), part) ||
           has(field_text(job, "reason_text"), part) || has(field_text(job, "message"), part) ||
           has(field_text(job, "node"), part);
}

static const struct {
    const char *prefix;
    bool (*matches)(const struct filter *filter, const json_t *job, const char *part);
} fields[] = {
    { "u:", user_matches },
    { "user:", user_matches },
    { "s:", state_matches },
    { "state:", state_matches },
    { "gpu:", gpu_matches },
    { "n:", name_matches },
    { "name:", name_matches },
    { "id:", id_matches },
    { "", anything_matches },
};

static bool word_matches(const struct filter *filter, const json_t *job, const char *word)
{
    bool is_wanted = word[0] != '!';
    word += !is_wanted;
    if (*word == '\0')
        return true;
    size_t i = 0;
    while (strncasecmp(word, fields[i].prefix, strlen(fields[i].prefix)) != 0)
        i++;
    const char *part = word + strlen(fields[i].prefix);
    return *part == '\0' || fields[i].matches(filter, job, part) == is_wanted;
}

bool filter_is_trouble(const json_t *job)
{
    const json_t *usage = json_object_get(job, "usage");
    _cleanup_free_ char *stray = job_is_done(job) ? NULL : usage_stray(usage);
    bool is_stuck = field_is(job, "state", "queued") &&
                    (field_is(job, "reason", "never_fits") || field_is(job, "reason", "dependency_never"));
    return field_is(job, "state", "failed") || stray != NULL || is_stuck || field_is_known(usage, "fault") ||
           (!job_is_done(job) && field_is_known(job, "idle"));
}

bool filter_matches(const struct filter *filter, const json_t *job)
{
    if (job_is_split_up(job) || (filter->is_mine && !is_own(filter, job)) ||
        (filter->is_trouble && !filter_is_trouble(job)))
        return false;
    if (filter->text == NULL)
        return true;
    char words[FILTER_BYTES_MAX + 1];
    (void)snprintf(words, sizeof(words), "%s", filter->text);
    char *rest = words;
    for (char *word = NULL; (word = strsep(&rest, " ")) != NULL;)
        if (!word_matches(filter, job, word))
            return false;
    return true;
}
