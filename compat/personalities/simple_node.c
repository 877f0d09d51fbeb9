/* SPDX-License-Identifier: MIT */
/*
 * mgpu_simple_node: mgpu-agent in the foreground, with its own directories for each name, so that several
 * nodes and a master can run on one machine. Its messages are derived from the agent's standard error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/wording.h"
#include "cli/api/exit_code.h"
#include "cli/options/talk.h"
#include "compat/personalities/compat_common.h"
#include "compat/personalities/personality.h"
#include "compat/personalities/simple_child.h"
#include "compat/personalities/simple_join.h"
#include "compat/personalities/simple_place.h"

#define WAY_MS         5000
#define REGISTERED     "registered with the controller" // as reported by mgpu-agent
#define SPEAKER        "mgpu-agent: "
#define FAILURE        "error: "
#define NAME_LETTERS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
#define NAME_MAX_BYTES 64

struct node_options {
    const char *node, *join_file;
    bool is_verbose;
};

static struct node_options *options_of(void *call)
{
    return ((struct call *)call)->options;
}

/* The name is part of the names of directories. */
static int set_node(void *call, const char *value, struct error *err)
{
    bool is_good = value[0] != '\0' && value[0] != '.' && strlen(value) <= NAME_MAX_BYTES &&
                   strspn(value, NAME_LETTERS) == strlen(value);
    options_of(call)->node = value;
    return is_good ? 0
                   : error_set(err, -EINVAL,
                         "--node-id: '%.80s' is not a name of letters, digits, '-', '_' and '.'", value);
}

static int set_host(void *call, const char *value, struct error *err)
{
    return simple_place_set_host("--master-host", value, err);
}

static int set_port(void *call, const char *value, struct error *err)
{
    return simple_place_set_port("--master-port", value, err);
}

static const struct option_row node_rows[] = {
    { 0, "node-id", "NAME", "name of this node", set_node },
    { 0, "master-host", "HOST", "host name of the master (" SIMPLE_HOST ")", set_host },
    { 0, "master-port", "PORT", "port of the master for clients (" SIMPLE_PORT ")", set_port },
    { 0, "join-file", "FILE", "file with the output of `mgpu node token` (MGPU_JOIN)",
        OPTION_INNER(text, struct node_options, join_file) },
    { 'v', "verbose", NULL, "show all messages of the agent",
        OPTION_INNER(flag, struct node_options, is_verbose) },
    { 0 },
};

/* --- its words --- */

/* BASE/mgpu-NAME: like those of mgpu-agent, one for each name. */
static char *own_directory(const char *variable, const char *of_root, const char *of_home, const char *node)
{
    const char *base = getenv(variable), *home = getenv("HOME");
    if (geteuid() == 0)
        return xasprintf("%s/mgpu-%s", of_root, node);
    if (base != NULL && base[0] == '/')
        return xasprintf("%s/mgpu-%s", base, node);
    return xasprintf("%s/.local/state/mgpu-%s%s", home != NULL ? home : "", node, of_home);
}

static bool has_joined(const char *state_dir)
{
    _cleanup_free_ char *certificate = xasprintf("%s/node/tls/node.crt", state_dir);
    return access(certificate, F_OK) == 0;
}

