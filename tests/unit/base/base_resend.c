/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/containers/resend.h"
#include "unit_test.h"

TEST(what_was_not_confirmed_is_sent_again)
{
    uint8_t ring[8];
    const uint8_t *bytes;
    struct resend resend;
    resend_init(&resend, ring, sizeof(ring));
    assert_true(resend_put(&resend, "abcde", 5));
    assert_int_equal(resend_next(&resend, &bytes), 5);
    resend_sent(&resend, 4);
    assert_true(resend_confirm(&resend, 1));
    assert_true(resend_rewind(&resend, 2));
    assert_int_equal(resend_next(&resend, &bytes), 3);
    assert_memory_equal(bytes, "cde", 3);
}

TEST(positions_that_cannot_be_are_refused)
{
    uint8_t ring[8];
    struct resend resend;
    resend_init(&resend, ring, sizeof(ring));
    assert_true(resend_put(&resend, "abcdef", 6));
    resend_sent(&resend, 4);
    assert_false(resend_confirm(&resend, 5)); // not sent yet
    assert_true(resend_confirm(&resend, 3));
    assert_true(resend_confirm(&resend, 2)); // late: it changes nothing
    assert_false(resend_rewind(&resend, 2)); // forgotten
    assert_false(resend_rewind(&resend, 5));
    assert_true(resend_rewind(&resend, 3));
}

TEST(a_full_ring_takes_nothing_more)
{
    uint8_t ring[4];
    struct resend resend;
    resend_init(&resend, ring, sizeof(ring));
    assert_true(resend_put(&resend, "abc", 3));
    assert_false(resend_put(&resend, "de", 2));
    assert_int_equal(resend_room(&resend), 1);
    resend_sent(&resend, 3);
    assert_true(resend_confirm(&resend, 3));
    assert_true(resend_put(&resend, "defg", 4));
    assert_int_equal(resend_room(&resend), 0);
}

/* A stream of numbers through a small ring, over connections that are cut at random. */
TEST(every_byte_arrives_once_and_in_order)
{
    uint8_t ring[37];
    struct resend resend;
    uint64_t put = 0, received = 0;
    resend_init(&resend, ring, sizeof(ring));
    srand(7);
    while (received < 20000) {
        uint8_t piece[16];
        const uint8_t *bytes;
        size_t length = (size_t)rand() % sizeof(piece);
        for (size_t i = 0; i < length; i++)
            piece[i] = (uint8_t)((put + i) % 251);
        if (resend_put(&resend, piece, length))
            put += length;
        size_t n = resend_next(&resend, &bytes);
        n = n > 0 ? (size_t)rand() % (n + 1) : 0;
        size_t arrived = n > 0 && rand() % 5 == 0 ? (size_t)rand() % n : n;
        for (size_t i = 0; i < arrived; i++)
            assert_int_equal(bytes[i], (received + i) % 251);
        resend_sent(&resend, n);
        received += arrived;
        if (arrived < n || rand() % 11 == 0)
            assert_true(resend_rewind(&resend, received)); // the connection was cut
        else if (rand() % 3 == 0)
            assert_true(resend_confirm(&resend, received));
    }
}
