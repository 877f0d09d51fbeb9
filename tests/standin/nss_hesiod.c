/* SPDX-License-Identifier: MIT */
/*
 * Stands in for a module of the name service whose server hangs: in mgpu-agent, and in the processes that
 * look users up for it, a lookup of the uid that stands in /mnt/hanging does not return while it stands
 * there. It knows no user itself.
 */
#include <nss.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum nss_status _nss_hesiod_getpwuid_r(
    uid_t uid, struct passwd *entry, char *text, size_t size, int *ret_error);

static bool is_of_agent(void)
{
    char name[16] = "";
    return prctl(PR_GET_NAME, name) == 0 &&
           (strcmp(name, "mgpu-agent") == 0 || strcmp(name, "mgpu-users") == 0);
}

static bool is_hanging(uid_t uid)
{
    unsigned named = 0;
    FILE *file = fopen("/mnt/hanging", "re");
    if (file == NULL)
        return false;
    bool is_named = fscanf(file, "%u", &named) == 1 && named == uid;
    (void)fclose(file);
    return is_named;
}

enum nss_status _nss_hesiod_getpwuid_r(
    uid_t uid, struct passwd *entry, char *text, size_t size, int *ret_error)
{
    while (is_of_agent() && is_hanging(uid))
        (void)usleep(10000);
    return NSS_STATUS_NOTFOUND;
}
