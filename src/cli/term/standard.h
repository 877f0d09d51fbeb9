/* SPDX-License-Identifier: MIT */
/* Handles the standard descriptors at the start and the end of a program. */
#pragma once

#include <stdint.h>

/* Opens closed standard descriptors in a way that makes writes fail. Otherwise the next file or connection
 * would get the number, and output would go there. */
void standard_descriptors_hold(void);

/* A job was submitted. If the output is lost, so is its number: standard_output_end() says it on standard
 * error. */
void standard_note_submitted(int64_t job);

/* Returns the exit status to use instead of `status`: a failure if output was lost because of a full disk or
 * a closed pipe. */
int standard_output_end(int status);
