/* SPDX-License-Identifier: MIT */
#include "cli/cluster/node_admit.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/complete/complete.h"

#define HOUR_MS INT64_C(3600000)

struct admit_options {
    const char *host, *node, *replace;
    int64_t expires_ms;
    bool is_forced;
};

static const struct option_row token_rows[] = {
    { 0, "expires", "TIME", "validity (1h)", OPTION_INNER(expiry, struct admit_options, expires_ms) },
    { 0, "host", "HOST", "address at which nodes reach this machine (its host name)",
        OPTION_INNER(text, struct admit_options, host) },
    { 0, "node", "NODE", "valid only for a node with this name",
        OPTION_INNER(text, struct admit_options, node) },
    { 0, "replace", "NODE", "for a machine that replaces this node",
        OPTION_INNER(text, struct admit_options, replace) },
    { 0 },
};

static const struct option_row forget_rows[] = {
    { 0, "force", NULL, "even if the node has jobs", OPTION_INNER(flag, struct admit_options, is_forced) },
    { 0 },
};

static void print_next_step(const struct call *call, const char *ticket, const json_t *answer)
{
    if (call->is_quiet || isatty(STDERR_FILENO) == 0)
        return;
    (void)fprintf(stderr,
        "  valid once, until %s. On the new node, as root:\n  mgpu-agent --join '%s' --detach\n",
        field_text(answer, "expires_at"), ticket);
}

static int run_token(struct call *call, int argc, char **argv, struct error *err)
{
    const struct admit_options *options = call->options;
    _cleanup_json_ json_t *body = json_object(), *answer = NULL;
    int64_t expires_ms = options->expires_ms > 0 ? options->expires_ms : HOUR_MS;
    const char *node = options->replace != NULL ? options->replace : options->node;
    if (options->replace != NULL && options->node != NULL)
        return error_set(err, -EINVAL, "--replace already names the node: omit --node");
    (void)json_object_set_new(body, "expires_s", json_integer((json_int_t)(expires_ms / 1000)));
    if (options->host != NULL)
        (void)json_object_set_new(body, "host", json_string(options->host));
    if (node != NULL)
        (void)json_object_set_new(body, "node", json_string(node));
    if (options->replace != NULL)
        (void)json_object_set_new(body, "replace", json_true());
    int r = client_call(&call->client, "POST", API_PATH "/nodes/tokens", body, &answer, err);
    if (r < 0)
        return r;
    const char *ticket = field_text(answer, "ticket");
    if (call->is_json) {
        show_json_page(answer, stdout);
        return EXIT_OK;
    }
    if (ticket == NULL)
        return error_set(err, -EBADMSG, "the answer of mgpud contains no token");
    (void)printf("%s\n", ticket);
    print_next_step(call, ticket, answer);
    return EXIT_OK;
}

static int run_forget(struct call *call, int argc, char **argv, struct error *err)
{
    const struct admit_options *options = call->options;
    if (argc == 0) {
        (void)error_set(err, -EINVAL, "no node given");
        return error_hint(err, "mgpu nodes shows them");
    }
    for (int i = 0; i < argc; i++) {
        _cleanup_buffer_ struct buffer path = { 0 };
        _cleanup_json_ json_t *body = json_object();
        buffer_append_text(&path, API_PATH "/nodes/");
        http_append_encoded(&path, argv[i]);
        buffer_append_text(&path, "/forget");
        if (options->is_forced)
            (void)json_object_set_new(body, "force", json_true());
        int r = client_call(&call->client, "POST", buffer_text(&path), body, NULL, err);
        if (r < 0)
            return r;
    }
    return EXIT_OK;
}

const struct command node_token_command = {
    .name = "node token",
    .usage = "[OPTIONS]",
    .help = "Print a token for one more machine (administrators)",
    .detail = "Prints HOST:PORT#TOKEN for mgpu-agent --join, valid for one machine and one hour.",
    .tables = { token_rows },
    .options_size = sizeof(struct admit_options),
    .takes_nothing = true,
    .run = run_token,
};

const struct command node_forget_command = {
    .name = "node forget",
    .usage = "[OPTIONS] NODE...",
    .help = "Remove nodes (administrators)",
    .tables = { forget_rows },
    .options_size = sizeof(struct admit_options),
    .complete_operand = complete_nodes,
    .run = run_forget,
};
