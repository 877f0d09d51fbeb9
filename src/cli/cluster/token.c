/* SPDX-License-Identifier: MIT */
/* mgpu token create|list|revoke: tokens of the user for the API over TCP. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/cluster/numbered.h"
#include "cli/complete/complete.h"
#include "cli/options/list.h"
#include "cli/verbs/verbs.h"

#define NAME_MAX_SHOWN 100
#define HOURS_MIN      0.001
#define HOURS_MAX      1000000

struct token_options {
    const char *name, *host, *scopes;
    int64_t expires_ms;
    double gpu_hours; // 0: unlimited
};

static const char *const scope_names[] = { "read", "submit", "control", "manage" };

#define SCOPES (sizeof(scope_names) / sizeof(scope_names[0])) // a token without restrictions has all of them

static bool is_scope(const char *name)
{
    for (size_t i = 0; i < SCOPES; i++)
        if (strcmp(scope_names[i], name) == 0)
            return true;
    return false;
}

static int set_scopes(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    struct token_options *options = call->options;
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;) {
        if (!is_scope(name))
            return error_set(err, -EINVAL, "--scope: '%.40s' is not read, submit, control or manage", name);
    }
    options->scopes = value;
    return 0;
}

static int set_hours(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    struct token_options *options = call->options;
    int r = parse_number(value, "--max-gpu-hours", HOURS_MAX, &options->gpu_hours, err);
    if (r == 0 && options->gpu_hours < HOURS_MIN)
        r = error_set(err, -ERANGE, "--max-gpu-hours: the least is %g", HOURS_MIN);
    return r;
}

static const struct option_row rows[] = {
    { 0, "name", "NAME", "name by which to recognise the token (cli)",
        OPTION_INNER(text, struct token_options, name) },
    { 0, "expires", "TIME", "validity (30d)", OPTION_INNER(expiry, struct token_options, expires_ms) },
    { 0, "scope", "LIST", "what it permits: read,submit,control,manage (all of them)", .set = set_scopes },
    { 0, "max-gpu-hours", "N", "GPU time that its jobs may use together (unlimited)", .set = set_hours },
    { 0, "host", "HOST", "address at which the other machine reaches this one (its host name)",
        OPTION_INNER(text, struct token_options, host) },
    { 0 },
};

static json_t *split_scopes(const char *list)
{
    _cleanup_free_ char *copy = xstrdup(list);
    char *rest = copy;
    json_t *array = json_array();
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;)
        (void)json_array_append_new(array, json_string(name));
    return array;
}

static void print_next_step(const struct call *call, const char *api)
{
    const struct token_options *options = call->options;
    if (call->is_quiet)
        return;
    (void)fprintf(stderr,
        "  it grants %s: store it in ~/.config/mgpu/token, mode 600, on the other machine\n",
        options->scopes == NULL ? "your rights" : options->scopes);
    if (api != NULL)
        (void)fprintf(stderr, "  and there: export MGPU_HOST='%s'\n", api);
    else
        (void)fprintf(stderr,
            "  other machines cannot reach this mgpud: it needs --listen with a non-loopback address\n");
}

static int run_create(struct call *call, int argc, char **argv, struct error *err)
{
    const struct token_options *options = call->options;
    _cleanup_json_ json_t *body = json_object(), *answer = NULL;
    (void)json_object_set_new(body, "name", json_string(options->name != NULL ? options->name : "cli"));
    if (options->expires_ms > 0)
        (void)json_object_set_new(body, "expires_s", json_integer((json_int_t)(options->expires_ms / 1000)));
    if (options->scopes != NULL)
        (void)json_object_set_new(body, "scopes", split_scopes(options->scopes));
    if (options->gpu_hours > 0)
        (void)json_object_set_new(body, "max_gpu_hours", json_real(options->gpu_hours));
    if (options->host != NULL)
        (void)json_object_set_new(body, "host", json_string(options->host));
    int r = client_call(&call->client, "POST", API_PATH "/tokens", body, &answer, err);
    if (r < 0)
        return r;
    const char *token = field_text(answer, "token");
    if (call->is_json) {
        show_json_page(answer, stdout);
        return EXIT_OK;
    }
    if (token == NULL)
        return error_set(err, -EBADMSG, "the answer of mgpud contains no token");
    (void)printf("%s\n", token);
    print_next_step(call, field_text(answer, "api"));
    return EXIT_OK;
}

static const struct command create_command = {
    .name = "token create",
    .usage = "[OPTIONS]",
    .help = "Print a token with which another machine or program can act as you",
    .tables = { rows },
    .options_size = sizeof(struct token_options),
    .takes_nothing = true,
    .run = run_create,
};

/* --- list --- */

