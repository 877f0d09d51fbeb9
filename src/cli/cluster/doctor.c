/* SPDX-License-Identifier: MIT */
/*
 * mgpu doctor: which features are on or off, and how to enable them, the most severe first. For the nodes
 * named, and with --all, node by node. With --node, checks the connection to another machine. With --json,
 * the findings of the same checks, and the nodes as in the API.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/strings.h"
#include "base/version.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/cluster/connectivity_check.h"
#include "cli/cluster/findings.h"
#include "cli/cluster/shared_memory_text.h"
#include "cli/complete/complete.h"
#include "cli/term/time_text.h"
#include "cli/verbs/verbs.h"

#define STALL_BAD_MS   1000
#define CLOCK_SLACK_MS 5000
#define LINES_MAX      5 // of the same name and verdict

struct doctor_options {
    const char *node; // check the connection to this machine instead
    bool is_all;
};

static const struct option_row rows[] = {
    { 'a', "all", NULL, "node by node, and all findings", OPTION_INNER(flag, struct doctor_options, is_all) },
    { 0, "node", "HOST[:PORT][#TOKEN]", "check the connection to the node port of an mgpud",
        OPTION_INNER(text, struct doctor_options, node) },
    { 0 },
};

struct doctor {
    struct call *call;
    struct screen screen;
    struct findings *findings; // NULL: each is printed immediately
    json_t *nodes;             // for --json: the nodes inspected; NULL: not collected
    const char *about;         // the node being inspected; NULL: none
    size_t n_nodes;
    unsigned off, bad;
    bool is_connected; // connected to mgpud, if that was tried
};

static void report(
    struct doctor *doctor, enum verdict verdict, const char *name, const char *text, const char *fix)
{
    doctor->off += verdict == VERDICT_OFF;
    doctor->bad += verdict == VERDICT_BAD;
    if (doctor->findings != NULL)
        findings_add(doctor->findings, verdict, name, doctor->about, text, fix);
    else
        finding_print(&doctor->screen, stdout, verdict, name, text, fix);
}

/* A user's own mgpud is used first and hides the machine's. */
static void check_other(struct doctor *doctor)
{
    _cleanup_free_ char *other = client_other(&doctor->call->client);
    if (other == NULL)
        return;
    _cleanup_free_ char *text = xasprintf(
        "another mgpud answers at %s; mgpu does not use it, and both may allocate the same GPUs", other);
    _cleanup_free_ char *fix =
        xasprintf("stop your own: mgpud --stop; or choose: export MGPU_SOCKET=%s", other);
    report(doctor, VERDICT_OFF, "other mgpud", text, fix);
}

static bool check_socket(struct doctor *doctor)
{
    struct client *client = &doctor->call->client;
    struct error err = { 0 };
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    int r = client_connect(client, &http, &err);
    if (r == 0) {
        _cleanup_free_ char *text = xasprintf("%s, of uid %u", client->path, (unsigned)client->server_uid);
        report(doctor, VERDICT_ON, "socket", text, NULL);
        check_other(doctor);
        return true;
    }
    report(doctor, VERDICT_BAD, "socket", err.message, err.hint);
    doctor->is_connected = false;
    return false;
}

static void print_places(const struct doctor *doctor)
{
    _cleanup_strings_ struct strings places = { 0 };
    client_places(&doctor->call->client, &places);
    for (size_t i = 0; i < places.count; i++)
        (void)printf("     %-14s tried: %s\n", "", places.items[i]);
}

/* How long one request kept all others waiting. */
static void check_loop(struct doctor *doctor, const json_t *version)
{
    int64_t stall_ms = field_integer(version, "longest_stall_ms", 0);
    int64_t busy_ms = field_integer(version, "longest_turn_us", 0) / 1000;
    if (json_object_get(version, "longest_stall_ms") == NULL)
        return; // an older mgpud
    const char *step = json_string_value(json_object_get(version, "longest_step"));
    _cleanup_free_ char *part = step != NULL ? xasprintf(" (%s: %" PRId64 " ms)", step,
                                                   field_integer(version, "longest_step_us", 0) / 1000)
                                             : xstrdup("");
    _cleanup_free_ char *text = xasprintf("longest turn %" PRId64 " ms%s, latest end of a turn %" PRId64
                                          " ms late (last ten minutes)",
        busy_ms, part, stall_ms);
    report(doctor, stall_ms >= STALL_BAD_MS ? VERDICT_OFF : VERDICT_ON, "event loop", text,
        "if the machine is not overloaded, report it with the log of mgpud");
}

