/* SPDX-License-Identifier: MIT */
/*
 * mgpu ssh-proxy: the ProxyCommand of OpenSSH that connects to a job. `exec` starts an sshd of the caller in
 * the job, without root and without a port, which serves this one connection on its standard input and
 * output. Processes started by ssh are its descendants, in the job's cgroup and with the job's limits.
 *
 * sshd gives its sessions their own environment, so each begins by loading that of the job.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/programs.h"
#include "cli/follow/session.h"
#include "cli/ports/ports.h"
#include "cli/ports/running.h"
#include "cli/ports/ssh_keys.h"

#define HOST_SUFFIX ".mgpu"

struct ssh_proxy_options {
    uint32_t rank;
    bool is_config;
};

static const struct option_row rows[] = {
    { 0, "config", NULL, "print the lines for ~/.ssh/config",
        OPTION_INNER(flag, struct ssh_proxy_options, is_config) },
    { 0, "rank", "N", "for a job on several nodes: rank N, from 0 (0)",
        OPTION_INNER(count, struct ssh_proxy_options, rank), OPTION_RANGE(0, UINT32_MAX) },
    { 0 },
};

/* Runs in the job. ForceCommand also applies to sftp, whose program it gets as the command. */
static const char server[] =
    "umask 077\n"
    "job_path=$PATH\n"
    "PATH=$PATH:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin\n"
    "sshd=$(command -v sshd) || {\n"
    "    echo 'mgpu ssh-proxy: this node has no sshd (Debian: openssh-server)' >&2\n"
    "    exit 127\n"
    "}\n"
    "dir=$(mktemp -d \"${TMPDIR:-/tmp}/mgpu-ssh.XXXXXXXX\") || exit 125\n"
    "trap 'rm -rf \"$dir\"' EXIT\n"
    "trap 'exit 129' HUP INT TERM\n"
    "printf '%s\\n' \"$MGPU_SSH_HOST_KEY\" >\"$dir/host_key\"\n"
    "printf '%s\\n' \"$MGPU_SSH_USER_KEY\" >\"$dir/user_key\"\n"
    "(\n"
    "    unset MGPU_SSH_HOST_KEY MGPU_SSH_USER_KEY DISPLAY HOME LOGNAME MAIL OLDPWD PWD SHELL SHLVL\n"
    "    unset SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SSH_ORIGINAL_COMMAND SSH_TTY TERM USER _\n"
    "    PATH=$job_path\n"
    "    export -p\n"
    ") >\"$dir/environment\"\n"
    "unset MGPU_SSH_HOST_KEY MGPU_SSH_USER_KEY\n"
    "{\n"
    "    echo \". '$dir/environment'\"\n"
    "    echo 'if [ -n \"${SSH_ORIGINAL_COMMAND+x}\" ]; then exec \"${SHELL:-/bin/sh}\" -c "
    "\"$SSH_ORIGINAL_COMMAND\"; fi'\n"
    "    echo 'exec \"${SHELL:-/bin/sh}\" -l'\n"
    "} >\"$dir/enter\"\n"
    "for sftp in /usr/lib/openssh /usr/libexec/openssh /usr/lib/ssh /usr/libexec; do\n"
    "    [ -x \"$sftp/sftp-server\" ] && break\n"
    "done\n"
    "cat >\"$dir/config\" <<END\n"
    "HostKey $dir/host_key\n"
    "AuthorizedKeysFile $dir/user_key\n"
    "AuthenticationMethods publickey\n"
    "PermitRootLogin yes\n"
    "StrictModes no\n"
    "UsePAM no\n"
    "PidFile none\n"
    "PrintMotd no\n"
    "PrintLastLog no\n"
    "LogLevel ERROR\n"
    "AcceptEnv LANG LC_*\n"
    "Subsystem sftp $sftp/sftp-server\n"
    "ForceCommand /bin/sh $dir/enter\n"
    "END\n"
    "\"$sshd\" -i -e -f \"$dir/config\"\n";

/* --- the lines for ~/.ssh/config --- */

static char *own_name(struct call *call)
{
    _cleanup_json_ json_t *answer = NULL;
    struct error ignored = { 0 };
    const char *user = NULL;
    if (client_get(&call->client, API_PATH "/whoami", &answer, &ignored) == 0)
        user = field_text(answer, "user");
    return xstrdup(user);
}

