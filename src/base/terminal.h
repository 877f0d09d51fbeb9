/* SPDX-License-Identifier: MIT */
/*
 * The protocol between the terminal of a step and its viewers. A frame is one byte of type, three bytes of
 * length (big endian), and that many bytes. The agent sends the terminal one packet, a visit, which carries
 * the viewer's socket. docs/api.md describes the frames for other clients.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERMINAL_HEAD_SIZE   4U
#define TERMINAL_PAYLOAD_MAX 65536U
#define TERMINAL_TEXT_MAX    400U       // of the message of an end
#define TERMINAL_REFUSED     UINT32_MAX // exit status for a viewer that was refused

/* Of the process of an exec that has a key, whose client can return after its connection was lost. */
#define TERMINAL_KEEP_MS      60000        // how long the process waits for it; a restart takes less
#define TERMINAL_KEPT_SIZE    (1U << 20)   // bytes of frames that are not confirmed yet, in each direction
#define TERMINAL_CONFIRM_SIZE (64U << 10)  // bytes of frames after which they are confirmed
#define TERMINAL_SPARE_SIZE   4096U        // of the kept bytes: for frames other than input and output
#define TERMINAL_INPUT_SIZE   (256U << 10) // bytes of frames from the client that the process has not read yet

enum terminal_frame {
    /* from the step */
    TERMINAL_POSITION = 'p', // 8 bytes: how many bytes of output precede what follows
    TERMINAL_OUTPUT = 'o',
    TERMINAL_ERRORS = 'e', // standard error of a step without a terminal
    TERMINAL_SKIPPED =
        's',            // 8 bytes: how many bytes of output were dropped because the viewer read too slowly
    TERMINAL_END = 'x', // 4 bytes: the exit status; then a message
    TERMINAL_OUTPUT_END = 'f', // of a connection to a port: the job's side sends no more
    TERMINAL_TAKEN = 't',      // 8 bytes: how many bytes of input have arrived at the step
    TERMINAL_READ = 'r',       // 8 bytes: how many of them it has read; it reads no more
    /* from the viewer */
    TERMINAL_INPUT = 'i',
    TERMINAL_WINDOW = 'w',    // 2 bytes rows, 2 bytes columns
    TERMINAL_SIGNAL = 'k',    // 1 byte: for a step without a terminal
    TERMINAL_INPUT_END = 'c', // end of input
    TERMINAL_INPUT_CUT = 'q', // the same, because the sender leaves: the input is incomplete
    TERMINAL_LEAVE = 'l',     // of an exec: the client will not return
    /* From both: 8 bytes, how many bytes of frames have arrived since the start of the exec; for those of the
     * client, once the process has read its input. A connection to an exec with a key begins with such a
     * frame, which is not counted itself and does not wait for the process. */
    TERMINAL_CONFIRMED = 'a',
};

struct terminal_size {
    uint16_t rows, columns;
};

#define TERMINAL_ROWS    24U // of a terminal without viewers
#define TERMINAL_COLUMNS 80U

/* Writes the header of a frame. */
void terminal_head(uint8_t head[TERMINAL_HEAD_SIZE], enum terminal_frame type, size_t length);

/* Reads a header; false if the length is above the limit. */
bool terminal_read_head(const uint8_t head[TERMINAL_HEAD_SIZE], uint8_t *ret_type, size_t *ret_length);

/* Numbers in frames, big endian. */
void terminal_put(uint8_t *bytes, size_t size, uint64_t value);
uint64_t terminal_get(const uint8_t *bytes, size_t size);

/* The agent's packet to the spool file "tty"; it carries the viewer's socket (SCM_RIGHTS). */
struct terminal_visit {
    uint32_t magic;
    uint32_t is_read_only;
    struct terminal_size size; // rows 0: unknown
    uint32_t unused;           // 0: takes the place of padding
    uint64_t
        position; // where the output begins, or TERMINAL_LAST_SCREEN; of an exec with a key: bytes of frames
};
#define TERMINAL_VISIT_MAGIC    0x6d677476U
#define TERMINAL_FAREWELL_MAGIC 0x6d677466U // without a socket: the client of an exec has gone for good
#define TERMINAL_LAST_SCREEN    UINT64_MAX
