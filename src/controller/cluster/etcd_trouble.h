/* SPDX-License-Identifier: MIT */
/* Problems of connections to etcd, as sentences for administrators. */
#pragma once

#include <curl/curl.h>

#include "base/error.h"
#include "controller/cluster/etcd.h"

/* A request to `endpoint` failed with this code; `text` is libcurl's own. Returns -EAGAIN: another endpoint
 * may work, and certificates may be replaced while mgpud runs. */
int etcd_trouble_describe(const struct etcd_settings *settings, const char *endpoint, CURLcode code,
    const char *text, struct error *err);

/* It failed because etcd does not accept our certificate, or there is none. Returns -EAGAIN. */
int etcd_trouble_describe_refusal(
    const struct etcd_settings *settings, const char *endpoint, struct error *err);

/* The files of the settings, before the first request: they can be read, and belong together. */
int etcd_trouble_check(const struct etcd_settings *settings, struct error *err);
