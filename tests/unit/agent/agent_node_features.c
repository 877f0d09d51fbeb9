/* SPDX-License-Identifier: MIT */
/* A node reports its features in HELLO, which has limits. */

#include <string.h>

#include "agent/confine/node_features.h"
#include "base/buffer.h"
#include "base/record.h"
#include "unit_test.h"
#include "wire/message.h"

TEST(promises_with_long_paths_fit_into_hello)
{
    char path[4000];
    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    struct error none = { 0 };
    struct gpu_report gpus = { .text = path, .fix = path };
    struct limits *limits = limits_new("/nonexistent", NULL);
    const struct share_ways shares = { .is_available = { [SHARE_TIME] = true } };
    const struct feature_facts facts = { .confine = "none",
        .shares = &shares,
        .confine_err = &none,
        .devices_err = &none,
        .private_tmp_err = &none,
        .early_err = &none,
        .state_dir = path,
        .log_dir = path,
        .sendmail = path,
        .shepherd = path,
        .gpus = &gpus,
        .limits = limits };
    struct message_hello hello = { .protocol = LINK_PROTOCOL }, read = { 0 };
    node_features_list(&facts, &hello.features);
    struct buffer bytes = { 0 };
    struct error err = { 0 };
    record_encode(&message_hello_record, &hello, &bytes);
    if (record_decode(&message_hello_record, bytes.bytes, bytes.length, &read, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(read.features.count, hello.features.count);
    record_clear(&message_hello_record, &read);
    buffer_clear(&bytes);
    node_features_clear(&hello.features);
    node_features_list_live(&facts, &hello.features);
    const struct node_feature *gpu = hello.features.items;
    assert_true(strlen(gpu->text) <= NODE_FEATURE_TEXT_MAX && strlen(gpu->fix) <= NODE_FEATURE_TEXT_MAX);
    node_features_clear(&hello.features);
    limits_free(limits);
}
