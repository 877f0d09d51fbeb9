/* SPDX-License-Identifier: MIT */
/* There is no tool for other users' jobs, GPUs or nodes: an assistant of an administrator is no
 * administrator.
 */
#include "cli/mcp/tools.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define JOB_HELP "its number, such as 42 or \"42.3\", or its name; \"@\" is the user's newest"

static const struct mcp_tool tools[] = {
    { "list_gpus", "All GPUs: model, memory, load, state, and the jobs on them.", { { NULL } }, true, false,
        mcp_list_gpus },
    { "list_jobs",
        "Jobs with their state, GPUs, expected start and the reason why they wait. Without arguments: those "
        "that have not ended, or ended within the last hour. An array represents its ended elements: its "
        "`elements` counts them.",
        {
            { "state", "string",
                "only these, comma-separated: queued, starting, running, stopping, done, "
                "failed, cancelled",
                false },
            { "mine", "boolean", "only jobs of the user", false },
            { "limit", "integer", "at most this many, the newest; 50", false },
        },
        true, false, mcp_list_jobs },
    { "show_job", "One job with its request, its use of the GPUs, how it ended, and its events.",
        { { "job", MCP_JOB, JOB_HELP, true } }, true, false, mcp_show_job },
    { "explain_job", "Why a job waits, when it is expected to start, and what would start it now.",
        { { "job", MCP_JOB, JOB_HELP, true } }, true, false, mcp_explain_job },
    { "read_output",
        "The end of the output of one of the user's jobs, without colours. If standard error has a log of "
        "its "
        "own, it follows standard output, each under a heading.",
        {
            { "job", MCP_JOB, JOB_HELP, true },
            { "lines", "integer", "the last lines, 1 to 2000; 100", false },
        },
        true, false, mcp_read_output, .is_text = true },
    { "wait_job",
        "Waits until a job has ended, and answers with the job: exit_code, ended_by, message. If it has not "
        "ended by then, the answer is the job in its present state; call again.",
        {
            { "job", MCP_JOB, JOB_HELP, true },
            { "seconds", "integer", "wait at most this long, 1 to 300; 60", false },
        },
        true, false, mcp_wait_job },
    { "submit_job",
        "Submits a job. It runs as the user, with the environment of this server, and only on the GPUs "
        "allocated to it (CUDA_VISIBLE_DEVICES is set). With dry_run, nothing is submitted: the answer says "
        "when and where it would start.",
        {
            { "command", "string", "command line for /bin/sh", true },
            { "gpus", "number", "number of GPUs, 0 for none, or a part of one such as 0.5; 1", false },
            { "gpu_mem", "string", "memory needed on each GPU, such as 8G; the GPU can then be shared",
                false },
            { "time_limit", "string", "such as 30m or 4h; jobs with a limit start earlier", false },
            { "name", "string", "a name by which to recognise it", false },
            { "cwd", "string", "absolute working directory; default: that of this server", false },
            { "cpus", "number", "CPUs", false },
            { "memory", "string", "host memory, such as 32G", false },
            { "dry_run", "boolean", "only check the request", false },
        },
        false, false, mcp_submit_job },
    { "retry_job", "Submits a copy of one of the user's ended jobs, and answers with the new job.",
        { { "job", MCP_JOB, JOB_HELP, true } }, false, false, mcp_retry_job },
    { "hold_job", "Prevents one of the user's waiting jobs from starting until it is released.",
        { { "job", MCP_JOB, JOB_HELP, true } }, false, false, mcp_hold_job },
    { "release_job", "Releases a held job of the user.", { { "job", MCP_JOB, JOB_HELP, true } }, false, false,
        mcp_release_job },
    { "cancel_job", "Cancels one of the user's jobs: SIGTERM, then SIGKILL.",
        { { "job", MCP_JOB, JOB_HELP, true } }, false, true, mcp_cancel_job },
};

#define TOOLS (sizeof(tools) / sizeof(tools[0]))

int mcp_tool_find(const char *name, const struct mcp_tool **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer names = { 0 };
    for (size_t i = 0; i < TOOLS; i++) {
        if (name != NULL && strcmp(tools[i].name, name) == 0) {
            *ret = &tools[i];
            return 0;
        }
        buffer_printf(&names, "%s%s", i > 0 ? ", " : "", tools[i].name);
    }
    return error_set(err, -ENOENT, "there is no tool '%.60s'; there are %s", name != NULL ? name : "",
        buffer_text(&names));
}