/* The agent's arguments; *ret_input is the ticket, or -1. */
static int make_words(
    struct call *call, int argc, char **argv, struct strings *words, int *ret_input, struct error *err)
{
    const struct node_options *options = call->options;
    const char *given_state = compat_find_value(argc, argv, "--state-dir");
    _cleanup_free_ char *state = own_directory("XDG_STATE_HOME", "/var/lib", "", options->node);
    _cleanup_free_ char *run = own_directory("XDG_RUNTIME_DIR", "/run", "/run", options->node);
    _cleanup_free_ char *ticket = NULL, *place = simple_place_text(1);
    strings_add(words, "mgpu-agent");
    strings_take(words, xasprintf("--node=%s", options->node));
    strings_take(words, xasprintf("--state-dir=%s", state));
    strings_take(words, xasprintf("--run-dir=%s", run));
    compat_allow_root(words);
    if (options->is_verbose)
        strings_add(words, "--verbose");
    for (int i = 0; i < argc; i++)
        strings_add(words, argv[i]);
    if (options->join_file == NULL && has_joined(given_state != NULL ? given_state : state)) {
        if (simple_place_is_given())
            strings_take(words, xasprintf("--controller=%s", place));
        return 0;
    }
    int r = simple_join_ticket(call, options->join_file, options->node, &ticket, err);
    if (r == 0)
        r = simple_join_try_way(1, WAY_MS, err);
    if (r < 0)
        return r;
    strings_add(words, "--join-file=-");
    _cleanup_close_ int fd = memfd_create("ticket", MFD_CLOEXEC);
    if (fd < 0 || write_all(fd, ticket, strlen(ticket)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return error_set_errno(err, -errno, "cannot store the token");
    *ret_input = take_fd(&fd);
    return 0;
}

/* --- output of the agent --- */

struct registration {
    const struct node_options *options;
    struct buffer line;
    char *last; // the last line, without time and name
    bool is_registered;
};

static void on_registered(struct registration *registration)
{
    struct utsname self;
    if (registration->options->is_verbose)
        (void)puts("Connected to master server");
    if (!registration->is_registered)
        (void)printf("✅ Registration successful\nSimple Node Agent %s started on %s\n",
            registration->options->node, uname(&self) == 0 ? self.nodename : "this machine");
    (void)fflush(stdout);
    if (!registration->is_registered)
        compat_print_root_note();
    registration->is_registered = true;
}

/* Sentences of the agent, and those from mgpud to the agent. */
static const struct wording agent_wording[] = {
    { "mgpu-agent --join", "mgpu_simple_node --join-file" },
    { "--state-dir and --run-dir", "another --node-id" },
    { "--node", "--node-id" },
    { 0 },
};

/* Until the node is registered, only the last line is kept: it contains the reason. */
static void on_line(struct registration *registration)
{
    const char *line = buffer_text(&registration->line), *words = strstr(line, SPEAKER);
    if (registration->options->is_verbose || registration->is_registered)
        (void)fprintf(stderr, "%s\n", line);
    free(registration->last);
    words = words != NULL ? words + strlen(SPEAKER) : line;
    bool is_failure = strncmp(words, FAILURE, strlen(FAILURE)) == 0;
    registration->last = wording_apply(agent_wording, is_failure ? words + strlen(FAILURE) : words);
    if (strncmp(registration->last, REGISTERED, strlen(REGISTERED)) == 0)
        on_registered(registration);
}

static void read_lines(struct registration *registration, int fd)
{
    char bytes[4096];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            buffer_append(&registration->line, &bytes[i], 1);
            continue;
        }
        on_line(registration);
        registration->line.length = 0;
    }
}

static int run_agent(struct call *call, const struct strings *words, int input, struct error *err)
{
    _cleanup_(simple_child_clear) struct simple_child child = SIMPLE_CHILD_NONE;
    struct registration registration = { .options = call->options };
    int r = simple_child_start(&child, words, input, true, err);
    if (r < 0)
        return r;
    while ((r = simple_child_wait(&child, -1, -1)) != -ECHILD)
        if (r > 0)
            read_lines(&registration, child.stderr_fd);
    int status = simple_child_status(&child);
    if (!registration.is_registered && status != EXIT_OK)
        talk_line("Registration failed: %s",
            registration.last != NULL ? registration.last : "mgpu-agent reported no reason");
    buffer_clear(&registration.line);
    free(registration.last);
    return status;
}

static int node(struct call *call, int argc, char **argv, struct error *err)
{
    const struct node_options *options = call->options;
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_close_ int input = -1;
    if (options->node == NULL) {
        (void)error_set(err, -EINVAL, "--node-id, the name of this node, is missing");
        return error_hint(err, "mgpu_simple_node --node-id node001 --master-host HOST --master-port PORT");
    }
    int r = make_words(call, argc, argv, &words, &input, err);
    return r < 0 ? r : run_agent(call, &words, input, err);
}

static const struct command node_command = {
    .name = "mgpu_simple_node",
    .usage = "--node-id NAME [OPTIONS] [-- OPTION OF mgpu-agent...]",
    .help = "Run a node of a master in the foreground",
    .detail = "The first start joins with a token: it is requested from a master on this machine, otherwise "
              "printed\n"
              "by `mgpu node token` there. Later starts need none. As root it runs jobs of all users.",
    .tables = { node_rows },
    .options_size = sizeof(struct node_options),
    .stops_at_operand = true,
    .run = node,
};

static const struct wording hint_words[] = {
    { "mgpud --listen, mgpu_simple_master --port", "mgpu_simple_master --port" },
    { 0 },
};

const struct personality personality_simple_node = {
    .name = "mgpu_simple_node",
    .command = &node_command,
    .words = hint_words,
};
