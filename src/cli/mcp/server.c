/* SPDX-License-Identifier: MIT */
/*
 * A request that the tool refuses or mgpud answers with an error is a result with "isError": the assistant is
 * to read the sentence and its hint. An error of JSON-RPC is for a client that breaks the protocol.
 */
#include "cli/mcp/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"
#include "wire/json_text.h"

#define MESSAGE_MAX (1U << 20) // bytes of a line

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
};

/* The newest first. Nothing here depends on which it is; the one between them has batches, which nobody uses.
 */
static const char *const versions[] = { "2025-06-18", "2024-11-05" };

static json_t *make_answer(const json_t *id, const char *member, json_t *value)
{
    json_t *answer = json_pack("{s:s}", "jsonrpc", "2.0");
    (void)json_object_set_new(answer, "id", id != NULL ? json_deep_copy(id) : json_null());
    (void)json_object_set_new(answer, member, value);
    return answer;
}

static json_t *make_error(const json_t *id, enum rpc_code code, const char *message)
{
    return make_answer(
        id, "error", json_pack("{s:i,s:o}", "code", (int)code, "message", json_text_string(message)));
}

/* --- methods --- */

static json_t *initialize(const json_t *id, const json_t *params)
{
    const char *wanted = json_string_value(json_object_get(params, "protocolVersion")),
               *version = versions[0];
    for (size_t i = 0; wanted != NULL && i < sizeof(versions) / sizeof(versions[0]); i++)
        if (strcmp(wanted, versions[i]) == 0)
            version = versions[i];
    return make_answer(id, "result",
        json_pack("{s:s,s:{s:{}},s:{s:s,s:s},s:s}", "protocolVersion", version, "capabilities", "tools",
            "serverInfo", "name", "mgpu", "version", MGPU_VERSION, "instructions",
            "GPUs of this machine are shared: run programs that need one with submit_job, never directly. "
            "Check with dry_run first; request no more GPUs and time than the job needs. " MCP_ABSENT));
}

/* Leaves out the keys whose value is null, which cost an assistant attention and say nothing; elements of
 * arrays stay. The depth is that of the API's answers. */
static void leave_out_nulls(json_t *value)
{
    size_t index = 0;
    json_t *member = NULL;
    for (void *at = json_object_iter(value), *next = NULL; at != NULL; at = next) {
        next = json_object_iter_next(value, at);
        if (json_is_null(json_object_iter_value(at)))
            (void)json_object_del(value, json_object_iter_key(at));
        else
            leave_out_nulls(json_object_iter_value(at));
    }
    json_array_foreach(value, index, member) leave_out_nulls(member);
}

/* An object goes along as it is, for clients that read data rather than text. */
static json_t *make_result(const char *text, bool is_error, const json_t *answer)
{
    json_t *result = json_pack("{s:[{s:s,s:o}],s:b}", "content", "type", "text", "text",
        json_text_string(text), "isError", is_error);
    if (json_is_object(answer))
        (void)json_object_set_new(result, "structuredContent", json_deep_copy(answer));
    return result;
}

static json_t *call_tool(const struct mcp *mcp, const json_t *id, const json_t *params)
{
    const json_t *arguments = json_object_get(params, "arguments");
    const struct mcp_tool *tool = NULL;
    struct error err = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    if (mcp_tool_find(json_string_value(json_object_get(params, "name")), &tool, &err) < 0)
        return make_error(id, RPC_PARAMS, err.message);
    int r = mcp_tool_check(tool, arguments, &err);
    if (r == 0)
        r = tool->run(mcp, arguments, &answer, &err);
    leave_out_nulls(answer);
    _cleanup_free_ char *text =
        r < 0 ? xasprintf("%s%s%s", err.message, err.hint[0] != '\0' ? "\nhint: " : "", err.hint)
        : json_is_string(answer) ? xstrdup(json_string_value(answer))
                                 : json_text_format(answer);
    return make_answer(id, "result", make_result(text, r < 0, answer));
}

static json_t *answer_request(
    const struct mcp *mcp, const json_t *id, const char *method, const json_t *params)
{
    if (strcmp(method, "initialize") == 0)
        return initialize(id, params);
    if (strcmp(method, "ping") == 0)
        return make_answer(id, "result", json_object());
    if (strcmp(method, "tools/list") == 0)
        return make_answer(id, "result", json_pack("{s:o}", "tools", mcp_tools_describe()));
    if (strcmp(method, "tools/call") == 0)
        return call_tool(mcp, id, params);
    return make_error(id, RPC_METHOD, "this server has no such method");
}

/* The answer to one message of `length` bytes, or NULL when it wants none. Never fails: errors are answers.
 */
json_t *mcp_answer(const struct mcp *mcp, const char *message, size_t length)
{
    _cleanup_json_ json_t *request = NULL;
    struct error err = { 0 };
    if (json_text_parse(message, length, &request, &err) < 0)
        return make_error(NULL, RPC_PARSE, err.message);
    const json_t *id = json_object_get(request, "id");
    const char *method = json_string_value(json_object_get(request, "method")),
               *version = json_string_value(json_object_get(request, "jsonrpc"));
    bool is_valid = json_is_object(request) && version != NULL && strcmp(version, "2.0") == 0 &&
                    (id == NULL || json_is_integer(id) || json_is_string(id));
    if (!is_valid)
        return make_error(NULL, RPC_REQUEST, "this is not a request of JSON-RPC 2.0");
    if (method == NULL) // an answer to a request of ours, of which there are none
        return NULL;
    if (id == NULL) // a notification: nothing that clients announce matters here
        return NULL;
    return answer_request(mcp, id, method, json_object_get(request, "params"));
}

/* --- lines --- */

static int write_answer(json_t *answer, struct error *err)
{
    _cleanup_free_ char *text = json_text_format(answer);
    json_decref(answer);
    if (printf("%s\n", text) < 0 || fflush(stdout) != 0)
        return error_set_errno(err, -errno, "cannot write to standard output");
    return 0;
}

/* The next line, of which no more than MESSAGE_MAX bytes are kept: 1, or 0 at the end of the input. */
static int read_line(struct buffer *line, bool *ret_is_long)
{
    int byte = 0;
    line->length = 0;
    *ret_is_long = false;
    while ((byte = getc(stdin)) != EOF && byte != '\n') {
        const char letter = (char)byte;
        if (line->length < MESSAGE_MAX)
            buffer_append(line, &letter, 1);
        else
            *ret_is_long = true;
    }
    return byte != EOF || line->length > 0;
}

int mcp_serve(const struct mcp *mcp, struct error *err)
{
    _cleanup_buffer_ struct buffer line = { 0 };
    bool is_long;
    int r = 0;
    while (r == 0 && read_line(&line, &is_long)) {
        json_t *answer = NULL;
        if (is_long)
            answer = make_error(NULL, RPC_REQUEST, "the message is longer than 1 MiB");
        else if (strspn(buffer_text(&line), " \t\r") < line.length)
            answer = mcp_answer(mcp, buffer_text(&line), line.length);
        if (answer != NULL)
            r = write_answer(answer, err);
    }
    return r;
}