static bool is_job(const char *type)
{
    return strcmp(type, MCP_JOB) == 0;
}

static json_t *describe_type(const char *type)
{
    return is_job(type) ? json_pack("[s,s]", "integer", "string") : json_string(type);
}

static json_t *describe_arguments(const struct mcp_tool *tool)
{
    json_t *properties = json_object(), *required = json_array();
    for (const struct mcp_argument *argument = tool->arguments; argument->name != NULL; argument++) {
        (void)json_object_set_new(properties, argument->name,
            json_pack("{s:o,s:s}", "type", describe_type(argument->type), "description", argument->help));
        if (argument->is_required)
            (void)json_array_append_new(required, json_string(argument->name));
    }
    return json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required", required,
        "additionalProperties", 0);
}

json_t *mcp_tools_describe(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < TOOLS; i++) {
        json_t *tool = json_pack("{s:s,s:s,s:o,s:{s:b,s:b}}", "name", tools[i].name, "description",
            tools[i].help, "inputSchema", describe_arguments(&tools[i]), "annotations", "readOnlyHint",
            tools[i].is_reading, "destructiveHint", tools[i].is_destructive);
        if (!tools[i].is_text)
            (void)json_object_set_new(
                tool, "outputSchema", json_pack("{s:s,s:s}", "type", "object", "description", MCP_ABSENT));
        (void)json_array_append_new(array, tool);
    }
    return array;
}

static const struct mcp_argument *find_argument(const struct mcp_tool *tool, const char *name)
{
    for (const struct mcp_argument *argument = tool->arguments; argument->name != NULL; argument++)
        if (strcmp(argument->name, name) == 0)
            return argument;
    return NULL;
}

static bool is_of_type(const json_t *value, const char *type)
{
    return (strcmp(type, "string") == 0 && json_is_string(value)) ||
           (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
           (strcmp(type, "number") == 0 && json_is_number(value)) ||
           (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
           (is_job(type) && (json_is_integer(value) || json_is_string(value)));
}

static int refuse_unknown(const struct mcp_tool *tool, const char *name, struct error *err)
{
    _cleanup_buffer_ struct buffer known = { 0 };
    for (const struct mcp_argument *argument = tool->arguments; argument->name != NULL; argument++)
        buffer_printf(&known, "%s%s", known.length > 0 ? ", " : "", argument->name);
    if (known.length == 0)
        return error_set(err, -EINVAL, "%s has no arguments, and not %.60s", tool->name, name);
    return error_set(
        err, -EINVAL, "%s has no argument %.60s; there are %s", tool->name, name, buffer_text(&known));
}

int mcp_tool_check(const struct mcp_tool *tool, const json_t *arguments, struct error *err)
{
    const char *name;
    json_t *value;
    if (arguments != NULL && !json_is_object(arguments))
        return error_set(err, -EINVAL, "the arguments of %s must be an object", tool->name);
    json_t *given = arguments != NULL ? json_copy((json_t *)(uintptr_t)arguments) : json_object();
    int r = 0;
    json_object_foreach(given, name, value)
    {
        const struct mcp_argument *argument = find_argument(tool, name);
        if (argument == NULL)
            r = refuse_unknown(tool, name, err);
        else if (is_job(argument->type) && json_is_integer(value) && json_integer_value(value) < 1)
            r = error_set(err, -EINVAL, "jobs have numbers from 1 on, and not %lld",
                (long long)json_integer_value(value));
        else if (!is_of_type(value, argument->type))
            r = error_set(err, -EINVAL, "%s of %s must be of type %s", name, tool->name,
                is_job(argument->type) ? "integer or string" : argument->type);
        if (r < 0)
            break;
    }
    for (const struct mcp_argument *one = tool->arguments; r == 0 && one->name != NULL; one++)
        if (one->is_required && json_object_get(given, one->name) == NULL)
            r = error_set(err, -EINVAL, "%s needs the argument %s", tool->name, one->name);
    json_decref(given);
    return r;
}
