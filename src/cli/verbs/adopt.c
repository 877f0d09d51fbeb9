/* SPDX-License-Identifier: MIT */
/* mgpu adopt: reserves GPUs for a running process, as a job of its owner. */
#include <errno.h>
#include <stdint.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/complete/complete.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"
#include "job/ask.h"

static int adopt(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    int64_t pid;
    if (argc != 1) {
        (void)error_set(err, -EINVAL, argc == 0 ? "no process given" : "one process at a time");
        return error_hint(err, "mgpu adopt 4711; mgpu gpus -o external,gpu lists external processes");
    }
    int r = parse_integer(argv[0], "process", 1, ASK_PID_MAX, &pid, err);
    if (r < 0)
        return r;
    r = submit_adoption(call, (uint32_t)pid, &job, err);
    if (r < 0)
        return r;
    submit_print(call, job);
    return EXIT_OK;
}

const struct command command_adopt = {
    .name = "adopt",
    .usage = "[OPTIONS] PID",
    .help = "Reserve GPUs for a process that was started outside mgpu, until it ends",
    .detail = "Without -g and -G it gets the GPUs that the process uses. It becomes a job of the process's "
              "owner and\n"
              "ends with the process. mgpu does not confine it, and cancel only releases it.",
    .tables = { adopt_rows },
    .options_size = sizeof(struct submit_options),
    .complete_operand = complete_processes,
    .run = adopt,
    .clear = submit_options_clear,
};
