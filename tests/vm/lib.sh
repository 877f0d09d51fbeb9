# SPDX-License-Identifier: MIT
# What the checks are written with. A check is a function that runs in a subshell and may end it with `fail`.

guest=$1
count=0
fifo=/vm/fifo
groups=/sys/fs/cgroup

fail() {
    echo "$*"
    exit 1
}

# equal GOT WANTED WHAT
equal() {
    [ "$1" = "$2" ] || fail "$3: '$1' instead of '$2'"
}

# check CLAIM FUNCTION [ARGUMENTS]
check() {
    claim=$1
    count=$((count + 1))
    shift
    if said=$("$@" 2>&1); then
        echo "ok $count - $guest: $claim"
    else
        echo "not ok $count - $guest: $claim"
        echo "$said" | sed 's/^/# /'
    fi
}

# check_if FEATURE CLAIM FUNCTION: only where `mgpu doctor` says that the feature is on.
check_if() {
    line=$(mgpu doctor | grep "^o[nf]* *$1 " || echo "off  $1 is not known to mgpu doctor")
    shift
    case $line in
    on*) check "$@" ;;
    *)
        count=$((count + 1))
        echo "ok $count - $guest: $1 # SKIP $line"
        ;;
    esac
}

# Runs the command until it succeeds, for at most two minutes: the guest is slow beside other work.
await() {
    deadline=$(($(date +%s) + 120))
    until "$@"; do
        [ "$(date +%s)" -lt "$deadline" ] || fail "not so within 120 s: $*"
        /vm/busybox usleep 50000
    done
}

# pgrep -x NAME, -f TEXT of the command line, or -fx the whole of it: pids, one a line. (Debian's busybox has none.)
pgrep() {
    found=1
    for process in /proc/[0-9]*; do
        said=
        case $1 in
        -x) read -r said <"$process/comm" && [ "$said" = "$2" ] || continue ;;
        -fx) [ "$(tr '\0' ' ' <"$process/cmdline")" = "$2 " ] || continue ;;
        -f) tr '\0' ' ' <"$process/cmdline" | grep -qF -- "$2" || continue ;;
        esac
        echo "${process#/proc/}"
        found=0
    done 2>/dev/null
    return $found
}

as() {
    user=$1
    shift
    /vm/busybox su -s /bin/sh -c 'cd && exec "$@"' -- "$user" sh "$@"
}

# submit USER OPTIONS... -- COMMAND: the number of the job
submit() {
    user=$1
    shift
    as "$user" mgpu submit -q "$@"
}

# Waits for the end of a job and tells its exit code as `mgpu wait` has it.
exit_code() {
    code=0
    mgpu wait --timeout 120s "$1" >/dev/null 2>&1 || code=$?
    echo "$code"
}

# ended JOB CODE: it has ended with that exit code
ended() {
    got=$(exit_code "$1")
    [ "$got" = "$2" ] || fail "exit code $got instead of $2: $(mgpu show "$1")"
}

state() {
    mgpu ps -a --ended -H -o state "$1"
}

# hold NAME [OPTIONS...]: starts job-hold as ta; afterwards $id, $pid and $cgroup are the job's.
hold() {
    name=$1
    shift
    mkfifo -m 666 "$fifo/$name.in" "$fifo/$name.out"
    id=$(submit ta "$@" -- /vm/job-hold "$name")
    said=$(timeout 60 cat "$fifo/$name.out")
    pid=${said%% *}
    cgroup=${said#* }
}

# let_go NAME WORD: lets it end
let_go() {
    echo "$2" >"$fifo/$1.in"
}
