/* SPDX-License-Identifier: MIT */
/* mgpu config: the current settings of mgpud and of the user, and where each was set. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/complete/complete.h"
#include "cli/options/defaults.h"
#include "cli/options/list.h"
#include "cli/verbs/verbs.h"

#define CONFIG_PATH API_PATH "/config"

struct config_options {
    bool has_origin;
};

static const struct option_row rows[] = {
    { 0, "origin", NULL, "show where each is set: file and line, the command line of mgpud, or default",
        OPTION_INNER(flag, struct config_options, has_origin) },
    { 0 },
};

static const struct list_column columns[] = {
    { "key", "KEY", "name of the setting; VERB.OPTION for your own", "key", false, 0, NULL },
    { "value", "VALUE", "value", "value", false, 1, NULL },
    { "origin", "ORIGIN", "origin", "origin", false, 2, NULL },
    { "help", "HELP", "description", "help", false, 3, NULL },
    { 0 },
};

static const struct list_kind plain = {
    .member = "settings", .columns = columns, .normal = "key,value", .wide = "key,value,origin,help"
};
static const struct list_kind with_origin = {
    .member = "settings", .columns = columns, .normal = "key,value,origin", .wide = "key,value,origin,help"
};

/* The settings of mgpud, then the user's own. */
static int fetch(struct call *call, json_t **ret, struct error *err)
{
    int r = client_get(&call->client, CONFIG_PATH, ret, err);
    return r < 0 ? r : defaults_list(json_object_get(*ret, "settings"), err);
}

static int run_list(struct call *call, int argc, char **argv, struct error *err)
{
    const struct config_options *options = call->options;
    const struct list_kind *kind = options->has_origin ? &with_origin : &plain;
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    if (list_print_help(&call->list, kind, stdout))
        return EXIT_OK;
    int r = list_check(&call->list, kind, err);
    if (r == 0)
        r = fetch(call, &answer, err);
    if (r < 0)
        return r;
    screen_open(&screen, fileno(stdout), call->color);
    return list_print(call, kind, &screen, answer, stdout, err);
}

static int refuse_key(const json_t *settings, const char *key, struct error *err)
{
    size_t count = 0, index;
    json_t *setting;
    _cleanup_free_ const char **names = xcalloc(json_array_size(settings) + 1, sizeof(char *));
    json_array_foreach(settings, index, setting) names[count++] = field_text(setting, "key");
    const char *near = text_nearest(key, names);
    (void)error_set(err, -ENOENT, "unknown setting '%.60s'", key);
    return near != NULL ? error_hint(err, "did you mean %s?", near)
                        : error_hint(err, "all of them: mgpu config list");
}

static int run_get(struct call *call, int argc, char **argv, struct error *err)
{
    const struct config_options *options = call->options;
    _cleanup_json_ json_t *answer = NULL;
    size_t index;
    json_t *setting;
    if (argc != 1) {
        (void)error_set(err, -EINVAL, "one setting is expected, not %d", argc);
        return error_hint(err, "all of them: mgpu config list");
    }
    int r = fetch(call, &answer, err);
    if (r < 0)
        return r;
    const json_t *settings = json_object_get(answer, "settings");
    json_array_foreach(settings, index, setting)
    {
        if (!text_equal(field_text(setting, "key"), argv[0]))
            continue;
        if (call->is_json) {
            show_json_page(setting, stdout);
            return EXIT_OK;
        }
        _cleanup_free_ char *value = field_shown(setting, "value"), *origin = field_shown(setting, "origin");
        (void)printf(options->has_origin ? "%s  (%s)\n" : "%s\n", value, origin);
        return EXIT_OK;
    }
    return refuse_key(settings, argv[0], err);
}

static const struct command list_command = {
    .name = "config list",
    .usage = "[OPTIONS]",
    .help = "Show every setting",
    .tables = { rows, call_list_rows },
    .options_size = sizeof(struct config_options),
    .takes_nothing = true,
    .list = &plain,
    .run = run_list,
};

static const struct command get_command = {
    .name = "config get",
    .usage = "[--origin] KEY",
    .help = "Show one setting",
    .tables = { rows },
    .options_size = sizeof(struct config_options),
    .complete_operand = complete_settings,
    .run = run_get,
};

static const struct command *const actions[] = { &list_command, &get_command, NULL };

const struct command command_config = {
    .name = "config",
    .usage = "list|get",
    .help = "Show the effective settings, and where each is set",
    .actions = actions,
};
