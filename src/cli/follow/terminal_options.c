/* SPDX-License-Identifier: MIT */
#include "cli/follow/terminal_options.h"

#include <errno.h>
#include <string.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "cli/term/detach_keys.h"
#include "job/job_nodes.h"

int terminal_options_set_keys(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    struct terminal_options *options = option_member(target, row);
    struct detach_keys keys;
    options->detach_keys = value;
    return detach_keys_parse(&keys, value, err);
}

int terminal_options_set_rank(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    struct terminal_options *options = option_member(target, row);
    int64_t rank;
    int r = parse_integer(value, "--rank", 0, JOB_NODES_MAX - 1, &rank, err);
    if (r == 0)
        options->rank = (uint32_t)rank;
    return r;
}

int terminal_options_set_ctrl_c(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    struct terminal_options *options = option_member(target, row);
    static const struct {
        const char *word;
        enum ctrl_c meaning;
    } words[] = { { "forward", CTRL_C_FORWARD }, { "detach", CTRL_C_DETACH }, { "cancel", CTRL_C_CANCEL } };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(value, words[i].word) == 0) {
            options->ctrl_c = words[i].meaning;
            return 0;
        }
    return error_set(err, -EINVAL, "--ctrl-c: '%.40s' is none of forward, detach and cancel", value);
}
