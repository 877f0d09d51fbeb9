/* SPDX-License-Identifier: MIT */
/* Unknown keys are ignored: the journal contains more than a replay needs. */
#include "lab/sim/journal.h"

#include <errno.h>
#include <string.h>

#include "wire/json_journal.h"
#include "wire/json_text.h"

int journal_head(const char *line, struct error *err)
{
    _cleanup_json_ json_t *head = json_loads(line, 0, NULL);
    const char *schema = json_string_value(json_object_get(head, "schema"));
    if (schema != NULL && strcmp(schema, JOURNAL_SCHEMA) == 0)
        return 0;
    (void)error_set(
        err, -EINVAL, "not a journal: the first line does not contain \"schema\": \"%s\"", JOURNAL_SCHEMA);
    return error_hint(err, "write one with: mgpu journal export -o FILE");
}

int journal_line(const char *line, struct job_event *ret, uint64_t *ret_command_hash, struct error *err)
{
    json_error_t reason;
    _cleanup_json_ json_t *event = json_loads(line, 0, &reason);
    if (event != NULL)
        return json_journal_read(event, ret, ret_command_hash, err);
    *ret = (struct job_event){ 0 };
    *ret_command_hash = 0;
    return error_set(err, -EINVAL, "not JSON: %.200s", reason.text);
}
