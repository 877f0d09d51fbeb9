/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "base/system_mgpud.h"
#include "cli/api/client.h"

/* True if this user, who is not root, has had an mgpud: its socket still exists. */
static bool had_own_mgpud(void)
{
    const struct client nothing_asked = { 0 };
    _cleanup_strings_ struct strings places = { 0 };
    struct stat st;
    client_places(&nothing_asked, &places);
    for (size_t i = 0; i < places.count && geteuid() != 0; i++)
        if (stat(places.items[i], &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid())
            return true;
    return false;
}

#define UNAFFECTED "jobs are not affected while it is down"

static bool has_systemd(void)
{
    return access("/run/systemd/system", F_OK) == 0;
}

/* What the user can do depends on who that is, on traces of the machine's mgpud and of one of their own, and
 * on whether systemd runs here. */
const char *client_absence_hint(void)
{
    static const char *const of_root[2][2] = {
        // without and with traces of the machine's mgpud; without and with systemd
        { "it can be started for all users of this machine: mgpud --detach",
            "it can be started for all users of this machine: systemctl start mgpud, or mgpud --detach" },
        { "start it again, with its options: mgpud --detach; " UNAFFECTED,
            "see systemctl status mgpud, or start it again: mgpud --detach, with its options; " UNAFFECTED },
    };
    static const char *const of_users[2][2][2] = {
        // of the machine's; of the user's own; systemd
        { { "start your own without root: mgpud --detach",
              "systemctl status mgpud, or start your own without root: mgpud --detach" },
            { "your own mgpud is not running: mgpud --detach, with its options, starts it again; " UNAFFECTED,
                "your own mgpud is not running: mgpud --detach, with its options, starts it "
                "again; " UNAFFECTED } },
        { { "this machine has one for all users, which its administrator starts; " UNAFFECTED,
              "see systemctl status mgpud: this machine has one for all users, and " UNAFFECTED },
            { "this machine has one for all users, which its administrator starts, and you had one of your "
              "own; " UNAFFECTED,
                "see systemctl status mgpud: this machine has one for all users, and you had one of your "
                "own; " UNAFFECTED } },
    };
    bool has_trace = system_mgpud_trace() != NULL;
    return geteuid() == 0 ? of_root[has_trace][has_systemd()]
                          : of_users[has_trace][had_own_mgpud()][has_systemd()];
}
