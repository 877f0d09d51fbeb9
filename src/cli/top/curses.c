/* SPDX-License-Identifier: MIT */
/*
 * curses keeps its state in globals, and so does this file: there is one terminal. It includes few of mgpu's
 * headers, because curses defines macros and variables with common names.
 */
#include "cli/top/curses.h"

#include <curses.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "cli/top/codes.h"

#undef columns // of term.h

#define ESCAPE_MS 25 // an escape that is followed by nothing for this long is the key itself

static SCREEN *terminal;
static bool is_colored;

static const struct {
    int curses, ours;
} special_keys[] = {
    { KEY_UP, TOP_KEY_UP },
    { KEY_DOWN, TOP_KEY_DOWN },
    { KEY_PPAGE, TOP_KEY_PAGE_UP },
    { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
    { KEY_HOME, TOP_KEY_HOME },
    { KEY_END, TOP_KEY_END },
    { KEY_BACKSPACE, TOP_KEY_BACKSPACE },
    { KEY_ENTER, TOP_KEY_ENTER },
    { KEY_F(1), TOP_KEY_F1 },
    { KEY_F(2), TOP_KEY_F2 },
    { KEY_F(9), TOP_KEY_F9 },
    { KEY_F(10), TOP_KEY_F10 },
};

/* Where a press and its release arrive together, as over a slow connection, curses makes one click of both.
 */
#define MOUSE_EVENTS                                                                                         \
    (BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED)

static void set_modes(void)
{
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    (void)mousemask(MOUSE_EVENTS, NULL);
    (void)mouseinterval(0);
    set_escdelay(ESCAPE_MS);
}

int curses_open(bool has_color, struct error *err)
{
    int known = 0;
    const char *name = getenv("TERM");
    if (setupterm(name, STDOUT_FILENO, &known) != OK)
        return error_set(err, -ENOTTY, "unknown terminal type '%.60s'", name == NULL ? "" : name);
    bool can_place = cursor_address != NULL && clear_screen != NULL;
    (void)del_curterm(cur_term);
    if (!can_place)
        return error_set(err, -ENOTTY, "a terminal of type '%.60s' cannot position text", name);
    terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL)
        return error_set(err, -ENOTTY, "the terminal cannot be used");
    is_colored = has_color && has_colors() && start_color() == OK;
    if (is_colored) {
        (void)use_default_colors();
        for (short color = 0; color < 8; color++)
            (void)init_pair((short)(color + 1), color, -1);
    }
    set_modes();
    return 0;
}

static struct curses_event mouse_event(void)
{
    MEVENT mouse;
    struct curses_event event = { .kind = CURSES_MOUSE };
    if (getmouse(&mouse) != OK)
        return (struct curses_event){ .kind = CURSES_KEY };
    event.y = mouse.y;
    event.x = mouse.x;
    event.wheel = (mouse.bstate & BUTTON4_PRESSED) != 0 ? -1 : (mouse.bstate & BUTTON5_PRESSED) != 0 ? 1 : 0;
    event.is_double = (mouse.bstate & BUTTON1_DOUBLE_CLICKED) != 0;
    return event;
}

struct curses_event curses_next(void)
{
    wint_t wide = 0;
    int kind = get_wch(&wide);
    if (kind == ERR)
        return (struct curses_event){ .kind = CURSES_NOTHING };
    if (kind != KEY_CODE_YES)
        return (struct curses_event){ .kind = CURSES_KEY,
            .code = wide == 0x7f || wide == '\b' ? TOP_KEY_BACKSPACE : (int)wide };
    if (wide == KEY_RESIZE)
        return (struct curses_event){ .kind = CURSES_RESIZED };
    if (wide == KEY_MOUSE)
        return mouse_event();
    for (size_t i = 0; i < sizeof(special_keys) / sizeof(special_keys[0]); i++)
        if ((int)wide == special_keys[i].curses)
            return (struct curses_event){ .kind = CURSES_KEY, .code = special_keys[i].ours };
    return (struct curses_event){ .kind = CURSES_KEY };
}

void curses_size(int *ret_rows, int *ret_columns)
{
    getmaxyx(stdscr, *ret_rows, *ret_columns);
}

static void put_cell(int y, int x, const struct cell *cell, const struct theme *theme)
{
    attr_t attributes = A_NORMAL;
    short pair = 0;
    cchar_t shown;
    const wchar_t text[3] = { cell->text[0], cell->text[1], 0 };
    if (theme->looks[cell->look].is_bold)
        attributes |= A_BOLD;
    if (theme->looks[cell->look].is_dim)
        attributes |= A_DIM;
    if (theme->looks[cell->look].is_reverse != cell->is_selected)
        attributes |= A_REVERSE;
    if (is_colored && theme->looks[cell->look].paint != PAINT_NONE)
        pair = (short)(theme->looks[cell->look].paint + 1);
    if (setcchar(&shown, text, attributes, pair, NULL) == OK)
        (void)mvadd_wch(y, x, &shown);
}

void curses_show(const struct canvas *canvas, const struct theme *theme)
{
    for (int y = 0; y < canvas->rows; y++)
        for (int x = 0; x < canvas->columns; x++) {
            const struct cell *cell = canvas_cell(canvas, y, x);
            if (cell->text[0] != 0)
                put_cell(y, x, cell, theme);
        }
    (void)refresh();
}

void curses_leave(void)
{
    (void)def_prog_mode();
    (void)endwin();
}

void curses_return(void)
{
    (void)reset_prog_mode();
    (void)clearok(stdscr, TRUE);
    (void)refresh();
    set_modes();
}

void curses_close(void)
{
    if (terminal == NULL)
        return;
    (void)endwin();
    delscreen(terminal);
    terminal = NULL;
}
