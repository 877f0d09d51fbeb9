/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "job/interpreter.h"
#include "unit_test.h"

TEST(the_first_line_says_what_runs_a_text)
{
    static const struct {
        const char *text, *words;
        bool is_python;
    } rows[] = {
        { "", "/bin/sh", false },
        { "echo\n#!/bin/bash\n", "/bin/sh", false },
        { "#!\n", "/bin/sh", false },
        { "#!   \t\necho", "/bin/sh", false },
        { "#!/bin/bash", "/bin/bash", false },
        { "#! /bin/bash -e -u \r\ntrue\r\n", "/bin/bash '-e -u'", false },
        { "#!/usr/bin/env python3\n", "/usr/bin/env python3", true },
        { "#!/usr/bin/env -S python3 -u\n", "/usr/bin/env '-S python3 -u'", true },
        { "#!/opt/my.venv/bin/python3.11\n", "/opt/my.venv/bin/python3.11", true },
        { "#!/opt/python/bin/ruby\n", "/opt/python/bin/ruby", false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings words = { 0 };
        interpreter_add(rows[i].text, &words);
        _cleanup_free_ char *found = text_quote_command(&words);
        if (strcmp(found, rows[i].words) != 0 || interpreter_is_python(&words) != rows[i].is_python)
            fail_msg("%s: %s", rows[i].text, found);
    }
}
