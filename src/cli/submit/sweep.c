/* SPDX-License-Identifier: MIT */
#include "cli/submit/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/gpu_vendor.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/words.h"
#include "job/spec.h"

#define DIGITS     "0123456789"
#define DIGITS_MAX 9 // of each end of a range

struct axis {
    char *name;
    struct strings values;
};

struct axes {
    struct axis *items;
    size_t count;
};

static void axes_clear(struct axes *axes)
{
    for (size_t i = 0; i < axes->count; i++) {
        free(axes->items[i].name);
        strings_clear(&axes->items[i].values);
    }
    free(axes->items);
    *axes = (struct axes){ 0 };
}

/* A whole number without leading zeros, or -1; *ret_end points behind it. */
static int64_t read_whole(const char *text, const char **ret_end)
{
    size_t digits = strspn(text, DIGITS);
    *ret_end = text + digits;
    if (digits == 0 || digits > DIGITS_MAX || (text[0] == '0' && digits > 1))
        return -1;
    return strtoll(text, NULL, 10);
}

static bool is_range(const char *text, int64_t *ret_first, int64_t *ret_last)
{
    const char *end = NULL;
    *ret_first = read_whole(text, &end);
    if (*ret_first < 0 || *end != '-')
        return false;
    *ret_last = read_whole(end + 1, &end);
    return *ret_last >= 0 && *end == '\0';
}

/* One value; `text` has backslashes as they were typed. */
static int add_value(struct axis *axis, const char *text, struct error *err)
{
    int64_t first = 0, last = 0;
    if (is_range(text, &first, &last)) {
        if (last < first) {
            (void)error_set(err, -EINVAL, "--sweep %.60s: %.40s is reversed", axis->name, text);
            return error_hint(err, "to use it as text, add a backslash: 5\\-1");
        }
        if (last - first >= SWEEP_MAX)
            return error_set(
                err, -E2BIG, "--sweep %.60s: %.40s has more than %u values", axis->name, text, SWEEP_MAX);
        for (int64_t value = first; value <= last; value++)
            strings_take(&axis->values, xasprintf("%" PRId64, value));
        return 0;
    }
    _cleanup_buffer_ struct buffer value = { 0 };
    for (const char *p = text; *p != '\0'; p++) {
        p += *p == '\\' && p[1] != '\0' ? 1 : 0;
        buffer_append(&value, p, 1);
    }
    if (value.length == 0)
        return error_set(err, -EINVAL, "--sweep %.60s: a value is empty", axis->name);
    strings_take(&axis->values, buffer_take(&value));
    return 0;
}

/* The end of the value: a comma without a backslash before it, or the end of the text. */
static size_t value_length(const char *text)
{
    size_t i = 0;
    for (; text[i] != '\0' && text[i] != ','; i++)
        i += text[i] == '\\' && text[i + 1] != '\0' ? 1 : 0;
    return i;
}

static int read_axis(const char *text, struct axis *axis, struct error *err)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return error_set(err, -EINVAL, "--sweep: '%.60s' is not NAME=VALUES, such as lr=0.1,0.01", text);
    axis->name = xstrndup(text, (size_t)(equals - text));
    if (!words_is_variable(axis->name))
        return error_set(err, -EINVAL, "--sweep: '%.60s' is not a valid variable name", axis->name);
    if (gpu_vendor_has_variable(axis->name) || strncmp(axis->name, "MGPU_", 5) == 0)
        return error_set(err, -EINVAL, "--sweep: %.60s is set by mgpu itself", axis->name);
    int r = 0;
    for (const char *p = equals + 1; r == 0; p++) {
        size_t length = value_length(p);
        _cleanup_free_ char *value = xstrndup(p, length);
        r = add_value(axis, value, err);
        p += length;
        if (*p == '\0')
            break;
    }
    if (r == 0 && axis->values.count > SWEEP_MAX)
        return error_set(err, -E2BIG, "--sweep %.60s has more than %u values", axis->name, SWEEP_MAX);
    return r;
}

int sweep_check(const char *text, struct error *err)
{
    _cleanup_(axes_clear) struct axes axes = { .items = xcalloc(1, sizeof(struct axis)), .count = 1 };
    int r = read_axis(text, axes.items, err);
    return r;
}

static int read_axes(const struct strings *sweeps, struct axes *axes, struct error *err)
{
    size_t jobs = 1;
    axes->items = xcalloc(sweeps->count, sizeof(struct axis));
    for (size_t i = 0; i < sweeps->count; i++) {
        axes->count++;
        int r = read_axis(sweeps->items[i], &axes->items[i], err);
        for (size_t k = 0; r == 0 && k < i; k++)
            if (strcmp(axes->items[k].name, axes->items[i].name) == 0)
                r = error_set(err, -EINVAL, "--sweep: %.60s is given twice", axes->items[i].name);
        if (r < 0)
            return r;
        jobs *= axes->items[i].values.count;
        if (jobs > SWEEP_MAX)
            return error_set(err, -E2BIG, "--sweep: that is %zu jobs or more; at most %u", jobs, SWEEP_MAX);
    }
    return 0;
}

/* --- one combination --- */

struct combination {
    const struct axes *axes;
    size_t number;       // counts from 0
    const char **values; // of each axis
};

