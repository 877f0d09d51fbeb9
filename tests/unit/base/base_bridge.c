/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bridge.h"
#include "base/terminal.h"
#include "unit_test.h"

/* A bridge, and the far ends of its two sockets. */
struct fixture {
    struct bridge bridge;
    int plain, framed;
};

static void open_bridge(struct fixture *f, enum bridge_side side)
{
    int plain[2], framed[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, plain), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, framed), 0);
    bridge_init(&f->bridge, plain[0], framed[0], side, NULL);
    f->plain = plain[1];
    f->framed = framed[1];
}

static void close_bridge(struct fixture *f)
{
    (void)close(f->bridge.plain_fd);
    (void)close(f->bridge.framed_fd);
    if (f->plain >= 0)
        (void)close(f->plain);
    if (f->framed >= 0)
        (void)close(f->framed);
    bridge_clear(&f->bridge);
}

/* Turns until nothing more can be done without the other ends; the last result. */
static int settle(struct fixture *f)
{
    for (;;) {
        struct pollfd fds[2];
        bridge_events(&f->bridge, fds);
        if (poll(fds, 2, 0) <= 0)
            return 0;
        int r = bridge_turn(&f->bridge, fds);
        if (r != 0)
            return r;
    }
}

static void send_frame(struct fixture *f, uint8_t type, const char *text)
{
    uint8_t frame[256];
    size_t length = strlen(text);
    terminal_head(frame, type, length);
    memcpy(frame + TERMINAL_HEAD_SIZE, text, length);
    assert_int_equal(send(f->framed, frame, TERMINAL_HEAD_SIZE + length, 0), TERMINAL_HEAD_SIZE + length);
}

static void expect_frame(struct fixture *f, uint8_t type, const char *text)
{
    uint8_t frame[256], got;
    size_t length;
    assert_int_equal(recv(f->framed, frame, TERMINAL_HEAD_SIZE, 0), TERMINAL_HEAD_SIZE);
    assert_true(terminal_read_head(frame, &got, &length));
    assert_int_equal(got, type);
    assert_int_equal(length, strlen(text));
    if (length > 0)
        assert_int_equal(recv(f->framed, frame, length, 0), length);
    assert_memory_equal(frame, text, length);
}

static void expect_bytes(int fd, const char *text)
{
    char bytes[256];
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), strlen(text));
    assert_memory_equal(bytes, text, strlen(text));
}

TEST(bytes_become_frames_and_frames_bytes)
{
    struct fixture f;
    open_bridge(&f, BRIDGE_JOB);
    assert_int_equal(send(f.plain, "from the job", 12, 0), 12);
    send_frame(&f, TERMINAL_INPUT, "from the user");
    assert_int_equal(settle(&f), 0);
    expect_frame(&f, TERMINAL_OUTPUT, "from the job");
    expect_bytes(f.plain, "from the user");
    close_bridge(&f);
}

TEST(the_client_s_side_uses_the_opposite_frames)
{
    struct fixture f;
    open_bridge(&f, BRIDGE_CLIENT);
    assert_int_equal(send(f.plain, "from the user", 13, 0), 13);
    send_frame(&f, TERMINAL_OUTPUT, "from the job");
    send_frame(&f, TERMINAL_INPUT, "not for this side");
    assert_int_equal(settle(&f), 0);
    expect_frame(&f, TERMINAL_INPUT, "from the user");
    expect_bytes(f.plain, "from the job");
    close_bridge(&f);
}

TEST(bytes_read_before_are_carried_first)
{
    static uint8_t early[] = { 'o', 0, 0, 2, 'h', 'i', 'o', 0 };
    struct fixture f;
    struct buffer first = { early, sizeof(early), sizeof(early) };
    struct pollfd none[2] = { { 0 } };
    open_bridge(&f, BRIDGE_CLIENT);
    bridge_init(&f.bridge, f.bridge.plain_fd, f.bridge.framed_fd, BRIDGE_CLIENT, &first);
    assert_int_equal(bridge_turn(&f.bridge, none), 0);
    expect_bytes(f.plain, "hi");
    assert_int_equal(send(f.framed, "\0\1!", 3, 0), 3);
    assert_int_equal(settle(&f), 0);
    expect_bytes(f.plain, "!");
    close_bridge(&f);
}

