/* SPDX-License-Identifier: MIT */
#include "controller/cluster/status.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"

json_t *cluster_status_text(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    _cleanup_free_ char *escaped = text_escape(text, strlen(text));
    return json_string(escaped);
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? cluster_status_text(text) : json_null();
}

static json_t *write_member(const struct cluster_member *member)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "name", text_or_null(member->name));
    (void)json_object_set_new(object, "role", json_string(member->is_leading ? "leader" : "standby"));
    (void)json_object_set_new(object, "api", text_or_null(member->api));
    (void)json_object_set_new(object, "nodes", text_or_null(member->nodes));
    (void)json_object_set_new(object, "version", text_or_null(member->version));
    (void)json_object_set_new(object, "entry", json_integer((json_int_t)member->entry));
    (void)json_object_set_new(object, "trouble", text_or_null(member->trouble));
    return object;
}

static json_t *write_server(const struct cluster_server *server)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "url", text_or_null(server->url));
    (void)json_object_set_new(object, "up", json_boolean(server->is_up));
    (void)json_object_set_new(
        object, "used_bytes", server->is_up ? json_integer((json_int_t)server->used_bytes) : json_null());
    (void)json_object_set_new(object, "trouble", text_or_null(server->trouble));
    return object;
}

static json_t *age_of(const struct cluster_status *status)
{
    if (!status->is_leading && status->checked_ms == 0)
        return json_null();
    return json_integer(status->is_leading ? 0 : (json_int_t)(clock_boot_ms() - status->checked_ms));
}

json_t *cluster_status_write(const struct cluster_status *status)
{
    json_t *body = json_object(), *members = json_array(), *servers = json_array();
    for (size_t i = 0; i < status->n_members; i++)
        (void)json_array_append_new(members, write_member(&status->members[i]));
    for (size_t i = 0; i < status->n_servers; i++)
        (void)json_array_append_new(servers, write_server(&status->servers[i]));
    (void)json_object_set_new(body, "role", json_string(status->is_leading ? "leader" : "standby"));
    (void)json_object_set_new(body, "leader", text_or_null(status->leader));
    (void)json_object_set_new(body, "entry", json_integer((json_int_t)status->position.number));
    (void)json_object_set_new(body, "age_ms", age_of(status));
    (void)json_object_set_new(body, "trouble", text_or_null(status->trouble));
    (void)json_object_set_new(body, "lease_ms", json_integer((json_int_t)status->lease_ms));
    (void)json_object_set_new(body, "lease_left_ms",
        status->is_leading ? json_integer((json_int_t)status->lease_left_ms) : json_null());
    (void)json_object_set_new(body, "controllers", members);
    (void)json_object_set_new(body, "etcd", servers);
    return body;
}
