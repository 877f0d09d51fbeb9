/* SPDX-License-Identifier: MIT */
/*
 * Every option of submit is given values of the wrong type, out of range, or with a wrong unit. A new option
 * needs a row here.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"
#include "unit_test.h"

#define VALUES_MAX 12

static const struct {
    const char *name; // of the option
    const char *bad[VALUES_MAX];
} rows[] = {
    { "gpus",
        { "", "two", "-1", "1.5", "0.0001", "2:", "0:h200", "0,1", "2x", "1025", "99999999999999999999" } },
    { "gpu-ids", { "", "x", "0,,1", "3-1", "0,0", "0-", "256", "n:", "99999999999999999999" } },
    { "node-gpu-ids", { "", "x", "0,,1" } },
    { "gpu-allow", { "", "x", "3-1", "256", "0,0", "1;2" } },
    { "gpu-mem", { "", "x", "8Q", "-1", "8 G", "G", "99999999999999999999G" } },
    { "mem", { "", "x", "8Q" } },
    { "cpus", { "", "x", "0", "-1", "65537", "4c", "1.2345", "99999999999999999999" } },
    { "ram", { "", "x", "8Q", "-1", "99999999999999999999G" } },
    { "log-max", { "", "x", "8Q", "-1", "99999999999999999999G" } },
    { "nodes", { "", "x", "0", "-1", "1025", "1.5", "1-2", "99999999999999999999" } },
    { "gpus-per-node", { "", "x", "0", "-1", "1025", "1.5" } },
    { "time", { "", "x", "0", "-5", "4y", "1:2:3:4", "99999999999999999999" } },
    { "partition", { "", "\xff" } },
    { "nodelist", { "", "\xff", "n[1", "n[2-1]" } },
    { "exclude", { "", "\xff", "n[1", "n[]" } },
    { "time-limit", { "", "x", "0" } },
    { "priority", { "", "x", "1001", "-1001", "1.5", "1k" } },
    { "begin", { "", "soon", "25:00", "+2y", "2026-13-01", "2026-02-30", "18" } },
    { "deadline", { "", "soon", "25:00", "+2y", "2026-13-01" } },
    { "array", { "", "x", "5-1", "0-9%x", "0-9%0", "0-9:0", "1,1", "0-100001", "-1" } },
    { "after", { "41:maybe", "41:" } },
    { "tty-idle", { "", "x", "0", "-5", "4y" } },
    { "idle-timeout", { "", "x", "0", "-5", "4y" } },
    { "signal", { "", "x", "USR1@", "NOSUCH@60", "USR1@x", "999" } },
    { "grace", { "", "x", "-5", "4y" } },
    { "on-timeout", { "", "x", "parked", "killed" } },
    { "on-preempt", { "", "x", "kill", "parked" } },
    { "requeue-on", { "", "x", "node-los", "node-lost,none" } },
    { "max-requeues", { "", "x", "-1", "1.5", "99999999999999999999" } },
    { "retry", { "", "x", "-1", "1.5", "99999999999999999999" } },
    { "retry-on", { "", "x", "256", "-1", "1,,2", "1;2" } },
    { "share", { "", "MPS", "0.5", "mig", "auto,mps" } },
    { "retry-oom", { "", "x", "1", "x11", "nan", "x2,", "x2,80G", "x2,max=8Q" } },
    { "notify", { "", "mail:", "mail:a b", "mailto:ana", "ftp://h/x", "http://", "https://h/a b", "a\nb" } },
    { "notify-on", { "", "x", "end,", "ends", "END" } },
    { "name", { "\xff" } },
    { "chdir", { "\xff" } },
    { "chdir-fallback", { "", "here", "./x", "Home", "/\xff" } },
    { "env", { "", "NAME", "=VALUE" } },
    { "env-file", { "", "/nowhere/env", "/tmp" } },
    { "export", { "", "A=b", "1x", "all,A", "A,,B", "THERE_IS_NO_SUCH_VARIABLE" } },
    { "module", { "" } },
    { "conda", { "" } },
    { "venv", { "" } },
    { "setup", { "\xff" } },
    { "image", { "", "-v", "--privileged", "a b", "a\nb", "\xff" } },
    { "image-mount",
        { "", "data:/data", "/a:b", "/a:/", "/a:/b:no", "/a:/b:ro:x", "/a,b:/c", "/a", "/a:/b", "/a\n:/b" } },
    { "image-runtime", { "", "docker", "Podman", "--podman" } },
    { "env-setup-cmd", { "\xff" } },
    { "output", { "\xff" } },
    { "error", { "\xff" } },
    { "input", { "\xff" } },
    { "n", { "", "4", "x" } },
    { "file", { "", "/nowhere/jobs", "/tmp" } },
    { "sweep", { "", "x", "=1", "1x=1", "x=", "x=1,,2", "x=3-1", "x=0-1000", "MGPU_X=1", "x=\xff" } },
};

/* Reads the words as submit does, and makes the plan; nothing is sent, as there is nobody to send it to. */
static int read_option(const char *option, const char *value, char *ret_message, size_t size)
{
    char program[] = "submit", quiet[] = "-q", socket[] = "--socket", nowhere[] = "/nowhere/mgpud.sock";
    char command[] = "true";
    char *argv[] = { program, quiet, socket, nowhere, NULL, NULL, NULL };
    int argc = 4;
    struct call call = { 0 };
    /* The message is what the program says on standard error. */
    FILE *said = tmpfile();
    int saved = dup(STDERR_FILENO);
    argv[argc++] = (char *)(uintptr_t)option;
    if (value != NULL)
        argv[argc++] = (char *)(uintptr_t)value;
    bool has_command = strncmp(option, "--file", 6) != 0;
    _cleanup_free_ char **words = xcalloc((size_t)argc + 2, sizeof(char *));
    memcpy(words, argv, (size_t)argc * sizeof(char *));
    if (has_command && value != NULL)
        words[argc++] = command;
    (void)fflush(stderr);
    assert_true(dup2(fileno(said), STDERR_FILENO) >= 0);
    int status = call_run(&call, &command_submit, argc, words);
    (void)fflush(stderr);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    rewind(said);
    ret_message[fread(ret_message, 1, size - 1, said)] = '\0';
    (void)fclose(said);
    return status;
}

