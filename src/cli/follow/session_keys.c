/* SPDX-License-Identifier: MIT */
/* Input typed in a session: bytes for the other side, and keys for mgpu itself. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/api/leaving_signals.h"
#include "cli/api/programs.h"
#include "cli/follow/session_private.h"
#include "cli/show/job_columns.h"

static void show_status(struct session *session)
{
    char ran[32] = "";
    _cleanup_json_ json_t *job = NULL;
    struct error err = { 0 };
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", session->options->job);
    if (client_get(&session->call->client, path, &job, &err) < 0) {
        session_say(err.message);
        return;
    }
    _cleanup_free_ char *name = field_shown(job, "name");
    _cleanup_free_ char *where = job_where(job);
    format_duration((int64_t)(field_number(job, "run_seconds", 0) * 1000), ran, sizeof(ran));
    _cleanup_free_ char *line = xasprintf(
        "[mgpu: job %s (%s) %s for %s on %s]", session->options->job, name, job_state_shown(job), ran, where);
    session_say(line);
}

static void show_log(struct session *session)
{
    _cleanup_free_ char *command =
        xasprintf("\"$0\" logs --raw %s | ${MGPU_PAGER:-${PAGER:-less -R}}", session->options->job);
    raw_terminal_restore(&session->raw);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        _cleanup_free_ char *program = program_find("mgpu");
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        leaving_restore_unread();
        if (client_export(&session->call->client) < 0)
            _exit(127);
        (void)execl("/bin/sh", "sh", "-c", command, program, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    raw_terminal_set(&session->raw);
    session_put_size(session);
}

static void ask_to_cancel(struct session *session)
{
    _cleanup_free_ char *line =
        xasprintf("[mgpu: cancel job %s? y to cancel, any other key to continue]", session->options->job);
    session_say(line);
    session->is_asking = true;
}

static void on_answer(struct session *session, uint8_t key)
{
    session->is_asking = false;
    if (key != 'y' && key != 'Y') {
        session_say("[mgpu: not cancelled]");
        return;
    }
    struct error err = { 0 };
    _cleanup_json_ json_t *body = json_object();
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/cancel", session->options->job);
    if (client_call(&session->call->client, "POST", path, body, NULL, &err) < 0)
        session_say(err.message);
    else
        session_say("[mgpu: the job is stopping]");
}

static void show_help(struct session *session)
{
    session_say(
        "[mgpu: Ctrl-] and then  d detach · k cancel the job · l its output in a pager · s its state ·\r\n"
        "       ? this help · Ctrl-] sends Ctrl-]]");
}

void session_detach(struct session *session)
{
    session_finish(session, SESSION_DETACHED);
}

static void (*const key_acts[])(struct session *session) = {
    [KEY_DETACH] = session_detach,
    [KEY_CANCEL] = ask_to_cancel,
    [KEY_LOG] = show_log,
    [KEY_STATUS] = show_status,
    [KEY_HELP] = show_help,
};

static void on_key(struct session *session, uint8_t key)
{
    uint8_t out[DETACH_KEYS_MAX + 1];
    size_t length = 0;
    if (session->is_asking) {
        on_answer(session, key);
        return;
    }
    enum key_action action = detach_keys_feed(&session->keys, key, out, &length);
    if (action == KEY_WAIT || detach_keys_are_waiting(&session->keys))
        session->keys_ms = clock_boot_ms() + DETACH_KEYS_WAIT_MS;
    if (action == KEY_PASS && length > 0 && !session->options->is_read_only)
        session_put_frame(session, TERMINAL_INPUT, out, length);
    else if (action > KEY_WAIT)
        key_acts[action](session);
}

/* Most input that is typed or pasted contains no special key and is sent as one frame. */
static void take_keys(struct session *session, const uint8_t *bytes, size_t length)
{
    const struct detach_keys *keys = &session->keys;
    bool is_plain = !session->is_asking && !detach_keys_are_waiting(keys) &&
                    (keys->length == 0 || memchr(bytes, keys->sequence[0], length) == NULL);
    if (is_plain && !session->options->is_read_only)
        session_put_frame(session, TERMINAL_INPUT, bytes, length);
    for (size_t i = 0; !is_plain && i < length && !session->is_over; i++)
        on_key(session, bytes[i]);
}

void session_on_stdin(struct session *session)
{
    uint8_t bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        session->is_stdin_over = true;
        session_put_frame(session, TERMINAL_INPUT_END, "", 0);
        return;
    }
    session->keyed += (uint64_t)n;
    if (session->raw.is_set) {
        take_keys(session, bytes, (size_t)n);
    } else {
        session_put_frame(session, TERMINAL_INPUT, bytes, (size_t)n);
    }
}

void session_expire_keys(struct session *session)
{
    uint8_t out[DETACH_KEYS_MAX + 1];
    size_t length = 0;
    if (!detach_keys_are_waiting(&session->keys) || clock_boot_ms() < session->keys_ms)
        return;
    detach_keys_expire(&session->keys, out, &length);
    if (!session->options->is_read_only)
        session_put_frame(session, TERMINAL_INPUT, out, length);
}
