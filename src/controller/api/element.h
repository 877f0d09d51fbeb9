/* SPDX-License-Identifier: MIT */
/* "42.3" in a path: the element 3 of array 42. */
#pragma once

#include "controller/http/request.h"

/*
 * Goes on with request->job being the element's job. An element that still waits in its array becomes a job
 * of its own first when something is to be done with it (POST), which only its owner may; to look at, it is
 * its array.
 */
void element_find(struct request *request, void (*next)(struct request *request));
