/* SPDX-License-Identifier: MIT */
/* The tools for assistants: one table of their descriptions, checks and functions. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/options/call.h"

#define MCP_ARGUMENTS 10
#define MCP_JOB       "job" // an integer or a string
/* Description of all answers for assistants. */
#define MCP_ABSENT "Keys without a value are left out of the answers."

struct mcp_argument {
    const char *name;
    const char *type; // of JSON schema: "string", "integer", "number", "boolean"; or MCP_JOB
    const char *help;
    bool is_required;
};

/* One server: the connection to mgpud, and whose jobs it may touch. */
struct mcp {
    struct call *call;
    int64_t uid;
};

struct mcp_tool {
    const char *name, *help;
    struct mcp_argument arguments[MCP_ARGUMENTS]; // ended by a NULL name
    bool is_reading, is_destructive;              // hints for whoever asks people before a call
    /* The answer, an object or a text, which the caller owns, or a negative errno with a sentence. The
     * arguments have been checked against the table. */
    int (*run)(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err);
    bool is_text; // so is its answer, which is an object otherwise
};

/* -ENOENT with a sentence that names all tools; `name` may be NULL. */
int mcp_tool_find(const char *name, const struct mcp_tool **ret, struct error *err);

/* All of them, as "tools/list" answers. */
json_t *mcp_tools_describe(void);

/* Checks whether the tool accepts these arguments, an object or NULL. -EINVAL with the sentence for the
 * assistant. */
int mcp_tool_check(const struct mcp_tool *tool, const json_t *arguments, struct error *err);

/* --- the functions of the table, in jobs.c --- */

typedef int mcp_run(const struct mcp *mcp, const json_t *arguments, json_t **ret, struct error *err);
mcp_run mcp_list_gpus, mcp_list_jobs, mcp_show_job, mcp_explain_job, mcp_read_output, mcp_wait_job,
    mcp_submit_job, mcp_retry_job, mcp_hold_job, mcp_release_job, mcp_cancel_job;
