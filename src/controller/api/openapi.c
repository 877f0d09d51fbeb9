/* SPDX-License-Identifier: MIT */
/* GET /openapi.json: the route table, the record tables and the job's keys, written as OpenAPI 3.1. */
#include <ctype.h>
#include <string.h>

#include "base/buffer.h"
#include "base/version.h"
#include "controller/api/answers.h"
#include "controller/api/route.h"
#include "controller/api/routes.h"
#include "controller/http/request.h"
#include "wire/json_job.h"
#include "wire/json_record.h"
#include "wire/json_text.h"

static json_t *write_parameters(const struct route *route)
{
    json_t *parameters = json_array();
    if (strstr(route->path, "{id}") != NULL)
        (void)json_array_append_new(parameters, json_pack("{s:s,s:s,s:b,s:{s:s}}", "name", "id", "in", "path",
                                                    "required", true, "schema", "type", "integer"));
    for (size_t i = 0; i < ROUTE_PARAMETERS_MAX && route->parameters[i].name != NULL; i++)
        (void)json_array_append_new(
            parameters, json_pack("{s:s,s:s,s:s,s:{s:s}}", "name", route->parameters[i].name, "in", "query",
                            "description", route->parameters[i].help, "schema", "type", "string"));
    return parameters;
}

/* "/api/v1/jobs/{id}/log" and GET: "get_jobs_id_log". */
static void add_operation_id(json_t *operation, const struct route *route)
{
    _cleanup_buffer_ struct buffer id = { 0 };
    const char *path = strncmp(route->path, "/api/v1", 7) == 0 ? route->path + 7 : route->path;
    buffer_printf(&id, "%s%s", route->method, path);
    char *text = buffer_text(&id);
    size_t kept = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (isalnum((unsigned char)text[i]))
            text[kept++] = (char)tolower((unsigned char)text[i]);
        else if (kept > 0 && text[kept - 1] != '_' && text[i + 1] != '\0')
            text[kept++] = '_';
    }
    text[kept] = '\0';
    (void)json_object_set_new(operation, "operationId", json_string(text));
}

static json_t *write_success(const struct route *route)
{
    json_t *success = json_pack("{s:s}", "description", "as asked");
    if (route->answer != NULL)
        (void)json_object_set_new(success, "content",
            json_pack("{s:{s:o}}", "application/json", "schema", answers_write_type(route->answer)));
    return success;
}

/* Each scope that suffices, or what identifies the caller without a token. */
static json_t *write_security(enum action action)
{
    json_t *ways = json_array();
    unsigned needed = scope_needed(action, true);
    for (unsigned scope = 1; scope <= SCOPE_ALL; scope *= 2)
        if ((needed & scope) != 0)
            (void)json_array_append_new(ways, json_pack("{s:[s]}", "token", scope_name((enum scope)scope)));
    if (needed != 0)
        (void)json_array_append_new(ways, json_object());
    return ways;
}

static json_t *write_operation(const struct route *route)
{
    json_t *operation = json_object();
    add_operation_id(operation, route);
    (void)json_object_set_new(operation, "summary", json_string(route->help));
    (void)json_object_set_new(operation, "parameters", write_parameters(route));
    if (route->body != NULL)
        (void)json_object_set_new(operation, "requestBody",
            json_pack(
                "{s:{s:{s:o}}}", "content", "application/json", "schema", json_record_schema(route->body)));
    (void)json_object_set_new(operation, "security", write_security(route->action));
    (void)json_object_set_new(operation, "responses",
        json_pack("{s:o,s:{s:s,s:{s:{s:{s:s}}}}}", "2XX", write_success(route), "default", "description",
            "a problem (RFC 9457)", "content", "application/problem+json", "schema", "$ref",
            "#/components/schemas/Problem"));
    return operation;
}

static json_t *write_paths(void)
{
    size_t count;
    const struct route *routes = route_all(&count);
    json_t *paths = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *path = json_object_get(paths, routes[i].path);
        if (path == NULL) {
            path = json_object();
            (void)json_object_set_new(paths, routes[i].path, path);
        }
        const char *method = strcmp(routes[i].method, "GET") == 0    ? "get"
                             : strcmp(routes[i].method, "POST") == 0 ? "post"
                                                                     : "delete";
        (void)json_object_set_new(path, method, write_operation(&routes[i]));
    }
    return paths;
}

static json_t *write_job_schema(void)
{
    json_t *properties = json_pack("{s:{s:s}}", "schema", "type", "string");
    struct json_job_key key;
    for (size_t i = 0; json_job_key(i, &key); i++) {
        json_t *value = answers_write_type(key.type);
        (void)json_object_set_new(value, "description", json_string(key.help));
        (void)json_object_set_new(properties, key.name, value);
    }
    return json_pack("{s:s,s:o}", "type", "object", "properties", properties);
}

static json_t *write_schemas(void)
{
    json_t *schemas = answers_write_schemas(), *job = write_job_schema();
    json_t *details = json_object_get(json_object_get(schemas, "JobDetails"), "properties");
    (void)json_object_update_missing(details, json_object_get(job, "properties"));
    (void)json_object_set_new(schemas, "Job", job);
    return schemas;
}

/* Omits the "schema" that all our answers begin with: OpenAPI has no such key. */
static char *write_all(void)
{
    _cleanup_json_ json_t *body = json_object();
    (void)json_object_set_new(body, "openapi", json_string("3.1.0"));
    (void)json_object_set_new(body, "info", json_pack("{s:s,s:s}", "title", "mgpu", "version", MGPU_VERSION));
    (void)json_object_set_new(body, "paths", write_paths());
    (void)json_object_set_new(body, "security", json_pack("[{s:[]},{}]", "token"));
    (void)json_object_set_new(body, "components",
        json_pack("{s:o,s:{s:{s:s,s:s}}}", "schemas", write_schemas(), "securitySchemes", "token", "type",
            "http", "scheme", "bearer"));
    return json_text_format(body);
}

void handle_openapi(struct request *request)
{
    struct serve *serve = request->serve;
    if (serve->openapi == NULL)
        serve->openapi = write_all();
    request_reply_bytes(request, 200, "application/json", serve->openapi, strlen(serve->openapi));
}
