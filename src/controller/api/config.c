/* SPDX-License-Identifier: MIT */
/* GET /config: what is set, and where. */
#include "controller/http/request.h"
#include "controller/api/routes.h"
#include "controller/config/settings.h"
#include "wire/json_text.h"

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_text_string(text) : json_null();
}

static void write_setting(void *arg, const struct setting *setting)
{
    json_t *array = arg;
    (void)json_array_append_new(
        array, json_pack("{s:o,s:o,s:o,s:b,s:o}", "key", json_text_string(setting->key), "value",
                   text_or_null(setting->value), "origin", json_text_string(setting->origin), "live",
                   setting->is_live, "help", text_or_null(setting->help)));
}

void handle_config(struct request *request)
{
    const struct controller_options *options = &request->serve->controller->options;
    json_t *settings = json_array(), *files = json_array(), *warnings = json_array(), *body = json_object();
    settings_visit(options, write_setting, settings);
    for (size_t i = 0; i < options->n_files; i++)
        (void)json_array_append_new(files, json_text_string(options->files[i]));
    for (size_t i = 0; i < options->warnings.count; i++)
        (void)json_array_append_new(warnings, json_text_string(options->warnings.items[i]));
    (void)json_object_set_new(body, "settings", settings);
    (void)json_object_set_new(body, "files", files);
    (void)json_object_set_new(body, "warnings", warnings);
    request_reply_json(request, 200, body);
}
