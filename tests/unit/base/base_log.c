/* SPDX-License-Identifier: MIT */
/* The daemons' log: one line per call on standard error, and nothing in it that a user can forge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "unit_test.h"

static char text[4096];
static int saved_stderr, ends[2];

static int redirect(void **state)
{
    memset(text, 0, sizeof(text));
    saved_stderr = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    (void)close(ends[1]);
    return unsetenv("JOURNAL_STREAM");
}

static int restore(void **state)
{
    return close(saved_stderr) | close(ends[0]);
}

#define CASE(name) TEST_WITH(name, redirect, restore)

/* Ends the redirection; the log is in `text`. */
static void collect(void)
{
    assert_true(dup2(saved_stderr, STDERR_FILENO) >= 0);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0;)
        length += (size_t)n;
}

static size_t count_lines(void)
{
    size_t n = 0;
    for (const char *p = text; *p != '\0'; p++)
        n += *p == '\n';
    return n;
}

/* Standard error is the stream that systemd names. */
static void pretend_journal(void)
{
    struct stat error;
    char stream[64];
    assert_int_equal(fstat(STDERR_FILENO, &error), 0);
    (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)error.st_dev, (uintmax_t)error.st_ino);
    assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
}

CASE(a_line_names_the_program_and_its_level)
{
    log_open("mgpud", false);
    log_error("job %d is lost", 7);
    log_info("ready");
    collect();
    assert_non_null(strstr(text, "Z mgpud: error: job 7 is lost\n"));
    assert_non_null(strstr(text, "Z mgpud: ready\n"));
}

CASE(debug_lines_need_verbose)
{
    log_open("mgpud", false);
    log_debug("hidden");
    log_open("mgpud", true);
    log_debug("shown");
    collect();
    assert_null(strstr(text, "hidden"));
    assert_non_null(strstr(text, "shown"));
}

CASE(a_user_cannot_forge_a_line)
{
    log_open("mgpud", false);
    log_warning("name is %s", "a\nerror: all is lost\x1b[31m");
    collect();
    assert_int_equal(count_lines(), 1);
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "warning: name is a\\x0aerror"));
}

CASE(the_journal_gets_a_level_it_understands)
{
    pretend_journal();
    log_open("mgpud", false);
    log_warning("careful");
    collect();
    assert_string_equal(text, "<4>warning: careful\n");
}

/* The variable is inherited by programs whose standard error is a file. */
CASE(a_file_is_no_journal)
{
    assert_int_equal(setenv("JOURNAL_STREAM", "8:1", 1), 0);
    log_open("mgpud", false);
    log_warning("careful");
    collect();
    assert_non_null(strstr(text, "Z mgpud: warning: careful\n"));
}

CASE(lines_of_the_journal_have_fields)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char folder[] = "/tmp/mgpu-log-XXXXXX", got[4096];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    int journald = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(journald, (struct sockaddr *)&address, sizeof(address)), 0);
    pretend_journal();
    log_open("mgpud", false);
    assert_int_equal(log_open_journal(address.sun_path), 0);
    assert_true(log_has_fields());
    log_job(LOG_WARNING, 42, "not\nMGPU_JOB=%d", 43);
    log_node(LOG_INFO, "gpu1", "up");
    log_set_node("gpu2");
    log_info("ready");
    static const char *const wanted[] = {
        "MESSAGE=warning: job 42: not\\x0aMGPU_JOB=43\nPRIORITY=4\nSYSLOG_IDENTIFIER=mgpud\nMGPU_JOB=42\n",
        "MESSAGE=node gpu1: up\nPRIORITY=6\nSYSLOG_IDENTIFIER=mgpud\nMGPU_NODE=gpu1\n",
        "MESSAGE=ready\nPRIORITY=6\nSYSLOG_IDENTIFIER=mgpud\nMGPU_NODE=gpu2\n",
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        ssize_t length = recv(journald, got, sizeof(got) - 1, MSG_DONTWAIT);
        assert_true(length > 0);
        got[length] = '\0';
        assert_string_equal(got, wanted[i]);
    }
    (void)close(journald);
    log_info("journald is away");
    collect();
    assert_string_equal(text, "<6>journald is away\n");
    log_set_node("");
    (void)unlink(address.sun_path);
    (void)rmdir(folder);
}

CASE(a_job_is_named_also_without_a_journal)
{
    log_open("mgpud", false);
    log_job(LOG_ERROR, 7, "is lost on %s", "gpu1");
    log_node(LOG_INFO, "gpu1", "up");
    collect();
    assert_non_null(strstr(text, "Z mgpud: error: job 7: is lost on gpu1\n"));
    assert_non_null(strstr(text, "Z mgpud: node gpu1: up\n"));
}

CASE(a_line_that_is_too_long_is_cut)
{
    char long_text[5000];
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    log_open("mgpud", false);
    log_info("%s", long_text);
    collect();
    assert_int_equal(count_lines(), 1);
    assert_true(strlen(text) < 2200);
}

/* Fills the pipe and takes all out of it again. */
CASE(a_full_pipe_loses_lines_and_says_how_many)
{
    static char line[1000];
    memset(line, 'x', sizeof(line) - 1);
    log_open("mgpud", false);
    (void)alarm(20);              // a write that waits ends the test
    for (int i = 0; i < 200; i++) // 64 KiB is what a pipe holds
        log_info("%s", line);
    (void)alarm(0);
    char held[65536];
    assert_true(read(ends[0], held, sizeof(held)) > 0);
    log_info("after");
    collect();
    assert_non_null(strstr(text, " lines were lost because the log was not read\n"));
    assert_non_null(strstr(text, "Z mgpud: after\n"));
}
