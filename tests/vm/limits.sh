# SPDX-License-Identifier: MIT
# Checks of what a job may use. Simulated GPUs have nodes without a driver behind them: opening one that the
# filter allows fails with ENXIO, one that it denies with EPERM.

devices=/vm/devices

limits_prepare() {
    mkdir -p $devices
    for gpu in 0 1 2 3; do
        mknod -m 666 "$devices/nvidia$gpu" c 195 "$gpu"
    done
    ! mgpud --help | grep -q -- --device-dir || echo "device-dir: $devices" >>/etc/mgpu/mgpu.yaml
}

# A job that takes 200 MiB with 64 MiB, beside one that keeps within its own.
too_much_memory_ends_the_job_alone() {
    hold neighbour -g 0 -M 64M
    bomb=$(submit ta -g 0 -M 64M -- sh -c 'echo last words; exec dd if=/dev/zero of=/dev/null bs=200M count=1')
    ended "$bomb" 137
    mgpu postmortem "$bomb" | grep -q 'last words' || fail "$(mgpu postmortem "$bomb")"
    mgpu show --json "$bomb" | grep -q '"ended_by": "oom"' || fail "$(mgpu show "$bomb")"
    equal "$(state "$id")" running "the neighbour"
    let_go neighbour word
    ended "$id" 9
}

a_limit_outlives_restarts() {
    mkfifo -m 666 $fifo/limit.in
    id=$(submit ta -g 0 -M 64M -- sh -c 'read word </vm/fifo/limit.in; exec dd if=/dev/zero of=/dev/null bs=200M count=1')
    await sh -c "mgpu ps -a -H -o state $id | grep -q running"
    "restart_$guest"
    kill -9 "$(pgrep -x mgpu-shepherd)" "$(pgrep -x mgpu-agent)"
    echo word >$fifo/limit.in
    ended "$id" 137
    mgpu show "$id" | grep -q 'used more than its 64 MiB of host memory' || fail "$(mgpu show "$id")"
}

who_runs_jobs_is_spared() {
    hold spared -g 0
    for name in mgpud mgpu-keeper mgpu-agent mgpu-shepherd; do
        for process in $(pgrep -x $name); do
            [ "$(cat "/proc/$process/oom_score_adj")" -le -900 ] || fail "$name: $(cat "/proc/$process/oom_score_adj")"
        done
    done
    equal "$(cat "/proc/$pid/oom_score_adj")" 0 "the job's score"
    let_go spared word
    ended "$id" 9
}

a_job_has_the_cpus_it_asked_for() {
    id=$(submit ta -g 0 -c 1 -- sh -c 'nproc; cat /sys/fs/cgroup$(dirname $(sed -n s/^0:://p /proc/self/cgroup))/cpu.max')
    ended "$id" 0
    case $(as ta mgpu logs "$id" | tr '\n' ' ') in
    "1 "* | *" 100000 100000 ") ;;
    *) fail "$(as ta mgpu logs "$id")" ;;
    esac
}

the_step_is_gone() {
    ! pgrep -fx 'sleep 600'
}

# srun's steps have cgroups of their own beside that of the command: they are limited, and end with the job.
a_step_is_limited_below_its_job() {
    hold wide -g 0 -c 1 -M 256M
    step() {
        as ta mgpu-slurm srun --jobid="$id" "$@"
    }
    said=$(step -c 1 --mem=64M /vm/busybox sh -c 'sed -n s/^0:://p /proc/self/cgroup')
    equal "$(dirname "$said")" "$(dirname "$cgroup")" "the attempt of the step"
    [ "$said" != "$cgroup" ] || fail "the step is in the cgroup of the command"
    rc=0
    step --mem=64M dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null || rc=$?
    equal $rc 137 "a step of 200 MiB with 64 MiB"
    equal "$(as ta mgpu-slurm sacct -n -P -j "$id.1" -o State,ExitCode)" "OUT_OF_MEMORY|0:125" "sacct of the step"
    cpus=$(step --exact -c 1 --overlap /vm/busybox nproc)
    equal "$cpus" 1 "CPUs of a step with one"
    step --overlap --mem=64M sleep 600 &
    await pgrep -fx 'sleep 600'
    equal "$(state "$id")" running "its job"
    let_go wide word
    ended "$id" 9
    await the_step_is_gone
    wait $! || true
}

