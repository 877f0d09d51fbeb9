/* SPDX-License-Identifier: MIT */
/* Messages of libyaml, reworded for users. */
#pragma once

/* `problem`: the parser's error, or NULL. The result is static or `problem` itself. */
const char *yaml_problem_text(const char *problem);
