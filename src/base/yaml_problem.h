/* SPDX-License-Identifier: MIT */
/* What libyaml says of a text that is no YAML, in words for people who are not reading its grammar. */
#pragma once

/* `problem` is that of the parser, or NULL; the text stays. */
const char *yaml_problem_text(const char *problem);
