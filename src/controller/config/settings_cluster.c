/* SPDX-License-Identifier: MIT */
#include "controller/config/settings_cluster.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "controller/config/options.h"

#define LEASE_MIN_MS 2000 // what etcd grants
#define LEASE_MAX_MS 600000

static struct cluster_settings *of(void *target)
{
    return &(*(struct controller_options **)target)->cluster;
}

static int option_set_copy_or_none(
    void *target, const struct option_row *row, const char *value, struct error *err)
{
    char **field = option_member(target, row);
    free(*field);
    *field = strcmp(value, "none") == 0 ? NULL : xstrdup(value);
    return 0;
}

static int set_etcd(void *target, const struct option_row *row, const char *value, struct error *err)
{
    if (strcmp(value, "none") != 0 && strncmp(value, "etcd://", 7) != 0 &&
        strncmp(value, "etcds://", 8) != 0) {
        (void)error_set(err, -EINVAL, "--cluster: '%.100s' does not begin with etcd:// or etcds://", value);
        return error_hint(err, "name the members of etcd: --cluster etcd://HOST:2379,HOST:2379,HOST:2379");
    }
    return option_set_copy_or_none(target, row, value, err);
}

static int set_lease(void *target, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = parse_duration(value, "--cluster-lease", &ms, err);
    if (r < 0)
        return r;
    if (ms < LEASE_MIN_MS || ms > LEASE_MAX_MS || ms % 1000 != 0)
        return error_set(
            err, -ERANGE, "--cluster-lease: '%.40s' is not 2 s to 10 min in whole seconds", value);
    of(target)->lease_ms = ms;
    return 0;
}

const struct option_row cluster_rows[] = {
    { 0, "cluster", "none|etcd://HOST:PORT,...[/PREFIX]", "be one of several controllers",
        .set_key = set_etcd, .member = offsetof(struct controller_options, cluster.etcd), .is_inner = true,
        .preset = "none" },
    { 0, "cluster-address", "ADDRESS", "where clients reach this controller (default: --listen)",
        OPTION_INNER(copy_or_none, struct controller_options, cluster.address) },
    { 0, "cluster-lease", "SPAN", "time after which another controller replaces a silent leader", set_lease,
        "8s" },
    { 0, "cluster-ca", "FILE", "certificate authority of etcd's servers",
        OPTION_INNER(copy_or_none, struct controller_options, cluster.ca) },
    { 0, "cluster-cert", "FILE", "certificate of this controller for etcd",
        OPTION_INNER(copy_or_none, struct controller_options, cluster.cert) },
    { 0, "cluster-key", "FILE", "key of that certificate, readable by --user",
        OPTION_INNER(copy_or_none, struct controller_options, cluster.key) },
    { 0, NULL, NULL, NULL, NULL },
};