static void check_store(struct doctor *doctor, const json_t *version)
{
    const json_t *check = json_object_get(version, "store_check");
    int64_t findings = field_integer(check, "findings", 0);
    if (json_is_true(json_object_get(version, "store_full")))
        report(doctor, VERDICT_BAD, "store",
            json_is_true(json_object_get(version, "store_lacks_inodes")) ? "no inodes left to store new jobs"
                                                                         : "no space left to store new jobs",
            "free space on the file system of mgpud's --state-dir (mgpu config get state-dir)");
    if (findings == 0)
        return;
    bool is_file = json_is_true(json_object_get(check, "is_damaged"));
    const char *finding = field_text(check, "finding");
    _cleanup_free_ char *text =
        xasprintf("damaged, %" PRId64 " finding%s%s: %s", findings, findings == 1 ? "" : "s",
            is_file ? ", new jobs are refused" : "", finding != NULL ? finding : "unknown");
    report(doctor, VERDICT_BAD, "store", text,
        "mgpud --fsck lists all; see docs/store.md, Damage while mgpud runs");
}

static void check_page(struct doctor *doctor, const json_t *version)
{
    const char *trouble = field_text(version, "page_trouble");
    if (trouble != NULL)
        report(doctor, VERDICT_OFF, "web-page", trouble,
            "end that program or set another port (listen in mgpu.yaml); docs/web.md, If the port is taken");
}

static void check_version(struct doctor *doctor)
{
    _cleanup_json_ json_t *answer = NULL;
    struct error err = { 0 };
    if (client_get(&doctor->call->client, API_PATH "/version", &answer, &err) < 0) {
        report(doctor, VERDICT_BAD, "version", err.message, "restart mgpud");
        return;
    }
    const char *version = field_text(answer, "version");
    bool is_same = text_equal(version, MGPU_VERSION);
    _cleanup_free_ char *text =
        xasprintf("mgpu %s, mgpud %s", MGPU_VERSION, version == NULL ? "unknown" : version);
    report(doctor, is_same ? VERDICT_ON : VERDICT_OFF, "version", text,
        "restart mgpud after an upgrade; running jobs are not affected");
    check_store(doctor, answer);
    check_page(doctor, answer);
    check_loop(doctor, answer);
    int64_t there = time_parse(field_text(answer, "time")), here = clock_wall_ms();
    if (there != 0 && (there - here > CLOCK_SLACK_MS || here - there > CLOCK_SLACK_MS))
        report(doctor, VERDICT_OFF, "clock", "the clocks of this machine and of mgpud differ",
            "timedatectl set-ntp true");
}

#define LEASE_LOW   4    // the fraction of a lease below which its renewals are late (1/4)
#define LAG_ENTRIES 1000 // a standby that lags this far would take long to become leader
#define AGE_BAD_MS  10000

static void check_members(struct doctor *doctor, const json_t *answer)
{
    const json_t *controller;
    size_t i;
    int64_t newest = field_integer(answer, "entry", 0);
    json_array_foreach(json_object_get(answer, "controllers"), i, controller)
    {
        const char *name = field_text(controller, "name"), *trouble = field_text(controller, "trouble");
        int64_t behind = newest - field_integer(controller, "entry", 0);
        _cleanup_free_ char *text =
            trouble != NULL ? xasprintf("%s: %s", name, trouble)
                            : xasprintf("%s is %" PRId64 " entries of the log behind", name, behind);
        if (trouble != NULL || behind >= LAG_ENTRIES)
            report(doctor, trouble != NULL ? VERDICT_BAD : VERDICT_OFF, "controller", text,
                "see the log of mgpud there: journalctl -u mgpud");
    }
    if (i == 1)
        report(doctor, VERDICT_OFF, "controllers", "there is no other controller to take over",
            "start mgpud on a second machine with the same --cluster");
}

