/* SPDX-License-Identifier: MIT */
#include "compat/feed/llm.h"

#include <errno.h>
#include <string.h>

#include "base/json/field.h"

#define STANDARD 1.0

static bool is_requirement(const json_t *value)
{
    double number = json_number_value(value);
    return json_is_number(value) && number >= 0.001 && number <= FEED_REQUIREMENT_MAX;
}

static void refuse(const char *path, const char *what, feed_report_fn *report, void *arg)
{
    struct error err = { 0 };
    (void)error_set(&err, -EINVAL, "%.200s: %.60s: not a number of GPUs from 0.001 to %g, ignored", path,
        what, FEED_REQUIREMENT_MAX);
    report(arg, &err);
}

int feed_llm_parse(const char *text, size_t length, const char *path, feed_report_fn *report, void *arg,
    struct feed_llm *ret, struct error *err)
{
    json_error_t where = { 0 };
    const char *name = NULL;
    json_t *value = NULL;
    _cleanup_json_ json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return error_set(err, -EINVAL, "%.200s:%d: %.160s", path, where.line, where.text);
    const json_t *standard = json_object_get(root, "default_requirement");
    json_t *models = json_object_get(root, "models");
    if (!json_is_object(root) || (models != NULL && !json_is_object(models)))
        return error_set(err, -EINVAL, "%.200s: not an object with default_requirement and models", path);
    if (standard != NULL && !is_requirement(standard))
        refuse(path, "default_requirement", report, arg);
    *ret = (struct feed_llm){ .standard = is_requirement(standard) ? json_number_value(standard) : STANDARD,
        .models = json_object() };
    json_object_foreach(models, name, value)
    {
        if (is_requirement(value))
            (void)json_object_set(ret->models, name, value);
        else
            refuse(path, name, report, arg);
    }
    return 0;
}

const char *feed_find_argument(const struct strings *arguments, const char *option)
{
    const char *found = NULL;
    size_t length = strlen(option);
    for (size_t i = 0; i < arguments->count; i++) {
        const char *word = arguments->items[i];
        if (strncmp(word, option, length) != 0)
            continue;
        if (word[length] == '=')
            found = word + length + 1;
        else if (word[length] == '\0' && i + 1 < arguments->count)
            found = arguments->items[++i];
    }
    return found;
}

double feed_llm_requirement(
    const struct feed_llm *llm, const struct strings *arguments, const char **ret_unknown)
{
    const char *name = feed_find_argument(arguments, "--llm");
    const json_t *value = name == NULL ? NULL : json_object_get(llm->models, name);
    double standard = llm->standard > 0 ? llm->standard : STANDARD;
    *ret_unknown = name != NULL && value == NULL ? name : NULL;
    return value != NULL ? json_number_value(value) : standard;
}

void feed_llm_clear(struct feed_llm *llm)
{
    json_decref(llm->models);
    *llm = (struct feed_llm){ 0 };
}
