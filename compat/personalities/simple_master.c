/* SPDX-License-Identifier: MIT */
/*
 * mgpu_simple_master: mgpud in the foreground, with the API at a host and a port, and the port for nodes next
 * to it. Its messages about nodes are derived from the API, which it queries after events, so mgpud needs no
 * support for this.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/feed_events.h"
#include "cli/options/talk.h"
#include "compat/personalities/compat_common.h"
#include "compat/personalities/personality.h"
#include "compat/personalities/simple_child.h"
#include "compat/personalities/simple_nodes.h"
#include "compat/personalities/simple_place.h"

#define RETRY_FIRST_MS 20 // until the newly started mgpud listens
#define RETRY_MAX_MS   1000
#define ANSWER_MS      2000  // a signal is handled after this time at the latest
#define PORT_MAX       65534 // the next port is for nodes

struct master_options {
    const char *node;
    bool is_verbose;
};

static int set_host(void *call, const char *value, struct error *err)
{
    return simple_place_set_host("--host", value, err);
}

static int set_port(void *call, const char *value, struct error *err)
{
    int64_t port;
    int r = parse_integer(value, "--port", 1, PORT_MAX, &port, err);
    return r < 0 ? r : simple_place_set_port("--port", value, err);
}

static const struct option_row master_rows[] = {
    { 0, "host", "HOST", "address to listen on (" SIMPLE_HOST "); 0.0.0.0: all, with TLS", set_host },
    { 0, "port", "PORT", "for clients (" SIMPLE_PORT "); nodes use the next one", set_port },
    { 0, "node-id", "NAME", "offer this machine's own GPUs too, as this node",
        OPTION_INNER(text, struct master_options, node) },
    { 'v', "verbose", NULL, "log all decisions", OPTION_INNER(flag, struct master_options, is_verbose) },
    { 0 },
};

static void make_words(const struct master_options *options, struct strings *words)
{
    const char *host = simple_place_host(), *port = simple_place_port();
    bool is_six = strchr(host, ':') != NULL;
    const char *open = is_six ? "[" : "", *close = is_six ? "]" : "";
    strings_add(words, "mgpud");
    strings_add(words, "--placement=spread");
    strings_add(words, "--need-listen"); // its clients know no other connection
    strings_take(words, xasprintf("--listen=%s%s%s:%s", open, host, close, port));
    strings_take(
        words, xasprintf("--nodes-listen=%s%s%s:%ld", open, host, close, strtol(port, NULL, 10) + 1));
    strings_take(
        words, options->node != NULL ? xasprintf("--node=%s", options->node) : xstrdup("--gpus=none"));
    if (options->is_verbose)
        strings_add(words, "--verbose");
}

/* The hint contains the host. */
static void complete_words(struct call *call, int argc, char **argv, struct strings *words)
{
    _cleanup_free_ char *other = xasprintf("--listen %s:PORT) or none (--listen none", simple_place_host());
    const struct wording wording[] = {
        { other, "--port PORT" },
        { "--listen", "--host" },
        { "--nodes-listen", "--host" },
        { "--node", "--node-id" },
        { "mgpu run ...", "mgpu_simple_client submit ..." },
        { 0 },
    };
    compat_complete_server(call, "mgpu_simple_master", COMPAT_SERVES_USER, wording, words, argc, argv);
}

/* The events of mgpud; those of the cluster cause a check of its nodes. */
struct news {
    struct call *call;
    pid_t pid; // of that mgpud: another one may be at the default place
    struct simple_nodes nodes;
    struct feed_events events;
    bool is_look_due;
    int retry_ms;
};

static void take_event(void *arg, const json_t *event)
{
    struct news *news = arg;
    news->is_look_due |= field_is(event, "type", "cluster");
}

/* After a new subscription, one query follows, because earlier events were missed. If the limit of
 * subscriptions is reached, each attempt is a query. */
static void listen_anew(struct news *news)
{
    struct call *call = news->call;
    if (call->client.path == NULL)
        client_init(&call->client, call->socket, NULL);
    client_hurry(&call->client); // an unreachable one is searched for again until its process has ended
    call->client.answer_ms = ANSWER_MS;
    (void)feed_events_open(&news->events, &call->client, NULL);
    bool is_other = call->client.server_pid != 0 && call->client.server_pid != news->pid;
    if (is_other)
        feed_events_close(&news->events);
    news->is_look_due = !is_other;
}

/* -1 (no limit) while there is nothing to retry. */
static int next_ms(struct news *news, bool is_well)
{
    news->retry_ms = is_well ? 0 : news->retry_ms == 0 ? RETRY_FIRST_MS : news->retry_ms * 2;
    if (news->retry_ms > RETRY_MAX_MS)
        news->retry_ms = RETRY_MAX_MS;
    return is_well ? -1 : news->retry_ms;
}

/* Runs until mgpud ends; returns its exit status. */
static int watch(struct call *call, struct simple_child *child)
{
    struct news news = { .call = call, .pid = child->pid, .events = { .take = take_event, .arg = &news } };
    int wait_ms = 0, r = 0;
    simple_nodes_init(&news.nodes);
    while ((r = simple_child_wait(child, feed_events_fd(&news.events), wait_ms)) != -ECHILD) {
        if (feed_events_fd(&news.events) < 0)
            listen_anew(&news);
        else if (r > 0)
            (void)feed_events_read(&news.events, NULL);
        if (news.is_look_due && simple_nodes_check(&news.nodes, &call->client) == 0)
            news.is_look_due = false;
        wait_ms = next_ms(&news, feed_events_fd(&news.events) >= 0 && !news.is_look_due);
    }
    feed_events_close(&news.events);
    simple_nodes_clear(&news.nodes);
    return simple_child_status(child);
}

static void print_next_step(const struct master_options *options)
{
    if (options->node == NULL)
        talk_line("each machine with GPUs, this one too: mgpu_simple_node --node-id NAME --master-host HOST "
                  "--master-port %s",
            simple_place_port());
}

static int master(struct call *call, int argc, char **argv, struct error *err)
{
    const struct master_options *options = call->options;
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_(simple_child_clear) struct simple_child child = SIMPLE_CHILD_NONE;
    (void)unsetenv("MGPU_SOCKET");
    (void)unsetenv("MGPU_HOST");
    (void)simple_place_set_host("--host", simple_place_host(), NULL); // specified, even if the default
    make_words(options, &words);
    complete_words(call, argc, argv, &words);
    if (!call->is_quiet)
        print_next_step(options);
    int r = simple_child_start(&child, &words, -1, false, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *socket = compat_own_socket(argc, argv);
    call->socket = call_keep(call, socket);
    return watch(call, &child);
}

static const struct command master_command = {
    .name = "mgpu_simple_master",
    .usage = "[OPTIONS] [-- OPTION OF mgpud...]",
    .help = "Run mgpud in the foreground, and report nodes that connect",
    .detail =
        "Clients and nodes on other machines need TLS and a token: mgpu token create, mgpu node token.\n"
        "As root it serves all users; as a normal user, only yourself.",
    .tables = { master_rows },
    .options_size = sizeof(struct master_options),
    .stops_at_operand = true,
    .run = master,
};

const struct personality personality_simple_master = {
    .name = "mgpu_simple_master",
    .command = &master_command,
};