static void check_etcd(struct doctor *doctor, const json_t *answer)
{
    const json_t *server;
    size_t i, up = 0;
    json_array_foreach(json_object_get(answer, "etcd"), i, server)
    {
        const char *url = field_text(server, "url"), *trouble = field_text(server, "trouble");
        bool is_up = json_is_true(json_object_get(server, "up"));
        _cleanup_free_ char *text = xasprintf("%s: %s", url, trouble != NULL ? trouble : "up");
        up += is_up && trouble == NULL;
        if (!is_up || trouble != NULL)
            report(doctor, VERDICT_BAD, "etcd", text,
                is_up ? "see docs/high-availability.md, Full etcd"
                      : "start this member of etcd; two of three are enough to continue");
    }
    _cleanup_free_ char *all = xasprintf("%zu of %zu endpoints answer", up, i);
    if (i > 0 && up == i)
        report(doctor, VERDICT_ON, "etcd", all, NULL);
}

static void check_lease(struct doctor *doctor, const json_t *answer)
{
    int64_t lease_ms = field_integer(answer, "lease_ms", 0);
    double left_ms = 0, age_ms = 0;
    bool has_left = field_measured(answer, "lease_left_ms", &left_ms);
    bool has_age = field_measured(answer, "age_ms", &age_ms);
    bool is_leader = text_equal(field_text(answer, "role"), "leader");
    _cleanup_free_ char *lease =
        xasprintf("%.0f of %" PRId64 " ms left: it is renewed late", left_ms, lease_ms);
    _cleanup_free_ char *age = xasprintf("this standby last had the whole log %.0f s ago", age_ms / 1000);
    if (is_leader && has_left && left_ms < (double)lease_ms / LEASE_LOW)
        report(doctor, VERDICT_OFF, "lease", lease,
            "etcd or its disks are slow: etcdctl check perf; or set a longer --cluster-lease");
    if (!is_leader && has_age && age_ms >= AGE_BAD_MS)
        report(doctor, VERDICT_BAD, "standby", age, "see the log of mgpud: journalctl -u mgpud");
}

/* True if this is a standby, which answers no other checks. */
static bool check_controllers(struct doctor *doctor)
{
    _cleanup_json_ json_t *answer = NULL;
    if (client_get(&doctor->call->client, API_PATH "/cluster", &answer, NULL) < 0)
        return false; // an older mgpud
    const char *role = field_text(answer, "role"), *leader = field_text(answer, "leader");
    const char *trouble = field_text(answer, "trouble");
    if (role == NULL || text_equal(role, "only"))
        return false;
    _cleanup_free_ char *text =
        trouble != NULL ? xstrdup(trouble)
                        : xasprintf("%s; leader: %s", role, leader != NULL ? leader : "none at present");
    report(doctor,
        trouble != NULL  ? VERDICT_BAD
        : leader == NULL ? VERDICT_OFF
                         : VERDICT_ON,
        "controllers", text, "see docs/high-availability.md; jobs are not affected");
    check_lease(doctor, answer);
    check_members(doctor, answer);
    check_etcd(doctor, answer);
    return text_equal(role, "standby");
}

/* Settings in mgpud's files that have no effect. */
static void check_settings(struct doctor *doctor)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    json_t *warning = NULL;
    if (client_get(&doctor->call->client, API_PATH "/config", &answer, NULL) < 0)
        return;
    json_array_foreach(json_object_get(answer, "warnings"), index, warning) report(doctor, VERDICT_OFF,
        "settings", json_string_value(warning), "correct the file; mgpud reads it on SIGHUP");
}

static void check_gpus(struct doctor *doctor, const json_t *node)
{
    int64_t gpus = field_integer(node, "gpus", 0);
    _cleanup_free_ char *backend = field_shown(node, "gpu_backend");
    _cleanup_free_ char *text =
        gpus > 0 ? xasprintf("%" PRId64 " found by %s", gpus, backend) : xstrdup("none found");
    report(doctor, gpus > 0 ? VERDICT_ON : VERDICT_OFF, "GPUs", text,
        "install the driver (nvidia-smi must work), or try with: mgpud --gpus sim:8x24G");
    int64_t drained = field_integer(node, "gpus_drained", 0);
    _cleanup_free_ char *failed =
        xasprintf("%" PRId64 " of them failed and %s out of service", drained, drained == 1 ? "is" : "are");
    if (drained > 0)
        report(
            doctor, VERDICT_BAD, "GPU health", failed, "mgpu gpus shows why; mgpu gpu resume resumes a GPU");
}

