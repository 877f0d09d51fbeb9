/* SPDX-License-Identifier: MIT */
/* Numbers are printed with the digits that mgpud sent. */
#include "cli/api/show_json.h"

#define AS_TOLD JSON_REAL_PRECISION(15)

void show_json_line(const json_t *value, FILE *out)
{
    (void)json_dumpf(value, out, JSON_COMPACT | AS_TOLD);
    (void)fputc('\n', out);
}

void show_json_page(const json_t *value, FILE *out)
{
    (void)json_dumpf(value, out, JSON_INDENT(2) | AS_TOLD);
    (void)fputc('\n', out);
}
