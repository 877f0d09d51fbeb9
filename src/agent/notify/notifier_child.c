/* SPDX-License-Identifier: MIT */
/*
 * The order matters: cgroups are entered as root, then root is dropped permanently, and only then is data of
 * the user processed. The contents are passed on standard input, a file in memory. Addresses and URLs never
 * become part of a shell command or an option. A URL often contains a secret, so it is passed in a second
 * such file and not on a command line, which all users of the node could read.
 */
#include "agent/notify/notifier_child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/host/enter_cgroups.h"
#include "agent/host/helper_rights.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/node/daemon_priority.h"
#include "job/notify.h"

#define EXIT_NOT_BEGUN 125
#define EXIT_NOT_FOUND 127
#define NICENESS       10
#define CPU_SECONDS    30
#define FILES_MAX      1024
#define PATH           "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

/* Any status other than 2xx is a failure. Redirects are not followed. */
static const char post_text[] =
    "code=$(curl --silent --show-error --globoff --proto =http,https --max-time 10 --max-redirs 0 --output "
    "/dev/null --write-out '%{http_code}' --user-agent mgpu --header 'Content-Type: application/json' "
    "--header \"Mgpu-Notice: $MGPU_NOTICE\" --data-binary @- --config \"$1\") || exit 1\n"
    "case $code in 2[0-9][0-9]) exit 0 ;; esac\n"
    "echo \"it answered $code\" >&2; exit 1";

static void limit_self(void)
{
    const struct rlimit none = { 0, 0 }, cpu = { CPU_SECONDS, CPU_SECONDS }, files = { FILES_MAX, FILES_MAX };
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setrlimit(RLIMIT_CPU, &cpu);
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
    (void)umask(077);
}

/* No control character gets into a header, whatever the text contains. */
static void append_header(struct buffer *out, const char *name, const char *value)
{
    buffer_printf(out, "%s: ", name);
    for (const char *p = value; *p != '\0'; p++) {
        char c = (unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e ? '?' : *p;
        buffer_append(out, &c, 1);
    }
    buffer_append_text(out, "\n");
}

static void write_mail(const struct message_notify *request, const struct user *user, struct buffer *out)
{
    _cleanup_free_ char *subject = xasprintf("mgpu: %s", request->subject != NULL ? request->subject : "");
    append_header(out, "To", request->to != NULL ? request->to : user->name);
    append_header(out, "Subject", subject);
    append_header(out, "Auto-Submitted", "auto-generated");
    for (size_t i = 0; i < request->env.count; i++)
        if (strncmp(request->env.items[i], "MGPU_NOTICE=", 12) == 0)
            append_header(out, "X-Mgpu-Notice", request->env.items[i] + 12);
    append_header(out, "MIME-Version", "1.0");
    append_header(out, "Content-Type", "text/plain; charset=utf-8");
    append_header(out, "Content-Transfer-Encoding", "8bit");
    buffer_printf(out, "\n%s", request->body != NULL ? request->body : "");
}

static int open_input(const struct buffer *text, struct error *err)
{
    int fd = memfd_create("mgpu-notice", 0);
    int r = fd < 0 ? -errno : write_all(fd, text->bytes, text->length);
    if (r == 0 && (lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0))
        r = -errno;
    if (fd > STDIN_FILENO)
        (void)close(fd);
    return r < 0 ? error_set_errno(err, r, "cannot store the message") : 0;
}

/* In a file of curl's options, kept in memory. The caller frees its path, which is also valid in children. */
static int write_config(const char *url, char **ret_path, struct error *err)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    buffer_append_text(&text, "url = \"");
    for (const char *p = url; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20)
            return error_set(err, -EINVAL, "the URL contains a control character");
        if (*p == '"' || *p == '\\')
            buffer_append_text(&text, "\\");
        buffer_append(&text, p, 1);
    }
    buffer_append_text(&text, "\"\n");
    int fd = memfd_create("mgpu-url", 0);
    int r = fd < 0 ? -errno : write_all(fd, text.bytes, text.length);
    if (r < 0)
        return error_set_errno(err, r, "cannot store the URL");
    *ret_path = xasprintf("/proc/self/fd/%d", fd);
    return 0;
}