# The limit is lowered from outside, so that the bomb stays small.
a_fork_bomb_stops_at_the_limit() {
    hold neighbour2 -g 0
    limit=$(cat "$groups$(dirname "$cgroup")/pids.max")
    [ "$limit" != max ] || fail "pids.max is max"
    mkfifo -m 666 $fifo/bomb.in $fifo/bomb.out
    bomb=$(submit ta -g 0 -- sh -c 'sed -n s/^0:://p /proc/self/cgroup >/vm/fifo/bomb.out; read word </vm/fifo/bomb.in
        n=0; while [ $n -lt 100 ]; do sleep 7778 & n=$((n + 1)); done')
    bomb_group=$groups$(timeout 60 cat $fifo/bomb.out)
    echo 30 >"$(dirname "$bomb_group")/pids.max"
    echo word >$fifo/bomb.in
    [ "$(exit_code "$bomb")" != 0 ] || fail "it forked 100 times"
    as ta mgpu logs "$bomb" | grep -qi fork || fail "$(as ta mgpu logs "$bomb")"
    ! pgrep -f 'sleep 7778' || fail "a process is left"
    let_go neighbour2 word
    ended "$id" 9
}

# Words that opening each GPU ends with, and how many of them.
opened() {
    as ta mgpu logs "$1" | sed 's/.*: //' | sort | uniq -c | tr -s ' \n' ' '
}

open_all='for gpu in 0 1 2 3; do cat /vm/devices/nvidia$gpu 2>&1; done; exit 0'

a_job_opens_its_gpus_alone() {
    id=$(submit ta -g 1 -- sh -c "$open_all")
    ended "$id" 0
    equal "$(opened "$id")" " 1 No such device or address 3 Operation not permitted " "with -g 1"
    id=$(submit ta -g 0 -- sh -c "$open_all")
    ended "$id" 0
    equal "$(opened "$id")" " 4 Operation not permitted " "with -g 0"
}

a_job_of_root_makes_no_device() {
    mknod /vm/spare c 195 3 || fail "not even outside of a job"
    id=$(submit root -g 1 -- sh -c 'cd /tmp && ! mknod own c 195 3')
    ended "$id" 0
}

a_filter_outlives_restarts() {
    mkfifo -m 666 $fifo/late.in
    id=$(submit ta -g 1 -- sh -c "read word </vm/fifo/late.in; $open_all")
    await sh -c "mgpu ps -a -H -o state $id | grep -q running"
    "restart_$guest"
    kill -9 "$(pgrep -x mgpu-agent)"
    echo word >$fifo/late.in
    ended "$id" 0
    equal "$(opened "$id")" " 1 No such device or address 3 Operation not permitted " "afterwards"
}

limits_check() {
    check_if memory "too much memory ends the job alone, as oom" too_much_memory_ends_the_job_alone
    check_if memory "a limit outlives restarts and the shepherd" a_limit_outlives_restarts
    check "the daemons and shepherds are spared when memory runs out" who_runs_jobs_is_spared
    check_if cpu "a job has the CPUs it asked for" a_job_has_the_cpus_it_asked_for
    check_if memory "a step is limited below its job, and ends with it" a_step_is_limited_below_its_job
    check_if pids "a fork bomb stops at the limit" a_fork_bomb_stops_at_the_limit
    check_if devices "a job opens its GPUs and no other" a_job_opens_its_gpus_alone
    check_if devices "a job of root makes no device node" a_job_of_root_makes_no_device
    check_if devices "a filter outlives restarts" a_filter_outlives_restarts
}
