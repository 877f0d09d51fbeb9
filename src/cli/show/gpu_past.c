/* SPDX-License-Identifier: MIT */
/* The server sends one array per kind of value; here they become rows for list.c. */
#include "cli/show/gpu_past.h"

#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/utc.h"
#include "cli/show/usage_text.h"

#define RECENT_PATH API_PATH "/gpus/history?since=10m&step=30"
#define PAST_COLUMN "past"

static const char *const values[] = { "utilization", "utilization_max", "memory", "memory_max", "power_w",
    "power_w_max", "temperature_c", "temperature_c_max" };
#define N_VALUES (sizeof(values) / sizeof(values[0]))

/* NULL if nothing is known about that time. */
static json_t *make_point(const json_t *gpu, size_t i)
{
    bool is_known = false;
    json_t *point = json_object();
    (void)json_object_set(point, "node", json_object_get(gpu, "node"));
    (void)json_object_set(point, "index", json_object_get(gpu, "index"));
    (void)json_object_set(point, "uuid", json_object_get(gpu, "uuid"));
    (void)json_object_set_new(point, "at", json_null());
    for (size_t k = 0; k < N_VALUES; k++) {
        json_t *value = json_array_get(json_object_get(gpu, values[k]), i);
        is_known = is_known || json_is_number(value);
        (void)json_object_set_new(point, values[k], value != NULL ? json_incref(value) : json_null());
    }
    if (is_known)
        return point;
    json_decref(point);
    return NULL;
}

static void add_points(const json_t *answer, const json_t *gpu, json_t *points)
{
    int64_t from_ms = time_parse(field_text(answer, "from"));
    int64_t step_ms = field_integer(answer, "step_s", 1) * 1000;
    size_t count = json_array_size(json_object_get(gpu, values[0]));
    for (size_t i = 0; i < count; i++) {
        char at[32];
        json_t *point = make_point(gpu, i);
        if (point == NULL)
            continue;
        utc_format(from_ms + (int64_t)i * step_ms, at, sizeof(at));
        (void)json_object_set_new(point, "at", json_string(at));
        (void)json_array_append_new(points, point);
    }
}

static void append_parameter(struct buffer *path, const char *name, const char *value)
{
    if (value == NULL)
        return;
    buffer_printf(path, "%c%s=", strchr(buffer_text(path), '?') == NULL ? '?' : '&', name);
    http_append_encoded(path, value);
}

int gpu_past_get(
    struct client *client, const struct gpu_past_question *question, json_t **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    buffer_append_text(&path, API_PATH "/gpus/history");
    append_parameter(&path, "gpu", question->gpu);
    append_parameter(&path, "since", question->since);
    append_parameter(&path, "step", question->step);
    int r = client_get(client, buffer_text(&path), &answer, err);
    if (r < 0)
        return r;
    size_t index = 0;
    json_t *gpu = NULL, *points = json_array();
    json_array_foreach(json_object_get(answer, "gpus"), index, gpu) add_points(answer, gpu, points);
    *ret = json_object();
    (void)json_object_set(*ret, "schema", json_object_get(answer, "schema"));
    (void)json_object_set(*ret, "step_s", json_object_get(answer, "step_s"));
    (void)json_object_set_new(*ret, "points", points);
    return 0;
}

bool gpu_past_is_shown(const struct call *call)
{
    const char *output = call->list.output;
    if (output == NULL || call->is_json)
        return false;
    if (strcmp(output, "wide") == 0)
        return true;
    _cleanup_free_ char *copy = xstrdup(output);
    char *rest = copy;
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;)
        if (strcmp(name, PAST_COLUMN) == 0)
            return true;
    return false;
}

void gpu_past_attach(struct client *client, json_t *gpus)
{
    _cleanup_json_ json_t *answer = NULL;
    struct error err = { 0 };
    if (client_get(client, RECENT_PATH, &answer, &err) < 0)
        return;
    size_t index = 0, at = 0;
    json_t *gpu = NULL, *past = NULL;
    json_array_foreach(gpus, index, gpu)
    {
        const char *uuid = field_text(gpu, "uuid");
        json_array_foreach(
            json_object_get(answer, "gpus"), at, past) if (uuid != NULL && field_is(past, "uuid", uuid))(void)
            json_object_set(gpu, "recent", json_object_get(past, "utilization"));
    }
}

char *gpu_past_render(const struct view *view, const json_t *gpu, enum color *color)
{
    struct buffer out = { 0 };
    size_t index = 0;
    json_t *part = NULL;
    json_array_foreach(json_object_get(gpu, "recent"), index, part)
    {
        const char *bar = " ";
        if (json_is_number(part))
            bar = usage_bar(view->screen, (int64_t)(json_number_value(part) * 100 + 0.5));
        buffer_append_text(&out, bar);
    }
    return out.length == 0 ? xstrdup("-") : buffer_take(&out);
}

/* --- rows --- */

static char *percent(const struct view *view, const json_t *point, const char *name)
{
    return field_is_known(point, name) ? xasprintf("%.0f%%", field_number(point, name, 0) * 100)
                                       : xstrdup("-");
}

static const struct list_column columns[] = {
    { "at", "TIME", "start", "at", false, 0, .form = list_time },
    { "node", "NODE", "node of the GPU", "node", false, 0, NULL },
    { "gpu", "GPU", "its number, in PCI order", "index", true, 0, NULL },
    { "util", "UTIL", "mean utilization", "utilization", true, 0, .form = percent },
    { "util_max", "MAX", "maximum", "utilization_max", true, 0, .form = percent },
    { "mem", "MEM", "fraction of memory used", "memory", true, 0, .form = percent },
    { "mem_max", "MEM MAX", "maximum", "memory_max", true, 0, .form = percent },
    { "power", "W", "power draw", "power_w", true, 0, NULL },
    { "power_max", "W MAX", "maximum", "power_w_max", true, 0, NULL },
    { "temp", "TEMP", "its temperature", "temperature_c", true, 0, NULL },
    { "temp_max", "TEMP MAX", "maximum", "temperature_c_max", true, 0, NULL },
    { "uuid", "UUID", "UUID", "uuid", false, 0, NULL },
    { 0 },
};

const struct list_kind gpu_past_list = {
    .member = "points",
    .columns = columns,
    .normal = "at,node,gpu,util,util_max,mem,power,temp",
    .wide = "at,node,gpu,util,util_max,mem,mem_max,power,power_max,temp,temp_max,uuid",
};
