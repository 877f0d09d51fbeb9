/* SPDX-License-Identifier: MIT */
/* Objects of an older mgpud lack both members: then only the state is shown. */
#include "cli/options/maintenance_text.h"

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"

#define STATE_MAX 64

char *maintenance_text(const struct view *view, const json_t *object, const char *state)
{
    char until[64];
    struct buffer out = { 0 };
    int64_t until_ms = time_parse(field_text(object, "until"));
    _cleanup_free_ char *shown = text_escape(state, STATE_MAX);
    buffer_append_text(&out, shown);
    if (field_text(object, "reason") != NULL) {
        _cleanup_free_ char *reason = field_shown(object, "reason");
        buffer_printf(&out, ": %s", reason);
    }
    if (until_ms > 0) {
        time_format_short(until_ms, view->now_ms, view->times, until, sizeof(until));
        buffer_printf(&out, ", until %s", until);
    }
    return buffer_take(&out);
}
