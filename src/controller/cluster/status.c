/* SPDX-License-Identifier: MIT */
#include "controller/cluster/status.h"

#include "base/clock.h"

json_t *cluster_status_write(const struct cluster_status *status)
{
    json_t *body = json_object();
    const char *role = status->is_leading ? "leader" : "standby";
    (void)json_object_set_new(body, "role", json_string(role));
    (void)json_object_set_new(
        body, "leader", status->leader[0] != '\0' ? json_string(status->leader) : json_null());
    (void)json_object_set_new(body, "entry", json_integer((json_int_t)status->position.number));
    (void)json_object_set_new(body, "age_ms",
        status->is_leading        ? json_integer(0)
        : status->checked_ms == 0 ? json_null()
                                  : json_integer((json_int_t)(clock_boot_ms() - status->checked_ms)));
    (void)json_object_set_new(
        body, "trouble", status->trouble[0] != '\0' ? json_string(status->trouble) : json_null());
    return body;
}
