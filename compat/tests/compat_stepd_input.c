/* SPDX-License-Identifier: MIT */
/* The standard input of tasks: slurmstepd with the test in the place of srun. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "compat/stepd/frames.h"
#include "compat/stepd/stepd.h"
#include "unit_test.h"

#define PIECE  65536U
#define UNREAD (66U << 20) // more than slurmstepd takes for a task that does not read

/* A slurmstepd, and what it has said. */
struct peer {
    char *folder;
    pid_t pid;
    int fd;
    struct buffer in;
    size_t taken;
};

static int set_up(void **state)
{
    static struct peer peer;
    int fds[2];
    peer = (struct peer){ .folder = xstrdup("/tmp/mgpu-stepd-XXXXXX") };
    assert_non_null(mkdtemp(peer.folder));
    assert_int_equal(chdir(peer.folder), 0);
    assert_int_equal(mkfifo("gate", 0600), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    peer.pid = fork();
    if (peer.pid == 0) {
        (void)close(fds[0]);
        _exit(stepd_run(fds[1], fds[1]));
    }
    (void)close(fds[1]);
    peer.fd = fds[0];
    *state = &peer;
    return 0;
}

static int tear_down(void **state)
{
    struct peer *peer = *state;
    int status = -1;
    (void)close(peer->fd);
    assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
    assert_int_equal(status, 0);
    assert_int_equal(unlink("gate"), 0);
    assert_int_equal(rmdir(peer->folder), 0);
    free(peer->folder);
    buffer_clear(&peer->in);
    return 0;
}

#define CASE(name, peer) TEST_ON(name, struct peer *peer, set_up, tear_down)

/* --- srun --- */

static void send_out(const struct peer *peer, struct buffer *out)
{
    assert_int_equal(write_all(peer->fd, out->bytes, out->length), 0);
    out->length = 0;
}

/* Starts tasks 0, 1, ... of these shell commands, up to NULL. */
static void start(const struct peer *peer, const char *const *commands)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (uint32_t i = 0; commands[i] != NULL; i++) {
        _cleanup_strings_ struct strings words = { 0 };
        strings_take(&words, xasprintf("%u", i));
        strings_add(&words, "3");
        strings_add(&words, "");
        strings_add(&words, "sh");
        strings_add(&words, "-c");
        strings_add(&words, commands[i]);
        frame_put_words(&out, FRAME_TASK, i, &words);
    }
    frame_put(&out, FRAME_GO, FRAME_ALL, NULL, 0);
    send_out(peer, &out);
}

/* The next frame; false: it is not here yet. */
static bool next(struct peer *peer, bool waits, struct frame *ret)
{
    uint8_t piece[PIECE];
    int r = 0;
    while ((r = frame_take(&peer->in, &peer->taken, ret)) == 0) {
        frame_drop(&peer->in, &peer->taken);
        ssize_t n = recv(peer->fd, piece, sizeof(piece), waits ? 0 : MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return false;
        assert_true(n > 0);
        buffer_append(&peer->in, piece, (size_t)n);
    }
    assert_int_equal(r, 1);
    return true;
}

/* Waits for a frame of this type; those before it are of no interest. */
static struct frame await(struct peer *peer, enum frame_type type)
{
    struct frame frame;
    while (next(peer, true, &frame) && frame.type != type)
        assert_int_not_equal(frame.type, FRAME_FAILED);
    return frame;
}

/* Sends input until slurmstepd says that this is enough; what was sent, UNREAD at most. */
static size_t fill(struct peer *peer)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ uint8_t *piece = xcalloc(1, PIECE);
    struct frame frame;
    size_t sent = 0;
    while (sent < UNREAD) {
        frame_put(&out, FRAME_INPUT, FRAME_ALL, piece, PIECE);
        send_out(peer, &out);
        sent += PIECE;
        while (next(peer, false, &frame))
            if (frame.type == FRAME_INPUT_FULL)
                return sent;
    }
    return sent;
}

static void open_gate(void)
{
    _cleanup_close_ int fd = open("gate", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
}

/* --- tests --- */

CASE(a_task_that_reads_late_gets_all_of_its_input, peer)
{
    static const char *const commands[] = { "read line < gate; wc -c", NULL };
    _cleanup_buffer_ struct buffer out = { 0 };
    start(peer, commands);
    size_t sent = fill(peer);
    assert_true(sent < UNREAD);
    open_gate();
    (void)await(peer, FRAME_INPUT_READY);
    frame_put(&out, FRAME_INPUT, FRAME_ALL, "end", 3);
    frame_put(&out, FRAME_INPUT_END, FRAME_ALL, NULL, 0);
    send_out(peer, &out);
    struct frame frame = await(peer, FRAME_OUTPUT);
    _cleanup_free_ char *count = xstrndup((const char *)frame.bytes, frame.length);
    assert_int_equal(strtoul(count, NULL, 10), sent + 3);
}

CASE(a_task_that_does_not_read_is_signalled, peer)
{
    static const char *const commands[] = { "read line < gate", NULL };
    _cleanup_buffer_ struct buffer out = { 0 }, number = { 0 };
    start(peer, commands);
    assert_true(fill(peer) < UNREAD);
    frame_add_number(&number, 4, SIGKILL);
    frame_put(&out, FRAME_SIGNAL, 0, number.bytes, number.length);
    send_out(peer, &out);
    (void)await(peer, FRAME_EXIT);
}

CASE(a_task_that_ends_without_reading_keeps_no_input_from_others, peer)
{
    static const char *const commands[] = { "read line < gate", "wc -c", NULL };
    _cleanup_buffer_ struct buffer out = { 0 };
    start(peer, commands);
    size_t sent = fill(peer);
    assert_true(sent < UNREAD);
    open_gate();
    (void)await(peer, FRAME_INPUT_READY);
    frame_put(&out, FRAME_INPUT_END, FRAME_ALL, NULL, 0);
    send_out(peer, &out);
    struct frame frame = await(peer, FRAME_OUTPUT);
    _cleanup_free_ char *count = xstrndup((const char *)frame.bytes, frame.length);
    assert_int_equal(frame.task, 1);
    assert_int_equal(strtoul(count, NULL, 10), sent);
}

CASE(more_than_that_is_an_error, peer)
{
    static const char *const commands[] = { "read line < gate", NULL };
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ uint8_t *piece = xcalloc(1, UNREAD / 2);
    struct frame frame;
    start(peer, commands);
    frame_put(&out, FRAME_INPUT, 0, piece, UNREAD / 2);
    send_out(peer, &out);
    frame_put(&out, FRAME_INPUT, 0, piece, UNREAD / 2);
    send_out(peer, &out);
    while (next(peer, true, &frame) && frame.type != FRAME_FAILED)
        assert_int_not_equal(frame.type, FRAME_EXIT);
    _cleanup_free_ char *text = xstrndup((const char *)frame.bytes, frame.length);
    assert_string_equal(text, "task 0 has not read 64 MiB of its input, and srun sends more");
}
