/* SPDX-License-Identifier: MIT */
/* The checksum of mgpu's records. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli), as in RFC 3720 appendix B.4; `crc` is 0 for a first run of bytes. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t length);
