/* SPDX-License-Identifier: MIT */
/* mgpu mcp: a server that an assistant starts. */
#include <errno.h>
#include <stdlib.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/remote.h"
#include "cli/mcp/server.h"
#include "cli/verbs/verbs.h"

struct mcp_options {
    const char *token_file;
};

static const struct option_row rows[] = {
    { 0, "token-file", "FILE", "act with the rights of the token in this file",
        OPTION_INNER(text, struct mcp_options, token_file) },
    { 0 },
};

/* From here on, every connection identifies itself with the token. */
static int use_token(struct call *call, struct error *err)
{
    const struct mcp_options *options = call->options;
    const char *named = getenv("MGPU_TOKEN_FILE");
    const char *path = options->token_file != NULL ? options->token_file : named;
    return path == NULL || *path == '\0' ? 0 : remote_read_token(path, &call->client.token, err);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *self = NULL;
    int r = use_token(call, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/whoami", &self, err);
    if (r < 0)
        return r;
    struct mcp mcp = { .call = call, .uid = field_integer(self, "uid", -1) };
    if (mcp.uid < 0)
        return error_set(err, -ENOKEY, "mgpud does not know who you are");
    r = mcp_serve(&mcp, err);
    return r < 0 ? r : EXIT_OK;
}

const struct command command_mcp = {
    .name = "mcp",
    .usage = "[OPTIONS]",
    .help = "Serve GPUs and your jobs to an assistant, by the Model Context Protocol",
    .tables = { rows },
    .options_size = sizeof(struct mcp_options),
    .takes_nothing = true,
    .run = run,
};