static char **make_env(const struct message_notify *request, const struct user *user)
{
    struct strings env = { 0 };
    strings_add(&env, PATH);
    strings_take(&env, xasprintf("HOME=%s", user->home));
    strings_take(&env, xasprintf("SHELL=%s", user->shell));
    strings_take(&env, xasprintf("USER=%s", user->name));
    strings_take(&env, xasprintf("LOGNAME=%s", user->name));
    strings_take(&env, xasprintf("MGPU_USER=%s", user->name));
    for (size_t i = 0; i < request->env.count; i++)
        strings_add(&env, request->env.items[i]);
    char **list = xcalloc(env.count + 1, sizeof(*list));
    for (size_t i = 0; i < env.count; i++)
        list[i] = env.items[i];
    return list; // never freed: this process ends or executes another program
}

static int execute(const struct notifiers_options *options, const struct message_notify *request,
    const struct user *user, struct error *err)
{
    _cleanup_buffer_ struct buffer input = { 0 };
    char shell[] = "/bin/sh", text[] = "-c", post[sizeof(post_text)], *to = request->to;
    char *sendmail = xstrdup(options->sendmail), recipients[] = "-t", dots[] = "-oi";
    char *const mail[] = { sendmail, recipients, dots, NULL };
    char *const command[] = { shell, text, to, NULL };
    char *config = NULL;
    if (request->way == NOTIFY_URL && to != NULL && write_config(to, &config, err) < 0)
        return err->code;
    char *const url[] = { shell, text, post, shell, config, NULL };
    char *const *const ways[] = { [NOTIFY_MAIL] = mail, [NOTIFY_COMMAND] = command, [NOTIFY_URL] = url };
    memcpy(post, post_text, sizeof(post_text));
    if (request->way > NOTIFY_URL || (request->way != NOTIFY_MAIL && to == NULL))
        return error_set(err, -EPROTO, "unknown kind of recipient");
    if (request->way == NOTIFY_MAIL)
        write_mail(request, user, &input);
    else
        buffer_append_text(&input, request->json != NULL ? request->json : "{}");
    int r = open_input(&input, err);
    if (r < 0)
        return r;
    if (chdir(user->home) < 0 && chdir("/") < 0)
        return error_set_errno(err, -errno, "cannot enter %s", user->home);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execve(ways[request->way][0], ways[request->way], make_env(request, user));
    if (request->way == NOTIFY_MAIL && errno == ENOENT)
        return error_set(err, -ENOENT, "cannot send mail: this node has no %s", sendmail);
    return error_set_errno(err, -errno, "cannot execute %s", ways[request->way][0]);
}

int notifier_child_run(const struct notifiers_options *options, const struct message_notify *request,
    const struct launch_spec *spec)
{
    struct error err = { 0 };
    struct user user = { 0 };
    helper_enter(request->way == NOTIFY_URL ? HELPER_POST : HELPER_TELL);
    (void)setsid();
    (void)dup2(CHILD_FD, STDERR_FILENO);
    int r = enter_cgroups(spec, &err);
    if (r == 0 && (r = daemon_priority_drop()) < 0)
        r = error_set_errno(&err, r, "cannot reset its OOM score");
    if (r == 0)
        r = job_user_find(&options->users, request->uid, request->user, &user, &err);
    if (r == 0) {
        limit_self();
        r = job_user_become(&user, request->gid, &err);
    }
    if (r == 0)
        r = execute(options, request, &user, &err);
    (void)dprintf(STDERR_FILENO, "%s\n", err.message);
    return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_BEGUN;
}
