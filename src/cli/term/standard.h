/* SPDX-License-Identifier: MIT */
/* Handles the standard descriptors at the start and the end of a program. */
#pragma once

/* Opens closed standard descriptors in a way that makes writes fail. Otherwise the next file or connection
 * would get the number, and output would go there. */
void standard_descriptors_hold(void);

/* Returns the exit status to use instead of `status`: a failure if output was lost because of a full disk or
 * a closed pipe. */
int standard_output_end(int status);
