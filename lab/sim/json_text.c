/* SPDX-License-Identifier: MIT */
/* Names of users and files may contain arbitrary bytes, also invalid UTF-8. */
#include "lab/sim/json_text.h"

#include <jansson.h>
#include <string.h>

void json_text(struct buffer *out, const char *indent, const char *key, const char *value)
{
    json_t *string = json_string(value);
    if (string == NULL) {
        /* Not UTF-8: each byte above 127 becomes the character of that number. */
        string = json_string("");
        _cleanup_buffer_ struct buffer text = { 0 };
        for (const unsigned char *byte = (const unsigned char *)value; *byte != '\0'; byte++) {
            unsigned char two[2] = { (unsigned char)(0xc0 | *byte >> 6),
                (unsigned char)(0x80 | (*byte & 0x3f)) };
            buffer_append(&text, *byte < 0x80 ? byte : two, *byte < 0x80 ? 1 : 2);
        }
        (void)json_string_set(string, buffer_text(&text));
    }
    _cleanup_free_ char *quoted = json_dumps(string, JSON_ENCODE_ANY);
    json_decref(string);
    buffer_printf(out, "%s\"%s\": %s,\n", indent, key, quoted == NULL ? "\"\"" : quoted);
}

void xml_text(struct buffer *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '<')
            buffer_append_text(out, "&lt;");
        else if (*at == '>')
            buffer_append_text(out, "&gt;");
        else if (*at == '&')
            buffer_append_text(out, "&amp;");
        else if (*at == '"')
            buffer_append_text(out, "&quot;");
        else if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            buffer_append_text(out, "?");
        else
            buffer_append(out, at, 1);
    }
}
