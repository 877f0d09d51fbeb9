/* SPDX-License-Identifier: MIT */
/* mgpu web: prints a one-time address of the web page, and opens it if there is a desktop. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/term/browser.h"
#include "cli/verbs/verbs.h"

#define LEADING_FILE "mgpu-web.html"
#define NO_LOGIN     "4294967295" // in /proc/self/loginuid
#define LOGIN_MAX    32

struct web_options {
    const char *host, *browser_user;
    bool is_printed_only;
};

static const struct option_row rows[] = {
    { 'n', "no-browser", NULL, "only print the address",
        OPTION_INNER(flag, struct web_options, is_printed_only) },
    { 0, "host", "HOST", "address of this machine for a browser elsewhere (its host name)",
        OPTION_INNER(text, struct web_options, host) },
    { 0, "browser-user", "USER", "user on this machine whose browser the address is for (you)",
        OPTION_INNER(text, struct web_options, browser_user) },
    { 0 },
};

static void print_next(const char *page)
{
    bool is_local = strncmp(page, "http://", 7) == 0;
    if (is_local && browser_is_over_ssh())
        browser_print_tunnel((unsigned)strtoul(strrchr(page, ':') + 1, NULL, 10));
    (void)fprintf(stderr,
        "  valid once, for a minute; the browser is then logged in as you for 12 hours (mgpu token list)\n");
    if (!is_local)
        (void)fprintf(stderr,
            "  the browser will warn about the certificate: it is this cluster's own (docs/web.md)\n");
}

/* The user who became root, and whose browser it is: the one who logged in or called sudo. NULL: unknown. The
 * caller frees it. */
static char *user_before_root(void)
{
    _cleanup_buffer_ struct buffer login = { 0 };
    const char *sudo = getenv("SUDO_UID");
    if (geteuid() != 0)
        return NULL;
    if (file_read(AT_FDCWD, "/proc/self/loginuid", LOGIN_MAX, &login) >= 0 && login.length > 0) {
        _cleanup_free_ char *text = xstrndup((const char *)login.bytes, login.length);
        text[strcspn(text, "\n")] = '\0';
        if (strcmp(text, NO_LOGIN) != 0)
            return take_ptr(text);
    }
    return sudo != NULL && sudo[0] != '\0' ? xstrdup(sudo) : NULL;
}

static int explain_absence(const json_t *answer, struct error *err)
{
    const char *trouble = field_text(answer, "trouble");
    if (trouble != NULL) {
        (void)error_set(err, -EHOSTDOWN, "mgpud has no web page now: %s", trouble);
        return error_hint(err, "docs/web.md, \"If the port is taken\"");
    }
    (void)error_set(err, -EHOSTDOWN, "mgpud does not listen on TCP, so no browser can reach it");
    return error_hint(err, "start it with --listen 127.0.0.1:9123, or another port if that is in use");
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct web_options *options = call->options;
    _cleanup_json_ json_t *body = json_object(), *answer = NULL;
    if (options->host != NULL)
        (void)json_object_set_new(body, "host", json_string(options->host));
    _cleanup_free_ char *other = user_before_root();
    const char *browser_user = options->browser_user != NULL ? options->browser_user : other;
    if (browser_user != NULL)
        (void)json_object_set_new(body, "browser_user", json_string(browser_user));
    int r = client_call(&call->client, "POST", API_PATH "/logins", body, &answer, err);
    if (r < 0)
        return r;
    const char *address = field_text(answer, "address"), *page = field_text(answer, "page");
    if (address == NULL || page == NULL)
        return explain_absence(answer, err);
    if (call->is_json) {
        show_json_page(answer, stdout);
        return EXIT_OK;
    }
    (void)printf("%s\n", address);
    if (!call->is_quiet)
        print_next(page);
    if (!options->is_printed_only && browser_is_here())
        browser_open(LEADING_FILE, address);
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
