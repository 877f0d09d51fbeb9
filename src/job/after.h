/* SPDX-License-Identifier: MIT */
#pragma once

/* A word of "after" (job/ask.h) in a submit: all earlier jobs of the same user and name, however they end.
 * The core replaces it with their numbers. */
#define AFTER_SINGLETON "singleton"
