/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent_link.h"
#include "base/memory.h"
#include "unit_test.h"

struct end {
    struct event_base *base;
    struct agent_link *link;
    int peer; // the controller's side
    int messages, closed, answer;
    uint64_t epoch;
    uint64_t defective; // the job of the last message that came only in part
    struct error why;
};

static int on_message(void *arg, uint16_t id, const void *message, struct error *err)
{
    struct end *end = arg;
    end->messages++;
    if (id == MESSAGE_WELCOME)
        end->epoch = ((const struct message_welcome *)message)->epoch;
    if (id == MESSAGE_LAUNCH && ((const struct message_launch *)message)->defect != NULL)
        end->defective = ((const struct message_launch *)message)->id.job;
    return end->answer == 0 ? 0 : error_set(err, end->answer, "refused");
}

static void on_closed(void *arg, const struct error *err)
{
    struct end *end = arg;
    end->closed++;
    end->why = *err;
}

static void start(struct end *end)
{
    int pair[2];
    *end = (struct end){ .base = event_base_new() };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    end->peer = pair[0];
    end->link = agent_link_new(end->base, pair[1], on_message, on_closed, end);
}

static void stop(struct end *end)
{
    agent_link_free(end->link);
    event_base_free(end->base);
    (void)close(end->peer);
}

static void turn(struct end *end)
{
    for (int i = 0; i < 4; i++)
        (void)event_base_loop(end->base, EVLOOP_NONBLOCK);
}

static void encode_welcome(uint64_t epoch, struct buffer *out)
{
    struct message_welcome welcome = { epoch };
    record_encode(&message_welcome_record, &welcome, out);
}

TEST(a_frame_is_taken_when_its_last_byte_is_there)
{
    struct end end;
    _cleanup_buffer_ struct buffer frame = { 0 };
    start(&end);
    encode_welcome(7, &frame);
    for (size_t i = 0; i < frame.length; i++) {
        assert_int_equal(end.messages, 0);
        assert_int_equal(write(end.peer, frame.bytes + i, 1), 1);
        turn(&end);
    }
    assert_int_equal(end.messages, 1);
    assert_int_equal(end.epoch, 7);
    stop(&end);
}

TEST(several_frames_in_one_piece_are_all_taken)
{
    struct end end;
    _cleanup_buffer_ struct buffer frames = { 0 };
    start(&end);
    for (uint64_t i = 1; i <= 3; i++)
        encode_welcome(i, &frames);
    assert_int_equal(write(end.peer, frames.bytes, frames.length), frames.length);
    turn(&end);
    assert_int_equal(end.messages, 3);
    assert_int_equal(end.epoch, 3);
    stop(&end);
}

TEST(nonsense_closes_the_link_with_a_sentence)
{
    static const char *const inputs[] = { "GET / HTTP/1.1\r\n\r\n", "mgR1\xff\x7f\0\0\0\0\0\0" };
    for (size_t i = 0; i < 2; i++) {
        struct end end;
        start(&end);
        assert_true(write(end.peer, inputs[i], 18 - 6 * i) > 0);
        assert_true(write(end.peer, "\0\0\0\0", 4) > 0);
        turn(&end);
        assert_int_equal(end.closed, 1);
        assert_true(end.why.message[0] != '\0');
        assert_int_equal(end.messages, 0);
        stop(&end);
    }
}

TEST(a_torn_checksum_closes_the_link)
{
    struct end end;
    _cleanup_buffer_ struct buffer frame = { 0 };
    start(&end);
    encode_welcome(7, &frame);
    frame.bytes[frame.length - 1] ^= 1;
    assert_int_equal(write(end.peer, frame.bytes, frame.length), frame.length);
    turn(&end);
    assert_int_equal(end.closed, 1);
    assert_non_null(strstr(end.why.message, "WELCOME"));
    stop(&end);
}

/* Its job must hear of it; all others are served as before. */
TEST(a_launch_over_a_limit_arrives_as_defective_and_the_link_goes_on)
{
    struct end end;
    _cleanup_buffer_ struct buffer frames = { 0 };
    struct message_launch launch = { .id.job = 5, .token = 7 };
    struct message_open_log log = { .path = NULL };
    char *path = xcalloc(1, SPEC_PATH_MAX + 2);
    memset(path, '/', SPEC_PATH_MAX + 1);
    log.path = launch.user = path;
    start(&end);
    record_encode(&message_launch_record, &launch, &frames);
    record_encode(&message_open_log_record, &log, &frames);
    encode_welcome(8, &frames);
    assert_int_equal(write(end.peer, frames.bytes, frames.length), frames.length);
    turn(&end);
    assert_int_equal(end.closed, 0);
    assert_int_equal(end.defective, 5);
    assert_int_equal(end.messages, 2); // a log that cannot be opened is as good as one that nobody asked for
    assert_int_equal(end.epoch, 8);
    free(path);
    stop(&end);
}

TEST(a_refused_message_closes_the_link)
{
    struct end end;
    _cleanup_buffer_ struct buffer frames = { 0 };
    start(&end);
    end.answer = -ESTALE;
    encode_welcome(7, &frames);
    encode_welcome(8, &frames);
    assert_int_equal(write(end.peer, frames.bytes, frames.length), frames.length);
    turn(&end);
    assert_int_equal(end.messages, 1);
    assert_int_equal(end.why.code, -ESTALE);
    stop(&end);
}

TEST(the_end_of_the_other_side_is_told_once)
{
    struct end end;
    start(&end);
    assert_int_equal(shutdown(end.peer, SHUT_RDWR), 0);
    turn(&end);
    assert_int_equal(end.closed, 1);
    assert_int_equal(end.why.code, 0);
    stop(&end);
}

/* More than a socket buffer holds, while the other side does not read. */
TEST(what_the_other_side_does_not_take_waits_in_order)
{
    struct end end;
    char bytes[65536];
    struct buffer got = { 0 }, wanted = { 0 };
    start(&end);
    for (uint64_t i = 1; i <= 20000; i++) {
        struct message_welcome welcome = { i };
        agent_link_send(end.link, &message_welcome_record, &welcome);
        encode_welcome(i, &wanted);
    }
    assert_true(agent_link_backlog(end.link) > 0);
    while (got.length < wanted.length) {
        turn(&end);
        ssize_t n = recv(end.peer, bytes, sizeof(bytes), MSG_DONTWAIT);
        assert_true(n > 0);
        buffer_append(&got, bytes, (size_t)n);
    }
    assert_int_equal(got.length, wanted.length);
    assert_memory_equal(got.bytes, wanted.bytes, wanted.length);
    buffer_clear(&got);
    buffer_clear(&wanted);
    stop(&end);
}
