/* SPDX-License-Identifier: MIT */
/* Each test forks the reader, because it gives its identity up. As root it becomes "nobody", else ourselves.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/attach/log_reader.h"
#include "base/memory.h"
#include "unit_test.h"

#define NOBODY 65534

static char dir_path[] = "/tmp/mgpu-log-XXXXXX";
static char log_path[64];
static uid_t owner;
static struct job_users users = { .node = "box" };

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
static const char *replacement; // takes the place of the log once it is open

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (replacement != NULL && rename(replacement, path) < 0)
        return -1;
    return __real_inotify_add_watch(fd, path, mask);
}

struct reader {
    pid_t pid;
    int fd;
    struct message_stream head;
    struct buffer bytes; // after the head
};

static void write_log(const char *text, int flags)
{
    int fd = open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

/* In the reader: one more file can be opened, which is the log. */
static void leave_one_descriptor(void)
{
    int next = dup(STDERR_FILENO);
    (void)close(next);
    (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)next + 1, (rlim_t)next + 1 });
}

static void start_with(struct reader *reader, const struct message_open_log *request, void (*prepare)(void))
{
    int pair[2];
    *reader = (struct reader){ 0 };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    reader->pid = fork();
    assert_true(reader->pid >= 0);
    if (reader->pid == 0) {
        (void)close(pair[0]);
        if (prepare != NULL)
            prepare();
        _exit(log_reader_serve(pair[1], &users, request));
    }
    (void)close(pair[1]);
    reader->fd = pair[0];
}

static void start(struct reader *reader, const struct message_open_log *request)
{
    start_with(reader, request, NULL);
}

/* Receives until `wanted` bytes after the head are there, or the end. */
static void receive(struct reader *reader, size_t wanted)
{
    char chunk[4096];
    uint16_t id;
    size_t length = 0;
    for (;;) {
        if (reader->head.stream == 0 &&
            record_peek(reader->bytes.bytes, reader->bytes.length, 65536, &id, &length) == 0 && length > 0 &&
            length <= reader->bytes.length) {
            assert_int_equal(
                record_decode(&message_stream_record, reader->bytes.bytes, length, &reader->head, NULL), 0);
            reader->bytes.length -= length;
            memmove(reader->bytes.bytes, reader->bytes.bytes + length, reader->bytes.length);
        }
        if (reader->head.stream != 0 && reader->bytes.length >= wanted)
            return;
        ssize_t n = read(reader->fd, chunk, sizeof(chunk));
        assert_true(n >= 0);
        if (n == 0)
            return;
        buffer_append(&reader->bytes, chunk, (size_t)n);
    }
}

/* Receives what is left and checks all of it. */
static void finish(struct reader *reader, const char *bytes)
{
    int status;
    receive(reader, SIZE_MAX);
    assert_string_equal(buffer_text(&reader->bytes), bytes);
    assert_int_equal(waitpid(reader->pid, &status, 0), reader->pid);
    assert_true(WIFEXITED(status));
    (void)close(reader->fd);
    record_clear(&message_stream_record, &reader->head);
    buffer_clear(&reader->bytes);
}

static struct message_open_log request_for(uint64_t offset, uint64_t length, uint32_t follow)
{
    return (struct message_open_log){ .stream = 9,
        .uid = owner,
        .gid = owner,
        .path = log_path,
        .offset = offset,
        .length = length,
        .follow = follow };
}

TEST(a_log_is_sent_whole_with_its_size_first)
{
    struct reader reader;
    struct message_open_log request = request_for(0, 0, 0);
    write_log("hello\nworld\n", O_TRUNC);
    start(&reader, &request);
    receive(&reader, 0);
    assert_int_equal(reader.head.stream, 9);
    assert_int_equal(reader.head.error, 0);
    assert_int_equal(reader.head.size, 12);
    finish(&reader, "hello\nworld\n");
}

TEST(a_range_is_sent_exactly)
{
    struct reader reader;
    struct message_open_log request = request_for(6, 3, 0), beyond = request_for(100, 3, 0);
    write_log("hello\nworld\n", O_TRUNC);
    start(&reader, &request);
    finish(&reader, "wor");
    start(&reader, &beyond);
    finish(&reader, "");
}

TEST(following_sends_what_is_appended_until_the_other_side_shuts_down)
{
    struct reader reader;
    struct message_open_log request = request_for(0, 0, 1);
    write_log("one\n", O_TRUNC);
    start(&reader, &request);
    receive(&reader, 4);
    write_log("two\n", O_APPEND);
    receive(&reader, 8);
    write_log("three\n", O_APPEND);
    assert_int_equal(shutdown(reader.fd, SHUT_WR), 0);
    finish(&reader, "one\ntwo\nthree\n");
}

