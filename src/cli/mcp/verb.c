/* SPDX-License-Identifier: MIT */
/* mgpu mcp: a server that an assistant starts. */
#include <errno.h>

#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/mcp/server.h"
#include "cli/term/field.h"
#include "cli/verbs/verbs.h"

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *self = NULL;
    (void)argc, (void)argv;
    int r = client_get(&call->client, API_PATH "/whoami", &self, err);
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
    .usage = "",
    .help = "Serve GPUs and your jobs to an assistant, by the Model Context Protocol",
    .takes_nothing = true,
    .run = run,
};