TEST(one_direction_ends_and_the_other_continues)
{
    struct fixture f;
    char byte;
    open_bridge(&f, BRIDGE_JOB);
    send_frame(&f, TERMINAL_INPUT, "question");
    send_frame(&f, TERMINAL_INPUT_END, "");
    assert_int_equal(settle(&f), 0);
    expect_bytes(f.plain, "question");
    assert_int_equal(recv(f.plain, &byte, 1, 0), 0);
    assert_int_equal(send(f.plain, "answer", 6, 0), 6);
    assert_int_equal(settle(&f), 0);
    expect_frame(&f, TERMINAL_OUTPUT, "answer");
    assert_int_equal(shutdown(f.plain, SHUT_WR), 0);
    assert_int_equal(settle(&f), 1);
    expect_frame(&f, TERMINAL_OUTPUT_END, "");
    close_bridge(&f);
}

/* mgpud discards data of a client that has left. */
TEST(the_client_s_side_waits_for_the_job_s_to_close)
{
    struct fixture f;
    open_bridge(&f, BRIDGE_CLIENT);
    send_frame(&f, TERMINAL_OUTPUT_END, "");
    assert_int_equal(shutdown(f.plain, SHUT_WR), 0);
    assert_int_equal(settle(&f), 0);
    expect_frame(&f, TERMINAL_INPUT_END, "");
    (void)close(f.framed);
    f.framed = -1;
    assert_int_equal(settle(&f), 1);
    close_bridge(&f);
}

TEST(a_framed_side_that_closes_without_an_end_is_a_cut)
{
    static const enum bridge_side sides[] = { BRIDGE_JOB, BRIDGE_CLIENT };
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        open_bridge(&f, sides[i]);
        send_frame(&f, i == 0 ? TERMINAL_INPUT : TERMINAL_OUTPUT, "half of it");
        (void)close(f.framed);
        f.framed = -1;
        assert_int_equal(settle(&f), -ECONNRESET);
        close_bridge(&f);
    }
}

TEST(a_frame_above_the_limit_ends_the_connection)
{
    struct fixture f;
    open_bridge(&f, BRIDGE_JOB);
    assert_int_equal(send(f.framed, "i\xff\xff\xff", 4, 0), 4);
    assert_int_equal(settle(&f), -EBADMSG);
    close_bridge(&f);
}

/* Sends until it would block; how much that was. */
static size_t fill(struct fixture *f, int fd, const uint8_t *bytes, size_t length)
{
    size_t sent = 0;
    for (ssize_t n; (n = send(fd, bytes, length, MSG_DONTWAIT)) > 0; sent += (size_t)n)
        assert_int_equal(settle(f), 0);
    return sent;
}

TEST(a_reader_that_stops_stops_the_sender_at_a_bounded_amount)
{
    static uint8_t piece[4096];
    static const enum bridge_side sides[] = { BRIDGE_JOB, BRIDGE_CLIENT };
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        open_bridge(&f, sides[i]);
        size_t plain = fill(&f, f.plain, piece, sizeof(piece));
        assert_true(plain > 0 && f.bridge.to_framed.capacity < (1U << 20));
        memset(piece, 0, sizeof(piece));
        terminal_head(piece, i == 0 ? TERMINAL_INPUT : TERMINAL_OUTPUT, sizeof(piece) - TERMINAL_HEAD_SIZE);
        size_t framed = fill(&f, f.framed, piece, sizeof(piece));
        assert_true(framed > 0 && f.bridge.to_plain.capacity < (1U << 20));
        close_bridge(&f);
    }
}
