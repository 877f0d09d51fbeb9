/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "job/ask.h"
#include "job/spec.h"
#include "unit_test.h"
#include "wire/message.h"
#include "wire/order_check.h"

static bool is_time(const struct record_field *field)
{
    return field->kind == RECORD_I64 || field->kind == RECORD_DURATION || field->kind == RECORD_TIME;
}

/* Of one field of a message, which may be in an item of a list. */
static void check_time(
    const struct record_type *type, void *message, const struct record_field *field, int64_t *ms)
{
    static const int64_t wrong[] = { -1, INT64_MIN, ASK_YEAR_9999_MS + 1, INT64_MAX };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct error err = { 0 };
        *ms = wrong[i];
        assert_int_equal(order_check(type, message, &err), -ERANGE);
        assert_non_null(strstr(err.message, field->name));
        assert_true(*ms == 0);
    }
    *ms = ASK_YEAR_9999_MS;
    assert_int_equal(order_check(type, message, NULL), 0);
    assert_true(*ms == ASK_YEAR_9999_MS);
    *ms = 0;
}

static size_t check_fields(
    const struct record_type *type, void *message, const struct record_type *inner, void *object)
{
    size_t count = 0;
    for (size_t i = 0; i < inner->n_fields; i++) {
        const struct record_field *field = &inner->fields[i];
        void *member = (char *)object + field->offset;
        if (is_time(field)) {
            check_time(type, message, field, member);
            count++;
        } else if (field->kind == RECORD_LIST) {
            _cleanup_free_ void *item = xcalloc(1, field->sub->size);
            struct record_list *list = member;
            *list = (struct record_list){ item, 1 };
            count += check_fields(type, message, field->sub, item);
            *list = (struct record_list){ 0 };
        }
    }
    return count;
}

TEST(a_time_that_could_overflow_is_taken_out_of_every_message)
{
    size_t count = 0;
    for (unsigned id = 0; id <= UINT16_MAX; id++) {
        const struct record_type *type = message_type((uint16_t)id);
        _cleanup_free_ void *message = type != NULL ? xcalloc(1, type->size) : NULL;
        if (type != NULL)
            count += check_fields(type, message, type, message);
    }
    struct job_spec spec = { 0 };
    count += check_fields(&job_spec_record, &spec, &job_spec_record, &spec);
    assert_true(count > 20);
}

TEST(the_first_of_several_is_named)
{
    struct message_welcome welcome = { .heartbeat_ms = -1, .timeout_ms = -1, .event = 7 };
    struct error err = { 0 };
    assert_int_equal(order_check(&message_welcome_record, &welcome, &err), -ERANGE);
    assert_non_null(strstr(err.message, "heartbeat_ms: -1 ms"));
    assert_true(welcome.timeout_ms == 0 && welcome.event == 7);
}
