/* SPDX-License-Identifier: MIT */
/*
 * An errno determines the kind of failure; the sentence says which one. A new kind of answer uses an errno
 * without a row.
 */
#include "wire/problem.h"

#include <errno.h>

#include "wire/json_text.h"

static const struct problem rows[] = {
    { EINVAL, 400, "invalid", "The request is not valid" },
    { ERANGE, 400, "invalid", "The request is not valid" },
    { ELOOP, 400, "invalid", "The request is not valid" },
    { EBUSY, 400, "invalid", "The request is not valid" },
    { EBADSLT, 400, "unsatisfiable", "No node can ever run this job" },
    { EPROTO, 400, "malformed", "This is not well-formed HTTP" },
    { ENOKEY, 401, "unauthenticated", "Authentication required" },
    { EPERM, 403, "not_allowed", "Permission denied" },
    { EACCES, 403, "not_allowed", "Permission denied" },
    { ENOENT, 404, "not_found", "Not found" },
    { ENOSYS, 405, "method_not_allowed", "Method not allowed" },
    { ETIMEDOUT, 408, "timeout", "Timed out" },
    { EALREADY, 409, "already_done", "The job has already ended" },
    { ENOTCONN, 409, "not_running", "The job is not running" },
    { EADDRNOTAVAIL, 409, "port_closed", "No process of the job listens on this port" },
    { EISCONN, 409, "node_up", "The node is up" },
    { ENOTTY, 409, "no_terminal", "The job has no terminal" },
    { EOVERFLOW, 409, "step_too_large", "The step is larger than its job" },
    { EEXIST, 409, "key_conflict", "The submit key belongs to another request" },
    { E2BIG, 413, "too_large", "The request is too large" },
    { ENAMETOOLONG, 414, "uri_too_long", "The path and query are too long" },
    { EMEDIUMTYPE, 415, "not_json", "The body is not JSON" },
    { ESPIPE, 416, "bad_range", "The range is not satisfiable" },
    { EBADE, 417, "expectation_failed", "The expectation cannot be met" },
    { EDQUOT, 429, "queue_full", "The queue is full" },
    { EUSERS, 429, "too_many", "Too many requests" },
    { EMSGSIZE, 431, "headers_too_large", "The headers are too large" },
    { EIO, 503, "unknown", "The outcome is not known" },
    { EREMCHG, 503, "standby", "Another controller leads" },
    { EHOSTDOWN, 503, "node_away", "The node does not respond" },
    { ECOMM, 503, "munge_away", "munged does not respond" },
    { EAGAIN, 503, "directory_away", "The user database does not respond" },
    { EMFILE, 503, "too_many_connections", "Too many connections" },
    { EPROTONOSUPPORT, 505, "version", "This HTTP version is not supported" },
    { ENOSPC, 507, "store_full", "The store is full" },
    { EUCLEAN, 507, "store_damaged", "The store is damaged" },
};

static const struct problem internal = { 0, 500, "internal", "Internal error in mgpud" };

const struct problem *problem_find(int code)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].error == -code)
            return &rows[i];
    return &internal;
}

const struct problem *problem_all(size_t *ret_count)
{
    *ret_count = sizeof(rows) / sizeof(rows[0]);
    return rows;
}

json_t *problem_write(const struct error *err)
{
    const struct problem *problem = problem_find(err->code);
    json_t *object = json_object();
    (void)json_object_set_new(object, "type", json_string("about:blank"));
    (void)json_object_set_new(object, "title", json_string(problem->title));
    (void)json_object_set_new(object, "status", json_integer(problem->status));
    (void)json_object_set_new(object, "code", json_string(problem->code));
    (void)json_object_set_new(object, "detail", json_text_string(err->message));
    if (err->hint[0] != '\0')
        (void)json_object_set_new(object, "hint", json_text_string(err->hint));
    if (err->code == -EIO)
        (void)json_object_set_new(object, "outcome", json_string("unknown"));
    return object;
}

const char *problem_status_text(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } texts[] = {
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 206, "Partial Content" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 413, "Content Too Large" },
        { 414, "URI Too Long" },
        { 415, "Unsupported Media Type" },
        { 416, "Range Not Satisfiable" },
        { 417, "Expectation Failed" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 503, "Service Unavailable" },
        { 505, "HTTP Version Not Supported" },
        { 507, "Insufficient Storage" },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "Internal Server Error";
}
