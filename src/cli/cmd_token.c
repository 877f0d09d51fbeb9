/* SPDX-License-Identifier: MIT */
/* mgpu token create: for the API over TCP, as oneself. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/option_text.h"

struct token_options {
    const char *name, *host;
    int64_t expires_ms;
};

static struct token_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_name(void *target, const char *value, struct error *err)
{
    return option_text("--name", value, &options_of(target)->name, err);
}

static int set_host(void *target, const char *value, struct error *err)
{
    return option_text("--host", value, &options_of(target)->host, err);
}

static int set_expires(void *target, const char *value, struct error *err)
{
    int64_t expires_ms = 0;
    int r = parse_duration(value, "--expires", &expires_ms, err);
    if (r == 0 && expires_ms < 1000)
        return error_set(err, -EINVAL, "--expires: '%.60s' is less than a second", value);
    if (r == 0)
        options_of(target)->expires_ms = expires_ms;
    return r;
}

static const struct option_row rows[] = {
    { 0, "name", "NAME", "what it is for, to recognise it by (cli)", set_name },
    { 0, "expires", "TIME", "how long it is good (30d)", set_expires },
    { 0, "host", "HOST", "how the other machine reaches this one (its host name)", set_host },
    { 0 },
};

static void say_what_next(const struct call *call, const char *api)
{
    if (call->is_quiet || isatty(STDERR_FILENO) == 0)
        return;
    (void)fprintf(
        stderr, "  it acts as you: keep it in ~/.config/mgpu/token, mode 600, on the other machine\n");
    if (api != NULL)
        (void)fprintf(stderr, "  and there: export MGPU_HOST='%s'\n", api);
    else
        (void)fprintf(stderr, "  other machines cannot reach this mgpud: it needs --listen with an address "
                              "that is not loopback\n");
}

static int run_create(struct call *call, int argc, char **argv, struct error *err)
{
    const struct token_options *options = call->options;
    _cleanup_json_ json_t *body = json_object(), *answer = NULL;
    (void)argc, (void)argv;
    (void)json_object_set_new(body, "name", json_string(options->name != NULL ? options->name : "cli"));
    if (options->expires_ms > 0)
        (void)json_object_set_new(body, "expires_s", json_integer((json_int_t)(options->expires_ms / 1000)));
    if (options->host != NULL)
        (void)json_object_set_new(body, "host", json_string(options->host));
    int r = client_call(&call->client, "POST", API_PATH "/tokens", body, &answer, err);
    if (r < 0)
        return r;
    const char *token = field_text(answer, "token");
    if (call->is_json) {
        (void)json_dumpf(answer, stdout, JSON_INDENT(2));
        (void)fputc('\n', stdout);
        return EXIT_OK;
    }
    if (token == NULL)
        return error_set(err, -EBADMSG, "the answer of mgpud has no token");
    (void)printf("%s\n", token);
    say_what_next(call, field_text(answer, "api"));
    return EXIT_OK;
}

static const struct command create_command = {
    .name = "token create",
    .usage = "[OPTIONS]",
    .help = "Print a token with which another machine or program acts as you",
    .tables = { rows },
    .options_size = sizeof(struct token_options),
    .takes_nothing = true,
    .run = run_create,
};

static const struct command *const actions[] = { &create_command, NULL };

const struct command command_token = {
    .name = "token",
    .usage = "create",
    .help = "Make tokens for the API",
    .actions = actions,
};
