/* SPDX-License-Identifier: MIT */
/* Messages and keys of PMI, and frames between srun and slurmstepd. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "compat/stepd/frames.h"
#include "compat/stepd/mpi.h"
#include "compat/stepd/pmi_store.h"
#include "compat/stepd/pmi_words.h"
#include "compat/stepd/usage.h"
#include "unit_test.h"

TEST(a_line_of_pmi_1_is_words_and_a_value_with_blanks)
{
    _cleanup_buffer_ struct buffer in = { 0 };
    _cleanup_strings_ struct strings words = { 0 };
    buffer_append_text(&in, "cmd=put kvsname=a  key=k value=one two\ncmd=get");
    assert_int_equal(pmi_words_take(&in, PMI_ONE, &words), 1);
    assert_string_equal(strings_get_env(&words, "kvsname"), "a");
    assert_string_equal(strings_get_env(&words, "value"), "one two");
    strings_clear(&words);
    assert_int_equal(pmi_words_take(&in, PMI_ONE, &words), 0);
    assert_int_equal(in.length, strlen("cmd=get"));
}

TEST(a_message_of_pmi_2_is_counted_and_its_semicolons_are_doubled)
{
    _cleanup_buffer_ struct buffer message = { 0 };
    _cleanup_strings_ struct strings words = { 0 };
    pmi_words_put(&message, PMI_TWO, "kvs-put", "key", "k", "value", "a;b", NULL);
    assert_string_equal(buffer_text(&message), "    29cmd=kvs-put;key=k;value=a;;b;");
    for (size_t i = 0; i + 1 < message.length; i++) {
        _cleanup_buffer_ struct buffer part = { 0 };
        buffer_append(&part, message.bytes, i);
        assert_int_equal(pmi_words_take(&part, PMI_TWO, &words), 0);
    }
    assert_int_equal(pmi_words_take(&message, PMI_TWO, &words), 1);
    assert_string_equal(strings_get_env(&words, "cmd"), "kvs-put");
    assert_string_equal(strings_get_env(&words, "value"), "a;b");
    assert_int_equal(message.length, 0);
}

TEST(what_is_no_message_is_refused)
{
    static const char *const texts[] = { "abcdefcmd=x;", "999999x", "-00005abcde", "cmd=full" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        _cleanup_buffer_ struct buffer in = { 0 };
        _cleanup_strings_ struct strings words = { 0 };
        buffer_append_text(&in, texts[i]);
        assert_int_equal(pmi_words_take(&in, PMI_TWO, &words), -EBADMSG);
    }
    _cleanup_buffer_ struct buffer endless = { 0 };
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_free_ char *blanks = xcalloc(1, PMI_MESSAGE_MAX + 1);
    memset(blanks, 'x', PMI_MESSAGE_MAX + 1);
    buffer_append(&endless, blanks, PMI_MESSAGE_MAX + 1);
    assert_int_equal(pmi_words_take(&endless, PMI_ONE, &words), -EBADMSG);
}

TEST(keys_reach_another_node_as_they_are)
{
    struct pmi_store here = { 0 }, there = { 0 };
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[32], value[32];
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        (void)snprintf(value, sizeof(value), "%d", i * i);
        assert_true(pmi_store_put(&here, key, value));
    }
    assert_true(pmi_store_put(&here, "key-7", "other"));
    pmi_store_write(&here, &bytes);
    assert_true(pmi_store_read(&there, (const char *)bytes.bytes, bytes.length));
    assert_string_equal(pmi_store_get(&there, "key-1999"), "3996001");
    assert_string_equal(pmi_store_get(&there, "key-7"), "other");
    assert_null(pmi_store_get(&there, "key-2000"));
    assert_false(pmi_store_read(&there, "a\0b", 3));
    assert_false(pmi_store_read(&there, "alone", 6));
    pmi_store_clear(&here);
    pmi_store_clear(&there);
}

/* The answer of the node to one message of its only task, which speaks PMI-2. */
static void ask_pmi_2(void *pmi, int fd, struct strings *ret, const char *key, const char *value)
{
    _cleanup_buffer_ struct buffer message = { 0 };
    char answer[512];
    pmi_words_put(&message, PMI_TWO, "info-putnodeattr", "key", key, "value", value, "thrid", "3", NULL);
    assert_int_equal(write(fd, message.bytes, message.length), message.length);
    mpi_pmi2.readable(pmi, 0);
    ssize_t n = read(fd, answer, sizeof(answer));
    assert_true(n > 0);
    message.length = 0;
    buffer_append(&message, answer, (size_t)n);
    assert_int_equal(pmi_words_take(&message, PMI_TWO, ret), 1);
}

