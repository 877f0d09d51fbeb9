/* SPDX-License-Identifier: MIT */
#pragma once

#define MGPU_VERSION "0.2.0"
