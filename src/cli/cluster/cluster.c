/* SPDX-License-Identifier: MIT */
/* mgpu cluster: which of several controllers leads, and how far this one has followed. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/verbs/verbs.h"

static void print_standby(const json_t *answer)
{
    if (field_is_known(answer, "age_ms"))
        (void)printf("complete   %" PRId64 " ms ago\n", field_integer(answer, "age_ms", 0));
    else
        (void)printf("complete   not yet\n");
}

/* Shows how many entries of the log each standby has yet to apply, according to its last report. */
static void print_controllers(const json_t *answer)
{
    const json_t *controller;
    size_t i;
    int64_t newest = field_integer(answer, "entry", 0);
    json_array_foreach(json_object_get(answer, "controllers"), i, controller)
    {
        _cleanup_free_ char *name = field_shown(controller, "name"), *role = field_shown(controller, "role");
        _cleanup_free_ char *api = field_shown(controller, "api"),
                            *version = field_shown(controller, "version");
        _cleanup_free_ char *trouble = field_shown(controller, "trouble");
        int64_t behind = newest - field_integer(controller, "entry", 0);
        (void)printf(
            "%s %s, %s, %s, mgpu %s", i == 0 ? "controller" : "          ", name, role, api, version);
        if (text_equal(role, "standby") && behind > 0)
            (void)printf(", %" PRId64 " entries behind at its last report", behind);
        (void)printf("%s%s\n", field_is_known(controller, "trouble") ? ": " : "",
            field_is_known(controller, "trouble") ? trouble : "");
    }
}

static void print_etcd(const json_t *answer)
{
    const json_t *server;
    size_t i;
    json_array_foreach(json_object_get(answer, "etcd"), i, server)
    {
        _cleanup_free_ char *url = field_shown(server, "url"), *trouble = field_shown(server, "trouble");
        bool is_up = json_is_true(json_object_get(server, "up")),
             has_trouble = field_is_known(server, "trouble");
        (void)printf("%s %s, %s", i == 0 ? "etcd      " : "          ", url, is_up ? "up" : "DOWN");
        double used = 0;
        if (is_up && field_measured(server, "used_bytes", &used))
            (void)printf(", %" PRId64 " MiB", (int64_t)used >> 20);
        (void)printf("%s%s\n", has_trouble ? ": " : "", has_trouble ? trouble : "");
    }
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(&call->client, API_PATH "/cluster", &answer, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_page(answer, stdout);
        return EXIT_OK;
    }
    const char *role = field_text(answer, "role");
    if (text_equal(role, "only")) {
        (void)printf("mgpud runs alone; docs/high-availability.md describes several controllers\n");
        return EXIT_OK;
    }
    _cleanup_free_ char *shown = field_shown(answer, "role"), *leader = field_shown(answer, "leader");
    _cleanup_free_ char *trouble = field_shown(answer, "trouble");
    (void)printf("role       %s\n", shown);
    (void)printf("leader     %s\n", field_is_known(answer, "leader") ? leader : "none at present");
    (void)printf("log entry  %" PRId64 "\n", field_integer(answer, "entry", 0));
    if (text_equal(role, "standby"))
        print_standby(answer);
    if (field_is_known(answer, "trouble"))
        (void)printf("trouble    %s\n", trouble);
    print_controllers(answer);
    print_etcd(answer);
    return EXIT_OK;
}

const struct command command_cluster = {
    .name = "cluster",
    .usage = "",
    .help = "Show which of several controllers leads, and whether this one follows",
    .takes_nothing = true,
    .run = run,
};