struct list_options {
    bool is_all;
};

static const struct option_row list_rows[] = {
    { 'a', "all", NULL, "tokens of all users (administrators)",
        OPTION_INNER(flag, struct list_options, is_all) },
    { 0 },
};

/* "submit,read"; for a token without restrictions, "all". */
static char *render_scopes(const struct view *view, const json_t *row, enum color *color)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    const json_t *scopes = json_object_get(row, "scopes"), *scope = NULL;
    size_t i = 0;
    json_array_foreach(scopes, i, scope)
        buffer_printf(&text, "%s%s", i > 0 ? "," : "", json_string_value(scope));
    return xstrdup(json_array_size(scopes) == SCOPES ? "all" : buffer_text(&text));
}

/* "2.5 of 10". */
static char *render_hours(const struct view *view, const json_t *row, enum color *color)
{
    double used = field_number(row, "used_gpu_hours", 0), most = field_number(row, "max_gpu_hours", 0);
    *color = most > 0 && used >= most ? COLOR_RED : *color;
    return most > 0 ? xasprintf("%.4g of %.6g", used, most) : xstrdup("-");
}

static const struct list_column columns[] = {
    { "id", "ID", "its number", "id", true, 0, NULL },
    { "name", "NAME", "description", "name", false, 1, NULL },
    { "user", "USER", "its user", "user", false, 0, NULL },
    { "created", "CREATED", "creation time", "created_at", false, 0, .form = list_moment },
    { "expires", "EXPIRES", "expiry time", "expires_at", false, 0, .form = list_moment },
    { "scopes", "SCOPE", "what it permits", NULL, false, 0, render_scopes },
    { "hours", "GPU-HOURS", "used by its jobs, and the most", "used_gpu_hours", true, 0, render_hours },
    { 0 },
};

static const struct list_kind kind = {
    .member = "tokens",
    .columns = columns,
    .normal = "id,name,user,scopes,hours,created,expires",
    .wide = "id,name,user,scopes,hours,created,expires",
};

static int run_list(struct call *call, int argc, char **argv, struct error *err)
{
    const struct list_options *options = call->options;
    return list_run(call, &kind, options->is_all ? API_PATH "/tokens?all=1" : API_PATH "/tokens", err);
}

static const struct command list_command = {
    .name = "token list",
    .usage = "[OPTIONS]",
    .help = "List your valid tokens",
    .tables = { call_list_rows, list_rows },
    .options_size = sizeof(struct list_options),
    .takes_nothing = true,
    .list = &kind,
    .run = run_list,
};

/* --- revoke --- */

static int run_revoke(struct call *call, int argc, char **argv, struct error *err)
{
    static const struct numbered tokens = { "token", "you have", API_PATH "/tokens", "tokens",
        "mgpu token list" };
    int r = numbered_delete(call, &tokens, argc, argv, err);
    return r < 0 ? r : EXIT_OK;
}

static const struct command revoke_command = {
    .name = "token revoke",
    .usage = "NAME|NUMBER...",
    .help = "Revoke tokens, effective at once",
    .complete_operand = complete_tokens,
    .run = run_revoke,
};

static const struct command *const actions[] = { &create_command, &list_command, &revoke_command, NULL };

const struct command command_token = {
    .name = "token",
    .usage = "create|list|revoke ...",
    .help = "Create, list and revoke API tokens",
    .actions = actions,
};
