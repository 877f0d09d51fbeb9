/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as lines of an assistant, and as what mgpud answers to the requests that they lead to. Each line
 * that is a request gets one answer with its number, which is a result or an error and fits on a line; the
 * environment of a job is in none. The first byte is the status of mgpud's answer, the first line its body,
 * and each other line a message; mgpud answers once, then it is gone.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/mcp/server.h"
#include "cli/verbs/verbs.h"
#include "fuzz.h"
#include "wire/json_text.h"

#define MESSAGES_MAX 16U
#define BODY_MAX     30000U // fits in a socket
#define OWN_UID      1000

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static bool is_text(const json_t *object, const char *name, const char *text)
{
    return text_equal(text_of(object, name), text);
}

/* A connection on which the answer has come already. */
static struct http_client *answered(int status, const char *body, size_t length)
{
    int fds[2];
    struct buffer out = { 0 };
    must_be(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    buffer_printf(&out, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status, length);
    buffer_append(&out, body, length);
    must_be(send(fds[1], out.bytes, out.length, MSG_NOSIGNAL) == (ssize_t)out.length);
    (void)close(fds[1]);
    buffer_clear(&out);
    return http_client_adopt(fds[0]);
}

/* The text of a tool, as JSON; NULL if it is other text. */
static void check_tool(const json_t *request, const json_t *result)
{
    const json_t *part = json_array_get(json_object_get(result, "content"), 0);
    const char *text = text_of(part, "text");
    if (!is_text(request, "method", "tools/call"))
        return;
    must_be(json_array_size(json_object_get(result, "content")) == 1 && is_text(part, "type", "text"));
    must_be(text != NULL && json_is_boolean(json_object_get(result, "isError")));
    const char *tool = text_of(json_object_get(request, "params"), "name");
    json_t *shown = strcmp(tool, "show_job") == 0 ? json_loads(text, 0, NULL) : NULL;
    must_be(json_object_get(shown, "env") == NULL);
    json_decref(shown);
}

static void check_answer(const char *line, size_t length, json_t *answer)
{
    struct error err = { 0 };
    json_t *request = NULL, *again = NULL;
    bool is_json = json_text_parse(line, length, &request, &err) == 0;
    const json_t *id = json_object_get(request, "id");
    bool has_id = json_is_integer(id) || json_is_string(id);
    bool is_request = is_text(request, "jsonrpc", "2.0") && has_id && text_of(request, "method") != NULL;
    must_be(answer != NULL || is_json);
    must_be(!is_request || answer != NULL);
    if (answer != NULL) {
        const json_t *error = json_object_get(answer, "error"), *result = json_object_get(answer, "result");
        char *text = json_text_format(answer);
        must_be(strchr(text, '\n') == NULL && json_text_parse(text, strlen(text), &again, &err) == 0);
        must_be(is_text(answer, "jsonrpc", "2.0") && json_object_size(answer) == 3);
        must_be((error != NULL) != (result != NULL));
        must_be(error == NULL || (json_is_integer(json_object_get(error, "code")) &&
                                     json_is_string(json_object_get(error, "message"))));
        must_be(is_request ? json_equal(json_object_get(answer, "id"), id)
                           : json_is_null(json_object_get(answer, "id")));
        if (result != NULL)
            check_tool(request, result);
        free(text);
    }
    json_decref(again);
    json_decref(request);
    json_decref(answer);
}

static void talk(int status, const char *body, size_t body_length, const char *text, const char *end)
{
    struct call call = { .command = &command_mcp, .is_quiet = true };
    const struct mcp mcp = { .call = &call, .uid = OWN_UID };
    client_init(&call.client, "/nowhere/mgpud.sock", NULL);
    call.client.http = answered(status, body, body_length);
    for (unsigned i = 0; i < MESSAGES_MAX && text < end; i++) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((line_end != NULL ? line_end : end) - text);
        char *line = xstrndup(text, length); // mcp_serve() has such a text, too
        if (strlen(line) == length)
            check_answer(line, length, mcp_answer(&mcp, line, length));
        free(line);
        text += length + 1;
    }
    client_clear(&call.client);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const int statuses[] = { 200, 201, 206, 400, 403, 404, 409, 500 }; // none that names another mgpud
    if (length < 2)
        return 0;
    const char *body = (const char *)bytes + 1, *end = (const char *)bytes + length;
    const char *line_end = memchr(body, '\n', length - 1);
    size_t body_length = line_end != NULL ? (size_t)(line_end - body) : length - 1;
    if (body_length <= BODY_MAX)
        talk(statuses[bytes[0] % 8], body, body_length, body + body_length + (line_end != NULL), end);
    return 0;
}