static int print_config(struct call *call, struct error *err)
{
    _cleanup_(ssh_keys_clear) struct ssh_keys keys = { 0 };
    _cleanup_free_ char *user = own_name(call), *program = program_find("mgpu");
    int r = ssh_keys_load(&keys, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *proxy = xasprintf("%s ssh-proxy%s%s%s%s", program,
        call->socket != NULL ? " --socket " : "", call->socket != NULL ? call->socket : "",
        call->host != NULL ? " --server " : "", call->host != NULL ? call->host : "");
    (void)printf(
        "# ssh gpu-job: your newest job; ssh 42.mgpu, ssh NAME.mgpu: the job with this number or name\n"
        "Host gpu-job\n"
        "    ProxyCommand %s @\n"
        "Host *" HOST_SUFFIX "\n"
        "    ProxyCommand %s %%n\n"
        "Host gpu-job *" HOST_SUFFIX "\n",
        proxy, proxy);
    if (user != NULL)
        (void)printf("    User %s\n", user);
    (void)printf("    IdentityFile \"%s/id_ed25519\"\n"
                 "    IdentitiesOnly yes\n"
                 "    HostKeyAlias " SSH_KEYS_HOST_ALIAS "\n"
                 "    UserKnownHostsFile \"%s/known_hosts\"\n"
                 "    StrictHostKeyChecking yes\n"
                 "    ControlPath none\n",
        keys.folder, keys.folder);
    return EXIT_OK;
}

/* --- a connection --- */

static json_t *make_body(const struct ssh_keys *keys)
{
    return json_pack("{s:[s,s,s,s],s:{s:s,s:s},s:b}", "command", "/bin/sh", "-c", server, "mgpu-ssh", "env",
        "MGPU_SSH_HOST_KEY", keys->host_key, "MGPU_SSH_USER_KEY", keys->user_key, "tty", 0);
}

/* ssh passes the host name as it was typed. */
static char *job_of_host(const char *host)
{
    size_t length = strlen(host), suffix = strlen(HOST_SUFFIX);
    bool is_host = length > suffix && strcmp(host + length - suffix, HOST_SUFFIX) == 0;
    return xstrndup(host, is_host ? length - suffix : length);
}

static int connect_to(struct call *call, const char *host, struct error *err)
{
    const struct ssh_proxy_options *options = call->options;
    _cleanup_(ssh_keys_clear) struct ssh_keys keys = { 0 };
    _cleanup_free_ char *word = job_of_host(host), *job = NULL;
    int r = ssh_keys_load(&keys, err);
    if (r == 0)
        r = running_job(call, word, LEAVER_SSH_PROXY, &job, err);
    if (r != 0)
        return r;
    _cleanup_json_ json_t *body = make_body(&keys);
    const struct session_options session = {
        .job = job, .rank = options->rank, .exec = body, .leaver = LEAVER_SSH_PROXY
    };
    int status = -1;
    uint64_t position = 0;
    r = session_run(call, &session, &status, &position, err);
    if (r < 0)
        return r;
    return r == SESSION_DETACHED || status < 0 || status > 255 ? EXIT_SELF : status;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct ssh_proxy_options *options = call->options;
    if (options->is_config && argc == 0)
        return print_config(call, err);
    if (argc == 1 && !options->is_config)
        return connect_to(call, argv[0], err);
    (void)error_set(err, -EINVAL, argc == 0 ? "no job given" : "give one job, or only --config");
    return error_hint(
        err, "ssh runs this command: mgpu ssh-proxy --config prints the necessary configuration");
}

const struct command command_ssh_proxy = {
    .name = "ssh-proxy",
    .usage = "[OPTIONS] JOB",
    .help = "Connect ssh, scp, sftp or an editor to the inside of a running job",
    .detail =
        "The ProxyCommand of OpenSSH. Once: mgpu ssh-proxy --config >> ~/.ssh/config; then ssh gpu-job, ssh\n"
        "42.mgpu, scp file 42.mgpu:, or Remote-SSH of VS Code. The node needs OpenSSH's sshd, but no open "
        "port.",
    .tables = { rows },
    .options_size = sizeof(struct ssh_proxy_options),
    .takes_jobs = true,
    .job_states = "running",
    .run = run,
};