static void choose(struct combination *combination)
{
    size_t rest = combination->number;
    for (size_t i = combination->axes->count; i > 0; i--) {
        const struct strings *values = &combination->axes->items[i - 1].values;
        combination->values[i - 1] = values->items[rest % values->count];
        rest /= values->count;
    }
}

/* The value for the {NAME} at `p`, or NULL; *ret_length is the length of the {NAME}. */
static const char *find_value(const struct combination *combination, const char *p, size_t *ret_length)
{
    for (size_t i = 0; p[0] == '{' && i < combination->axes->count; i++) {
        const char *name = combination->axes->items[i].name;
        size_t length = strlen(name);
        if (strncmp(p + 1, name, length) == 0 && p[1 + length] == '}') {
            *ret_length = length + 2;
            return combination->values[i];
        }
    }
    return NULL;
}

/* In a path a slash within a value becomes '_'. */
static json_t *replace(
    const struct combination *combination, const char *text, bool is_path, bool *ret_has_any)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (const char *p = text; *p != '\0';) {
        size_t length = 0;
        const char *value = find_value(combination, p, &length);
        if (value == NULL) {
            buffer_append(&out, p++, 1);
            continue;
        }
        for (const char *c = value; *c != '\0'; c++)
            buffer_append(&out, is_path && *c == '/' ? "_" : c, 1);
        *ret_has_any = true;
        p += length;
    }
    return json_string(buffer_text(&out));
}

static json_t *replace_command(const struct combination *combination, const json_t *command)
{
    bool has_any = false;
    size_t index = 0;
    json_t *word = NULL, *words = NULL;
    if (json_is_string(command))
        return replace(combination, json_string_value(command), false, &has_any);
    words = json_array();
    json_array_foreach(command, index, word)(void)
        json_array_append_new(words, replace(combination, json_string_value(word), false, &has_any));
    return words;
}

/* The name before the values: the given one, or that of the program. */
static char *base_name(const json_t *request)
{
    const json_t *command = json_object_get(request, "command");
    const char *name = field_text(request, "name");
    const char *word =
        json_is_array(command) ? json_string_value(json_array_get(command, 0)) : json_string_value(command);
    if (name != NULL)
        return xstrdup(name);
    _cleanup_free_ char *program = xstrndup(word, strcspn(word, " \t\n"));
    const char *slash = strrchr(program, '/');
    return xstrdup(slash != NULL ? slash + 1 : program);
}

/* train-lr=0.1-seed=1, or train-17 if that is too long. */
static char *suffixed_name(const struct combination *combination, const json_t *request)
{
    _cleanup_buffer_ struct buffer name = { 0 };
    _cleanup_free_ char *base = base_name(request);
    buffer_append_text(&name, base);
    for (size_t i = 0; i < combination->axes->count; i++)
        buffer_printf(&name, "-%s=%s", combination->axes->items[i].name, combination->values[i]);
    if (name.length <= SPEC_NAME_MAX)
        return buffer_take(&name);
    return xasprintf("%.*s-%zu", (int)SPEC_NAME_MAX - 8, base, combination->number + 1);
}

static void set_name(const struct combination *combination, json_t *request)
{
    bool has_any = false;
    const char *given = field_text(request, "name");
    json_t *name = given == NULL ? NULL : replace(combination, given, false, &has_any);
    if (!has_any) {
        _cleanup_free_ char *made = suffixed_name(combination, request);
        json_decref(name);
        name = json_string(made);
    }
    (void)json_object_set_new(request, "name", name);
}

static int set_environment(const struct combination *combination, json_t *request, struct error *err)
{
    json_t *env = json_copy(json_object_get(request, "env"));
    (void)json_object_set_new(request, "env", env);
    for (size_t i = 0; i < combination->axes->count; i++)
        if (json_object_set_new(env, combination->axes->items[i].name, json_string(combination->values[i])) <
            0)
            return error_set(err, -EINVAL, "--sweep: a value is not UTF-8 text");
    return 0;
}

/* Members that are the same for all are shared. */
static int make_request(
    const struct combination *combination, json_t *request, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *made = json_copy(request);
    const char *output = field_text(request, "output");
    bool has_any = false;
    int r = set_environment(combination, made, err);
    if (r < 0)
        return r;
    set_name(combination, made);
    (void)json_object_set_new(
        made, "command", replace_command(combination, json_object_get(request, "command")));
    if (output != NULL)
        (void)json_object_set_new(made, "output", replace(combination, output, true, &has_any));
    *ret = take_ptr(made);
    return 0;
}

static int expand(const struct axes *axes, json_t *request, json_t *requests, struct error *err)
{
    size_t jobs = 1;
    _cleanup_free_ const char **values = xcalloc(axes->count, sizeof(char *));
    struct combination combination = { .axes = axes, .values = values };
    for (size_t i = 0; i < axes->count; i++)
        jobs *= axes->items[i].values.count;
    for (; combination.number < jobs; combination.number++) {
        json_t *made = NULL;
        choose(&combination);
        int r = make_request(&combination, request, &made, err);
        if (r < 0)
            return r;
        (void)json_array_append_new(requests, made);
    }
    return 0;
}

int sweep_expand(const struct strings *sweeps, json_t *request, json_t *requests, struct error *err)
{
    struct axes axes = { 0 };
    if (sweeps->count == 0)
        return json_array_append(requests, request);
    int r = read_axes(sweeps, &axes, err);
    if (r == 0)
        r = expand(&axes, request, requests, err);
    axes_clear(&axes);
    return r;
}
