/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/slow_work.h"
#include "unit_test.h"

struct reader {
    int fd;    // reads what is written on standard error
    int saved; // standard error of the test
    char text[1000];
};

static void take_stderr(struct reader *reader, int write_fd)
{
    (void)fflush(stderr);
    reader->saved = dup(STDERR_FILENO);
    assert_true(dup2(write_fd, STDERR_FILENO) >= 0);
    (void)close(write_fd);
    assert_int_equal(fcntl(reader->fd, F_SETFL, O_NONBLOCK), 0);
}

static void take_pipe(struct reader *reader)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    *reader = (struct reader){ .fd = fds[0] };
    take_stderr(reader, fds[1]);
}

static void take_terminal(struct reader *reader)
{
    int secondary;
    *reader = (struct reader){ 0 };
    assert_int_equal(openpty(&reader->fd, &secondary, NULL, NULL, NULL), 0);
    take_stderr(reader, secondary);
}

/* Everything written since the last call. */
static const char *said(struct reader *reader)
{
    (void)fflush(stderr);
    ssize_t n = read(reader->fd, reader->text, sizeof(reader->text) - 1);
    reader->text[n > 0 ? n : 0] = '\0';
    return reader->text;
}

static void give_back(struct reader *reader)
{
    (void)fflush(stderr);
    (void)dup2(reader->saved, STDERR_FILENO);
    (void)close(reader->saved);
    (void)close(reader->fd);
}

/* As if so much time had passed. */
static void pass(struct slow_work *work, int64_t ms)
{
    work->since_ms -= ms;
    work->next_ms -= ms;
}

TEST(on_a_terminal_one_line_is_rewritten_and_removed)
{
    struct slow_work work;
    struct reader reader;
    take_terminal(&reader);
    slow_work_begin(&work, SLOW_WORK_PERSON, NULL);
    slow_work_step(&work, "copying", 1, 4);
    assert_string_equal(said(&reader), "");
    pass(&work, 3000);
    slow_work_step(&work, "copying", 1, 4);
    assert_string_equal(said(&reader), "\r\033[Kcopying: 25%, 3s");
    slow_work_step(&work, "copying", 2, 4); // too soon for another
    assert_string_equal(said(&reader), "");
    pass(&work, 1000);
    slow_work_step(&work, "checking", 0, 0);
    assert_string_equal(said(&reader), "\r\033[Kchecking: 4s");
    slow_work_end(&work);
    assert_string_equal(said(&reader), "\r\033[K");
    give_back(&reader);
}

TEST(elsewhere_a_person_gets_a_line_each_ten_seconds)
{
    struct slow_work work;
    struct reader reader;
    take_pipe(&reader);
    slow_work_begin(&work, SLOW_WORK_PERSON, NULL);
    pass(&work, 9000);
    slow_work_step(&work, "copying", 1, 4);
    assert_string_equal(said(&reader), "");
    pass(&work, 2000);
    slow_work_step(&work, "copying", 2, 4);
    assert_string_equal(said(&reader), "copying: 50%, 11s\n");
    pass(&work, 9000);
    slow_work_step(&work, "copying", 3, 4);
    assert_string_equal(said(&reader), "");
    pass(&work, 2000);
    slow_work_step(&work, "copying", 9, 4); // it has grown
    assert_string_equal(said(&reader), "copying: 100%, 22s\n");
    slow_work_end(&work);
    assert_string_equal(said(&reader), "");
    give_back(&reader);
}

TEST(a_short_one_says_nothing_anywhere)
{
    for (enum slow_work_reader who = SLOW_WORK_PERSON; who <= SLOW_WORK_LOG; who++) {
        struct slow_work work;
        struct reader reader;
        take_terminal(&reader);
        slow_work_begin(&work, who, "ready");
        pass(&work, SLOW_WORK_PATIENT_MS - 500);
        slow_work_step(&work, "copying", 1, 4);
        slow_work_end(&work);
        const char *text = said(&reader);
        give_back(&reader);
        assert_string_equal(text, "");
    }
}

TEST(a_daemon_logs_it_and_gets_more_time_for_its_start)
{
    char folder[] = "/tmp/mgpu-slow-XXXXXX", text[300];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct slow_work work;
    struct reader reader;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", folder);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    (void)setenv("NOTIFY_SOCKET", address.sun_path, 1);
    take_pipe(&reader);
    slow_work_begin(&work, SLOW_WORK_LOG, "ready");
    pass(&work, 3000);
    slow_work_step(&work, "upgrading", 0, 0);
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    assert_string_equal(text, "STATUS=upgrading: 3s\nEXTEND_TIMEOUT_USEC=60000000");
    assert_non_null(strstr(said(&reader), "upgrading: 3s\n"));
    pass(&work, 1000);
    slow_work_end(&work);
    n = recv(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    assert_string_equal(text, "STATUS=ready");
    assert_non_null(strstr(said(&reader), "upgrading: finished after 4s\n"));
    give_back(&reader);
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unlink(address.sun_path);
    (void)rmdir(folder);
    (void)close(fd);
}
