/* SPDX-License-Identifier: MIT */
#include "base/yaml_problem.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *problem, *text;
} rows[] = {
    { "found character that cannot start any token",
        "a tab or another invalid character; YAML is indented with spaces" },
    { "did not find expected key", "wrong indentation, or a key without a colon" },
    { "mapping values are not allowed in this context",
        "unexpected colon: indent the line, or quote the value" },
    { "could not find expected ':'", "a key without a colon" },
    { "did not find expected ',' or '}'", "a comma or the closing } is missing" },
    { "did not find expected ',' or ']'", "a comma or the closing ] is missing" },
};

const char *yaml_problem_text(const char *problem)
{
    for (size_t i = 0; problem != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].problem, problem) == 0)
            return rows[i].text;
    return problem != NULL ? problem : "not YAML";
}