/* mgpud parks jobs by its own rule (park: auto) only where this test has passed. */
static void check_parking(struct doctor *doctor, const json_t *node)
{
    const json_t *parking = json_object_get(node, "parking");
    const char *state = field_text(parking, "state"), *why = field_text(parking, "text");
    _cleanup_free_ char *driver = field_shown(node, "driver"), *tested = field_shown(parking, "driver");
    _cleanup_free_ char *fix = xasprintf("mgpu gpu test --park %s", field_text(node, "name"));
    _cleanup_free_ char *text = NULL;
    bool is_passed = text_equal(state, "passed");
    if (state == NULL || text_equal(state, "none"))
        return;
    if (is_passed)
        text = xasprintf("passed with driver %s", tested);
    else if (text_equal(state, "failed"))
        text = xasprintf("failed with driver %s: %s", tested, why != NULL ? why : "no reason");
    else if (text_equal(state, "outdated"))
        text = xasprintf("not tested with driver %s and the present GPUs: last with %s", driver, tested);
    else
        text = xasprintf("never tested here, so park: auto parks nothing (driver %s)", driver);
    bool is_wrong = text_equal(state, "failed") && json_is_true(json_object_get(parking, "wrong"));
    report(doctor, is_passed ? VERDICT_ON : is_wrong ? VERDICT_BAD : VERDICT_OFF, "park test", text, fix);
}

static void check_node(struct doctor *doctor, const json_t *node)
{
    size_t index = 0;
    json_t *feature = NULL;
    _cleanup_free_ char *name = field_shown(node, "name");
    bool is_up = json_is_true(json_object_get(node, "up"));
    if (doctor->findings == NULL)
        (void)printf("node %s\n", name);
    doctor->about = name;
    report(doctor, is_up ? VERDICT_ON : VERDICT_BAD, "agent", is_up ? "connected" : "not connected",
        "journalctl -u mgpud");
    check_gpus(doctor, node);
    json_array_foreach(json_object_get(node, "features"), index, feature)
    {
        _cleanup_free_ char *label = field_shown(feature, "name");
        bool is_on = json_is_true(json_object_get(feature, "on"));
        report(doctor, is_on ? VERDICT_ON : VERDICT_OFF, label, field_text(feature, "text"),
            field_text(feature, "fix"));
    }
    check_parking(doctor, node);
    doctor->about = NULL;
}

/* "/nodes?node=NAME"; NULL: all. */
static int get_of_node(
    struct doctor *doctor, const char *path, const char *node, json_t **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    buffer_append_text(&text, path);
    if (node != NULL) {
        buffer_append_text(&text, strchr(path, '?') != NULL ? "&node=" : "?node=");
        http_append_encoded(&text, node);
    }
    return client_get(&doctor->call->client, buffer_text(&text), ret, err);
}

/* Results of tests of idle GPUs on the nodes. mgpud sends all that failed, and one GPU of each state. */
static void check_tests(struct doctor *doctor, const char *node)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    json_t *gpu = NULL;
    if (get_of_node(doctor, API_PATH "/gpus?sparse=1&top=1", node, &answer, NULL) < 0)
        return;
    json_array_foreach(json_object_get(answer, "gpus"), index, gpu)
    {
        if (!field_is(gpu, "test_result", "slow") && !field_is(gpu, "test_result", "failed"))
            continue;
        _cleanup_free_ char *text = xasprintf("GPU %s:%" PRId64 ": %s", field_text(gpu, "node"),
            field_integer(gpu, "index", 0), field_text(gpu, "test_text"));
        report(doctor, VERDICT_BAD, "GPU test", text,
            "test it again: mgpu gpu test; mgpu gpu pause takes it out of service");
    }
}

static int get_nodes(struct doctor *doctor, const char *name, json_t **ret, struct error *err)
{
    int r = get_of_node(doctor, API_PATH "/nodes", name, ret, err);
    if (r < 0 || name == NULL || json_array_size(json_object_get(*ret, "nodes")) > 0)
        return r;
    (void)error_set(err, -ENOENT, "there is no node '%.100s'", name);
    return error_hint(err, "all nodes: mgpu nodes");
}

static int check_nodes(struct doctor *doctor, const char *name, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    json_t *node = NULL;
    int r = get_nodes(doctor, name, &answer, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(answer, "nodes"), index, node) check_node(doctor, node);
    if (doctor->nodes != NULL)
        (void)json_array_extend(doctor->nodes, json_object_get(answer, "nodes"));
    doctor->n_nodes += index;
    if (index == 0)
        report(doctor, VERDICT_BAD, "nodes", "no node has connected yet",
            "journalctl -u mgpud; if mgpud runs with --no-agent, add a node: mgpu node token");
    check_tests(doctor, name);
    return 0;
}

