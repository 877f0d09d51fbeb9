/* SPDX-License-Identifier: MIT */
#include "cli/api/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/words.h"
#include "job/inherited.h"

#define EXPORT_ALL     "all"
#define EXPORT_MINIMAL "minimal"
#define LOCALE_PREFIX  "LC_"

/* The variables a program needs to know its user, the language and the path of programs. */
static const char *const minimal[] = { "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ",
    "TERM", NULL };

/* How this mgpu reaches mgpud, and its secret: the node of the job provides its own. */
static const char *const own[] = { "MGPU_TOKEN", "MGPU_TOKEN_FILE", "MGPU_HOST", NULL };

static bool is_keyword(const char *what)
{
    return strcmp(what, EXPORT_ALL) == 0 || strcmp(what, EXPORT_MINIMAL) == 0;
}

int environment_check(const char *what, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(what);
    char *rest = copy;
    for (char *name = NULL; !is_keyword(what) && (name = strsep(&rest, ",")) != NULL;) {
        if (strchr(name, '=') != NULL) {
            (void)error_set(err, -EINVAL, "--export: '%.60s' has a value, but only names are allowed", name);
            return error_hint(err, "set a variable with -e %.60s", name);
        }
        if (is_keyword(name))
            return error_set(err, -EINVAL, "--export: '%.20s' cannot be part of a list", name);
        if (!words_is_variable(name))
            return error_set(
                err, -EINVAL, "--export: '%.60s' is neither all, minimal nor variable names", name);
    }
    return 0;
}

static bool is_one_of(const char *const *names, const char *name)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_minimal(const char *name)
{
    return is_one_of(minimal, name) || strncmp(name, LOCALE_PREFIX, strlen(LOCALE_PREFIX)) == 0;
}

static bool is_listed(const char *what, const char *name)
{
    _cleanup_free_ char *copy = xstrdup(what);
    char *rest = copy;
    for (char *one = NULL; (one = strsep(&rest, ",")) != NULL;)
        if (strcmp(one, name) == 0)
            return true;
    return false;
}

bool environment_is_exported(const char *what, const char *name)
{
    bool is_all = what == NULL || strcmp(what, EXPORT_ALL) == 0;
    if (is_all)
        return !is_one_of(own, name);
    return is_minimal(name) || is_listed(what, name);
}

static const char *get_entry(const void *environment, const char *name)
{
    size_t length = strlen(name);
    for (char *const *entry = environment; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* True if the variable describes the job in which this command runs, and was not requested by name. */
static bool is_of_job_around(char *const *environment, const char *what, const char *name)
{
    bool is_named = what != NULL && !is_keyword(what) && is_listed(what, name);
    return !is_named && inherited_describes(name, environment, get_entry);
}

static unsigned add_entries(json_t *env, const char *what, bool is_inherited, char *const *entries)
{
    char *const *const all = entries;
    bool is_in_job = is_inherited && inherited_is_in_job(all, get_entry);
    unsigned left_out = 0;
    for (; entries != NULL && *entries != NULL; entries++) {
        const char *equals = strchr(*entries, '=');
        if (equals == NULL || equals == *entries)
            continue;
        _cleanup_free_ char *name = xstrndup(*entries, (size_t)(equals - *entries));
        if (is_inherited && !environment_is_exported(what, name))
            continue;
        if (is_in_job && is_of_job_around(all, what, name))
            continue;
        json_t *value = json_string(equals + 1);
        if (value == NULL || json_object_set_new(env, name, value) < 0)
            left_out++;
    }
    return left_out;
}

/* A name that does not exist is a mistake, which the job would notice only when it runs. */
static int check_there(const char *what, const json_t *env, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(what);
    char *rest = copy;
    for (char *name = NULL; !is_keyword(what) && (name = strsep(&rest, ",")) != NULL;)
        if (json_object_get(env, name) == NULL)
            return error_set(err, -ENOENT, "--export: variable %.60s is not set", name);
    return 0;
}

int environment_make(const char *what, char *const *inherited, json_t *files, const struct strings *given,
    json_t **ret, unsigned *ret_left_out, struct error *err)
{
    _cleanup_json_ json_t *env = json_object();
    unsigned left_out = add_entries(env, what, true, inherited);
    int r = what == NULL ? 0 : check_there(what, env, err);
    if (r < 0)
        return r;
    if (files != NULL)
        (void)json_object_update(env, files);
    *ret_left_out = left_out + add_entries(env, NULL, false, given->items);
    *ret = take_ptr(env);
    return 0;
}
