/* SPDX-License-Identifier: MIT */
#include "cli/verbs/own_input.h"

#include <errno.h>

#include "cli/follow/input.h"
#include "cli/options/talk.h"

int submit_refuse_input(struct error *err)
{
    (void)error_set(err, -EINVAL,
        "--input -: standard input is passed on by a command that waits for the job, to a "
        "job without a terminal");
    return error_hint(err, "mgpu run without -d and -T, or name a file: --input FILE");
}

void submit_note_input(void)
{
    if (input_is_fresh_file())
        talk_line(
            "standard input is not passed to a job that is not waited for: name the file with --input FILE, "
            "or use mgpu run");
}
