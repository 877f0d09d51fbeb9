/* SPDX-License-Identifier: MIT */
#include "cli/term/raw_terminal.h"

#include <unistd.h>

void raw_terminal_set(struct raw_terminal *raw)
{
    if (raw->is_set || tcgetattr(STDIN_FILENO, &raw->before) < 0)
        return;
    struct termios modes = raw->before;
    cfmakeraw(&modes);
    raw->is_set = tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0;
}

void raw_terminal_set_keys(struct raw_terminal *raw)
{
    /* A background process that changes terminal modes would be stopped. */
    if (raw->is_set || tcgetattr(STDIN_FILENO, &raw->before) < 0 || tcgetpgrp(STDIN_FILENO) != getpgrp())
        return;
    struct termios modes = raw->before;
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    raw->is_set = tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0;
}

void raw_terminal_restore(struct raw_terminal *raw)
{
    if (raw->is_set)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw->before);
    raw->is_set = false;
}