TEST(following_needs_no_inotify_instance)
{
    struct reader reader;
    struct message_open_log request = request_for(0, 0, 1);
    write_log("one\n", O_TRUNC);
    start_with(&reader, &request, leave_one_descriptor);
    receive(&reader, 4);
    write_log("two\n", O_APPEND);
    receive(&reader, 8);
    write_log("three\n", O_APPEND);
    assert_int_equal(shutdown(reader.fd, SHUT_WR), 0);
    finish(&reader, "one\ntwo\nthree\n");
}

TEST(a_reader_whose_controller_has_gone_ends)
{
    int status;
    struct reader reader;
    struct message_open_log request = request_for(0, 0, 1);
    write_log("one\n", O_TRUNC);
    start(&reader, &request);
    receive(&reader, 4);
    (void)close(reader.fd);
    assert_int_equal(waitpid(reader.pid, &status, 0), reader.pid);
    record_clear(&message_stream_record, &reader.head);
    buffer_clear(&reader.bytes);
}

static void expect_refusal(const struct message_open_log *request, int error, const char *words)
{
    struct reader reader;
    start(&reader, request);
    receive(&reader, 0);
    assert_int_equal(reader.head.error, error);
    assert_non_null(reader.head.text);
    assert_non_null(strstr(reader.head.text, words));
    finish(&reader, "");
}

/* Else it would wait for what is appended to another file. */
TEST(a_log_that_is_replaced_while_it_is_opened_is_not_followed)
{
    char other[80];
    struct message_open_log request = request_for(0, 0, 1);
    assert_int_equal(chown(dir_path, owner, (gid_t)-1), 0);
    write_log("one\n", O_TRUNC);
    (void)snprintf(other, sizeof(other), "%s.new", log_path);
    int fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
    (void)close(fd);
    replacement = other;
    expect_refusal(&request, ESTALE, "was replaced");
    replacement = NULL;
}

TEST(a_symbolic_link_is_refused)
{
    struct message_open_log request = request_for(0, 0, 0);
    (void)unlink(log_path);
    assert_int_equal(symlink("/dev/null", log_path), 0); // a test that fails leaves the link behind
    expect_refusal(&request, ELOOP, "symbolic link");
    (void)unlink(log_path);
}

TEST(a_file_of_another_user_is_refused)
{
    struct message_open_log request = request_for(0, 0, 0);
    char path[] = "/etc/passwd";
    if (owner == 0)
        skip();
    request.path = path;
    expect_refusal(&request, EPERM, "belongs to uid 0");
}

TEST(a_file_that_only_root_may_read_is_refused)
{
    struct message_open_log request = request_for(0, 0, 0);
    if (geteuid() != 0)
        skip();
    write_log("secret", O_TRUNC);
    assert_int_equal(chown(log_path, 0, 0), 0);
    expect_refusal(&request, EACCES, "Permission denied");
    (void)unlink(log_path);
}

TEST(what_is_no_regular_file_is_refused)
{
    struct message_open_log request = request_for(0, 0, 0);
    (void)unlink(log_path);
    assert_int_equal(mkfifo(log_path, 0600), 0);
    assert_int_equal(chown(log_path, owner, (gid_t)-1), 0);
    expect_refusal(&request, EINVAL, "not a regular file");
    (void)unlink(log_path);
    expect_refusal(&request, ENOENT, "No such file");
}

/* Whatever a controller asks: its word alone opens none of root's files. */
TEST(a_log_of_root_is_refused_where_root_has_no_jobs)
{
    static char shadow[] = "/etc/shadow";
    struct message_open_log request = request_for(0, 0, 0);
    if (geteuid() != 0)
        skip();
    request.uid = 0;
    request.path = shadow;
    expect_refusal(&request, EPERM, "jobs of root are not allowed on node box");
}

TEST(a_log_of_root_is_read_where_root_may_have_jobs)
{
    struct reader reader;
    struct message_open_log request = request_for(0, 0, 0);
    if (geteuid() != 0)
        skip();
    write_log("root's\n", O_TRUNC);
    assert_int_equal(chown(log_path, 0, 0), 0);
    request.uid = 0;
    users.is_root_job_allowed = true;
    start(&reader, &request);
    finish(&reader, "root's\n");
    users.is_root_job_allowed = false;
    assert_int_equal(unlink(log_path), 0);
}

TEST(a_relative_path_is_refused)
{
    struct message_open_log request = request_for(0, 0, 0);
    char path[] = "x.log";
    request.path = path;
    expect_refusal(&request, EINVAL, "not absolute");
}

int main(void)
{
    owner = geteuid() == 0 ? NOBODY : geteuid();
    users.is_root = geteuid() == 0;
    if (mkdtemp(dir_path) == NULL || chmod(dir_path, 0755) < 0)
        return EXIT_FAILURE;
    (void)snprintf(log_path, sizeof(log_path), "%s/job.log", dir_path);
    int failed = unit_tests_run(NULL, NULL);
    (void)unlink(log_path);
    (void)rmdir(dir_path);
    return failed;
}