static void on_step(void *arg, const char *verdict, const char *name, const char *text, const char *fix)
{
    bool is_bad = strcmp(verdict, "bad") == 0;
    report(arg,
        is_bad                       ? VERDICT_BAD
        : strcmp(verdict, "on") == 0 ? VERDICT_ON
                                     : VERDICT_OFF,
        name, text, fix);
}

static int status_of(const struct doctor *doctor)
{
    return doctor->bad > 0 ? EXIT_PARTLY : EXIT_OK;
}

static int sum_up(const struct doctor *doctor)
{
    if (doctor->bad == 0 && doctor->off == 0)
        (void)printf("all is well\n");
    else
        (void)printf("%u bad, %u off\n", doctor->bad, doctor->off);
    return status_of(doctor);
}

/* Such memory stays until a reboot, and is charged to no job. */
static void check_shared_memory(struct doctor *doctor)
{
    _cleanup_free_ char *text = shared_memory_text();
    if (text != NULL)
        report(doctor, VERDICT_OFF, "shared memory", text,
            "ls -l /dev/shm; remove unneeded files with rm, segments with ipcrm -m ID; jobs with "
            "--private-tmp leave none");
}

/* Checks mgpud and all its nodes. */
static int check_all(struct doctor *doctor, struct error *err)
{
    if (!check_socket(doctor))
        return 0;
    check_version(doctor);
    if (check_controllers(doctor))
        return 0;
    check_settings(doctor);
    check_shared_memory(doctor);
    return check_nodes(doctor, NULL, err);
}

static int check(struct doctor *doctor, int argc, char **argv, struct error *err)
{
    const struct doctor_options *options = doctor->call->options;
    if (options->node != NULL)
        return doctor_walk(options->node, on_step, doctor, err);
    int r = argc == 0 ? check_all(doctor, err) : 0;
    for (int i = 0; r >= 0 && i < argc; i++)
        r = check_nodes(doctor, argv[i], err);
    return r;
}

static int show_json(struct doctor *doctor, int argc, char **argv, struct error *err)
{
    _cleanup_(findings_freep) struct findings *findings = findings_new();
    _cleanup_json_ json_t *nodes = json_array();
    doctor->findings = findings;
    doctor->nodes = nodes;
    int r = check(doctor, argc, argv, err);
    if (r < 0)
        return r;
    _cleanup_json_ json_t *answer = json_pack(
        "{s:s, s:o, s:O}", "schema", "mgpu/v1", "findings", findings_json(findings), "nodes", nodes);
    show_json_page(answer, stdout);
    return status_of(doctor);
}

/* All nodes are summarized, unless they are requested one by one. */
static int show_text(struct doctor *doctor, int argc, char **argv, struct error *err)
{
    const struct doctor_options *options = doctor->call->options;
    bool is_summary = argc == 0 && options->node == NULL && !options->is_all;
    _cleanup_(findings_freep) struct findings *findings = is_summary ? findings_new() : NULL;
    doctor->findings = findings;
    int r = check(doctor, argc, argv, err);
    if (r < 0)
        return r;
    if (findings != NULL)
        findings_print(findings, &doctor->screen, doctor->n_nodes, LINES_MAX, stdout);
    r = sum_up(doctor);
    if (!doctor->is_connected)
        print_places(doctor);
    return r;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct doctor doctor = { .call = call, .is_connected = true };
    const struct doctor_options *options = call->options;
    screen_open(&doctor.screen, STDOUT_FILENO, call->color);
    client_hurry(&call->client); // an unreachable mgpud is a finding
    if (options->node != NULL && argc > 0)
        return error_set(err, -EINVAL, "--node checks the connection to a machine, not to '%.60s'", argv[0]);
    return call->is_json ? show_json(&doctor, argc, argv, err) : show_text(&doctor, argc, argv, err);
}

const struct command command_doctor = {
    .name = "doctor",
    .usage = "[OPTIONS] [NODE...]",
    .help = "Check which features work, and how to fix the others",
    .detail = "Exit status 1 if something is BAD; features that are off show the reason, and jobs run "
              "without them. Nodes with the same finding share a line.",
    .tables = { rows },
    .options_size = sizeof(struct doctor_options),
    .complete_operand = complete_nodes,
    .run = run,
};