/* Is it the option's name that the sentence says, or another name of it? */
static bool names_option(const char *message, const struct option_row *wanted)
{
    for (size_t t = 0; command_submit.tables[t] != NULL; t++)
        for (const struct option_row *row = command_submit.tables[t]; row->name != NULL; row++) {
            char letter[4], name[64];
            (void)snprintf(letter, sizeof(letter), "-%c", row->letter);
            (void)snprintf(name, sizeof(name), "--%s", row->name);
            if (options_are_same(row, wanted) &&
                (strstr(message, name) != NULL || (row->letter != 0 && strstr(message, letter) != NULL)))
                return true;
        }
    return false;
}

static void refuses(const struct option_row *row, const char *option, const char *value)
{
    char message[2048];
    int status = read_option(option, value, message, sizeof(message));
    if (status == 0 || status == 5 || !names_option(message, row))
        fail_msg("%s '%s': exit %d: %s", option, value == NULL ? "" : value, status, message);
}

static void check_row(const struct option_row *row)
{
    _cleanup_free_ char *option = xasprintf("--%s", row->name);
    _cleanup_free_ char *joined = xasprintf("--%s=x", row->name);
    if (row->argument == NULL) {
        refuses(row, joined, NULL);
        return;
    }
    refuses(row, option, NULL);
    size_t i = 0;
    while (i < sizeof(rows) / sizeof(rows[0]) && strcmp(rows[i].name, row->name) != 0)
        i++;
    if (i == sizeof(rows) / sizeof(rows[0]))
        fail_msg("--%s has no row in this test: values that it must refuse", row->name);
    for (size_t k = 0; k < VALUES_MAX && rows[i].bad[k] != NULL; k++)
        refuses(row, option, rows[i].bad[k]);
}

TEST(every_option_refuses_what_is_wrong_and_says_which_it_is)
{
    for (size_t t = 0; command_submit.tables[t] != NULL; t++)
        for (const struct option_row *row = command_submit.tables[t]; row->name != NULL; row++)
            check_row(row);
}

TEST(every_row_here_is_an_option)
{
    struct call call = { .command = &command_submit };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_non_null(call_find_option(&call, rows[i].name));
}
