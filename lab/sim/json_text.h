/* SPDX-License-Identifier: MIT */
/* Escapes text for JSON and XML. */
#pragma once

#include "base/buffer.h"

/* Appends INDENT"KEY": "VALUE",NEWLINE. */
void json_text(struct buffer *out, const char *indent, const char *key, const char *value);

/* Appends the text with <, >, &, quotes and control bytes escaped. */
void xml_text(struct buffer *out, const char *text);
