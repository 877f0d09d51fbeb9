/* SPDX-License-Identifier: MIT */
/*
 * mgpu web: prints a one-time address of the web page, and opens it where there is a desktop. A browser is
 * given a file that leads to the address, not the address itself: every user can read the words of a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/term/field.h"
#include "cli/verbs/verbs.h"

#define LEADING_FILE "mgpu-web.html"

struct web_options {
    const char *host;
    bool is_printed_only;
};

static const struct option_row rows[] = {
    { 'n', "no-browser", NULL, "only print the address",
        OPTION_INNER(flag, struct web_options, is_printed_only) },
    { 0, "host", "HOST", "address of this machine for a browser elsewhere (its host name)",
        OPTION_INNER(text, struct web_options, host) },
    { 0 },
};

static bool is_over_ssh(void)
{
    return getenv("SSH_CONNECTION") != NULL;
}

static bool has_desktop(void)
{
    return getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
}

/* The command to type on the machine where the browser is: SSH_CONNECTION names this machine as it is reached
 * from there. */
static void print_tunnel(const char *page)
{
    const char *port = strrchr(page, ':') + 1;
    _cleanup_free_ char *words = xstrdup(getenv("SSH_CONNECTION"));
    const struct passwd *self = getpwuid(getuid());
    char *rest = NULL, *server = strtok_r(words, " ", &rest);
    for (int i = 0; i < 2 && server != NULL; i++)
        server = strtok_r(NULL, " ", &rest);
    (void)fprintf(stderr, "  first, on your own machine: ssh -L %s:localhost:%s %s@%s\n", port, port,
        self != NULL ? self->pw_name : "USER", server != NULL ? server : "HOST");
}

static void print_next(const char *page)
{
    bool is_local = strncmp(page, "http://", 7) == 0;
    if (is_local && is_over_ssh())
        print_tunnel(page);
    (void)fprintf(stderr,
        "  valid once, for a minute; the browser is then logged in as you for 12 hours (mgpu token list)\n");
    if (!is_local)
        (void)fprintf(stderr,
            "  the browser will warn about the certificate: it is this cluster's own (docs/web.md)\n");
}

/* A file that only this user can read, in a folder that goes with the login. -errno. */
static int write_leading_file(const char *folder, const char *address)
{
    _cleanup_close_ int dirfd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return -errno;
    _cleanup_free_ char *text =
        xasprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", address);
    return file_write(dirfd, LEADING_FILE, text, strlen(text), false);
}

/* Returns only when there is no browser to open. */
static void open_browser(const char *address)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (folder == NULL || write_leading_file(folder, address) < 0)
        return;
    _cleanup_free_ char *file = xasprintf("%s/" LEADING_FILE, folder);
    (void)fflush(NULL);
    (void)execlp("xdg-open", "xdg-open", file, (char *)NULL);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct web_options *options = call->options;
    _cleanup_json_ json_t *body = json_object(), *answer = NULL;
    (void)argc, (void)argv;
    if (options->host != NULL)
        (void)json_object_set_new(body, "host", json_string(options->host));
    int r = client_call(&call->client, "POST", API_PATH "/logins", body, &answer, err);
    if (r < 0)
        return r;
    const char *address = field_text(answer, "address"), *page = field_text(answer, "page");
    if (address == NULL || page == NULL) {
        (void)error_set(err, -EHOSTDOWN, "mgpud does not listen on TCP, so no browser can reach it");
        return error_hint(err, "start it with --listen 127.0.0.1:9123, or another port if that is in use");
    }
    if (call->is_json) {
        show_json_page(answer, stdout);
        return EXIT_OK;
    }
    (void)printf("%s\n", address);
    if (!call->is_quiet)
        print_next(page);
    if (!options->is_printed_only && has_desktop() && !is_over_ssh())
        open_browser(address);
    return EXIT_OK;
}

const struct command command_web = {
    .name = "web",
    .usage = "[OPTIONS]",
    .help = "Open the web page, logged in as you",
    .tables = { rows },
    .options_size = sizeof(struct web_options),
    .takes_nothing = true,
    .run = run,
};
