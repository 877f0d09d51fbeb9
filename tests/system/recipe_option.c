/* SPDX-License-Identifier: MIT */
/* What a new option of run and submit is to the parts of mgpu that know no option by name. test_recipes.py
 * builds it with a made-up one. Its words: the option, the key, a value. It prints what a person sees, then
 * what the value is on its way, and a made-up reason of `mgpu why`. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "cli/options/ask.h"
#include "cli/submit/submit.h"
#include "job/event.h"
#include "job/job.h"
#include "job/why_code.h"
#include "wire/json_job.h"
#include "wire/json_record.h"
#include "wire/json_spec.h"
#include "wire/json_text.h"
#include "wire/message.h"

static void print_member(const char *what, json_t *object, const char *key)
{
    _cleanup_free_ char *text =
        json_dumps(json_object_get(object, key), JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    (void)printf("%s %s\n", what, text != NULL ? text : "nothing");
}

/* As mgpud reads it, and as it is answered. */
static void print_answer(const char *key, const struct job_spec *spec)
{
    struct job *job = job_new(1, spec);
    struct usernames *names = usernames_new();
    struct json_job_view view = { .job = job, .names = names };
    _cleanup_json_ json_t *object = json_job_write(&view);
    print_member("answer", object, key);
    usernames_free(names);
    job_free(job);
}

/* As the store keeps it and as LAUNCH brings it to the agent. */
static void print_launch(const char *key, const struct job_spec *spec)
{
    _cleanup_(spec_bytes_dropp) struct spec_bytes *bytes = spec_bytes_new(spec);
    struct message_launch launch = { 0 }, received;
    _cleanup_(job_spec_clear) struct job_spec launched;
    _cleanup_buffer_ struct buffer frame = { 0 };
    spec_bytes_pack(bytes, spec->name, &spec->ask, &launch.spec);
    record_encode(&message_launch_record, &launch, &frame);
    if (record_decode(&message_launch_record, frame.bytes, frame.length, &received, NULL) < 0 ||
        record_unpack(&job_spec_record, &received.spec, &launched, NULL) < 0)
        abort();
    _cleanup_json_ json_t *object = json_record_write(&job_spec_record, &launched);
    print_member("launch", object, key);
    record_clear(&message_launch_record, &launch);
    record_clear(&message_launch_record, &received);
}

int main(int argc, char **argv)
{
    struct submit_options options = { 0 };
    struct call call = { .options = &options };
    struct error err = { 0 };
    struct ask_key edited;
    struct job_spec spec;
    const struct option_row *const tables[] = { submit_rows, NULL };
    if (argc != 4)
        return 2;
    options_print(submit_rows, stdout);
    const struct option_row *row = options_find(tables, argv[1], strlen(argv[1]));
    if (row == NULL || options_set(&call, row, argv[3], &err) < 0)
        return 1;
    print_member("request", options.ask, argv[2]);
    if (ask_find(argv[2], &edited))
        (void)printf("edit %s=%s %s\n", edited.key, edited.argument, edited.help);
    (void)json_object_set_new(options.ask, "command", json_string("true"));
    if (json_spec_read(options.ask, &spec, &err) < 0)
        return 1;
    print_answer(argv[2], &spec);
    print_launch(argv[2], &spec);
    enum why_code code = why_code_find("full_moon");
    (void)printf("reason %s: %s: %s\n", why_code_name(code), why_code_title(code), why_code_meaning(code));
    job_spec_clear(&spec);
    submit_options_clear(&options);
    return 0;
}
