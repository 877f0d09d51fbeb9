/* SPDX-License-Identifier: MIT */
/* mgpu version: the version of this program, and of the mgpud that it finds. */
#include <stdio.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/version.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/verbs/verbs.h"

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(&call->client, API_PATH "/version", &answer, NULL);
    if (call->is_json) {
        _cleanup_json_ json_t *both = json_object();
        (void)json_object_set_new(both, "client", json_string(MGPU_VERSION));
        (void)json_object_set(both, "server", r < 0 ? json_null() : answer);
        show_json_page(both, stdout);
        return EXIT_OK;
    }
    (void)printf("mgpu  %s\n", MGPU_VERSION);
    if (r < 0) {
        (void)printf("mgpud -  (not reached)\n");
        return EXIT_OK;
    }
    _cleanup_free_ char *version = field_shown(answer, "version");
    (void)printf("mgpud %s  (%s)\n", version, call->client.path);
    return EXIT_OK;
}

const struct command command_version = {
    .name = "version",
    .usage = "",
    .help = "Show the versions of this program and of mgpud",
    .takes_nothing = true,
    .run = run,
};
