/* SPDX-License-Identifier: MIT */
/* Each update is built in memory and then written over the old one, to avoid flickering. The keys that end or
 * stop the program are read as bytes, so the terminal has been restored when they take effect. */
#include "cli/follow/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parse.h"
#include "cli/term/raw_terminal.h"

#define INTERVAL_MS     2000
#define INTERVAL_MIN_MS 100

int watch_parse(const char *value, int64_t *ret_ms, struct error *err)
{
    int64_t ms = INTERVAL_MS;
    int r = value == NULL ? 0 : parse_duration(value, "-w", &ms, err);
    if (r < 0)
        return r;
    if (ms < INTERVAL_MIN_MS || ms > INT32_MAX)
        return error_set(err, -ERANGE, "-w: %s is not between 0.1 seconds and 24 days", value);
    *ret_ms = ms;
    return 0;
}

/* Moves to the top, clears the rest of every line, then the rest of the screen. */
static void paint(const char *picture, bool is_tty)
{
    if (is_tty)
        (void)fputs("\033[H", stdout);
    for (const char *line = picture; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        (void)printf("%.*s%s\n", (int)length, line, is_tty ? "\033[K" : "");
        line += length + (line[length] == '\n');
    }
    (void)fputs(is_tty ? "\033[J" : "\n", stdout);
    (void)fflush(stdout);
}

/* Maps a key's byte to its effect as a signal; 0 ends. */
static const struct {
    char byte;
    int signal;
} keys[] = { { 'q', 0 }, { 'Q', 0 }, { '\3', SIGINT }, { '\34', SIGQUIT }, { '\32', SIGTSTP } };

static struct raw_terminal *taken; // set by take_keys; read by on_term

/* A program that is ended from outside also restores the terminal. */
static void on_term(int signal)
{
    raw_terminal_restore(taken);
    (void)raise(signal); // the default, by SA_RESETHAND
}

static void restore_at_term(struct raw_terminal *raw)
{
    struct sigaction before;
    const struct sigaction action = { .sa_handler = on_term, .sa_flags = (int)SA_RESETHAND };
    taken = raw;
    if (sigaction(SIGTERM, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        (void)sigaction(SIGTERM, &action, NULL);
}

static void take_keys(struct raw_terminal *raw)
{
    raw_terminal_set_keys(raw);
    struct termios modes;
    if (!raw->is_set || tcgetattr(STDIN_FILENO, &modes) < 0)
        return;
    modes.c_lflag &= ~(tcflag_t)ISIG;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
}

/* True if a key or the end of the terminal ends it. */
static bool is_over(struct raw_terminal *raw, char byte)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (byte != keys[i].byte)
            continue;
        raw_terminal_restore(raw);
        if (keys[i].signal == 0)
            return true;
        (void)raise(keys[i].signal);
        take_keys(raw); // continued
    }
    return false;
}

/* True if the user has ended it. */
static bool wait_for_key(struct raw_terminal *raw, int64_t ms)
{
    struct pollfd input = { .fd = raw->is_set ? STDIN_FILENO : -1, .events = POLLIN };
    char byte = 0;
    if (poll(&input, 1, (int)ms) <= 0)
        return false;
    return read(STDIN_FILENO, &byte, 1) <= 0 || is_over(raw, byte);
}

/* Returns a negative errno on failure. */
static int show_once(watch_show_fn show, void *arg, bool is_tty, struct error *err)
{
    _cleanup_free_ char *picture = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&picture, &size);
    if (memory == NULL)
        return error_set_errno(err, -errno, "cannot draw the screen");
    int r = show(arg, memory, err);
    (void)fclose(memory);
    if (r < 0)
        return r;
    paint(picture, is_tty);
    return ferror(stdout) == 0 ? 0 : error_set(err, -EIO, "cannot write the output");
}

int watch_run(struct call *call, int64_t interval_ms, watch_show_fn show, void *arg, struct error *err)
{
    bool is_tty = isatty(STDOUT_FILENO) == 1;
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    if (is_tty)
        (void)fputs("\033[2J", stdout);
    static struct raw_terminal raw; // for on_term, whenever it is called
    if (is_tty) {
        take_keys(&raw);
        restore_at_term(&raw);
    }
    int r;
    do {
        r = show_once(show, arg, is_tty, err);
    } while (r >= 0 && !wait_for_key(&raw, interval_ms));
    raw_terminal_restore(&raw);
    return r < 0 ? r : 0;
}