TEST(an_attribute_that_is_not_kept_is_refused)
{
    uint32_t first[] = { 0, 1 };
    struct mpi_setup setup = { .first = first };
    _cleanup_strings_ struct strings env = { 0 }, kept = { 0 }, refused = { 0 };
    _cleanup_free_ char *key = xcalloc(1, PMI_KEY_MAX + 2);
    static const char init[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
    const struct mpi_acts acts = { 0 };
    void *pmi = NULL;
    char answer[256];
    int fd = -1;
    strings_add(&setup.nodes, "a");
    assert_int_equal(mpi_pmi2.open(&setup, &acts, &pmi, NULL), 0);
    assert_int_equal(mpi_pmi2.prepare(pmi, 0, &env, &fd, NULL), 0);
    assert_int_equal(write(fd, init, strlen(init)), strlen(init));
    mpi_pmi2.readable(pmi, 0);
    assert_true(read(fd, answer, sizeof(answer)) > 0);
    ask_pmi_2(pmi, fd, &kept, "k", "v");
    assert_string_equal(strings_get_env(&kept, "rc"), "0");
    memset(key, 'k', PMI_KEY_MAX + 1);
    ask_pmi_2(pmi, fd, &refused, key, "v");
    assert_string_equal(strings_get_env(&refused, "cmd"), "info-putnodeattr-response");
    assert_string_equal(strings_get_env(&refused, "thrid"), "3");
    assert_string_equal(strings_get_env(&refused, "rc"), "1");
    (void)close(fd);
    mpi_pmi2.close(pmi);
    strings_clear(&setup.nodes);
}

TEST(a_frame_is_taken_when_it_is_whole)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_strings_ struct strings words = { 0 }, taken = { 0 };
    struct frame frame;
    size_t position = 0;
    strings_add(&words, "one");
    strings_add(&words, "");
    strings_add(&words, "three");
    frame_put_words(&out, FRAME_TASK, 7, &words);
    for (size_t i = 0; i < out.length; i++) {
        const struct buffer part = { .bytes = out.bytes, .length = i };
        assert_int_equal(frame_take(&part, &position, &frame), 0);
    }
    assert_int_equal(frame_take(&out, &position, &frame), 1);
    assert_int_equal(frame.type, FRAME_TASK);
    assert_int_equal(frame.task, 7);
    assert_true(frame_words(&frame, &taken));
    assert_int_equal(taken.count, 3);
    assert_string_equal(taken.items[2], "three");
    memset(out.bytes, 0xff, out.length);
    position = 0;
    assert_int_equal(frame_take(&out, &position, &frame), -EBADMSG);
}

TEST(words_without_an_end_are_refused)
{
    const struct frame frame = { .bytes = (const uint8_t *)"abc", .length = 3 };
    _cleanup_strings_ struct strings words = { 0 };
    uint64_t number = 0;
    size_t position = 0;
    assert_false(frame_words(&frame, &words));
    assert_false(frame_number(&frame, &position, 4, &number));
}

TEST(the_mapping_of_tasks_joins_nodes_with_as_many)
{
    uint32_t first[] = { 0, 2, 4, 5 };
    struct mpi_setup setup = { .name = "1.0", .first = first };
    strings_add(&setup.nodes, "a");
    strings_add(&setup.nodes, "b");
    strings_add(&setup.nodes, "c");
    _cleanup_free_ char *mapping = mpi_process_mapping(&setup);
    assert_string_equal(mapping, "(vector,(0,2,2),(2,1,1))");
    assert_int_equal(mpi_node_of(&setup, 3), 1);
    assert_int_equal(mpi_node_of(&setup, 4), 2);
    strings_clear(&setup.nodes);
}

TEST(samples_become_rare)
{
    assert_int_equal(usage_next_ms(0), 500);
    for (uint32_t i = 0; i < 100; i++)
        assert_in_range(usage_next_ms(i + 1) - usage_next_ms(i), 500, 10000);
}
