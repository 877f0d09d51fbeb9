# SPDX-License-Identifier: MIT
# Checks of the units, in the guest with systemd.

unit_group=$groups/system.slice/mgpu-jobs.service

the_unit_leaves_tasks_to_others() {
    most=$(cat /proc/sys/kernel/threads-max)
    equal "$(cat $unit_group/pids.max)" $((most * 80 / 100)) "tasks of all jobs, of $most"
    equal "$(cat $unit_group/cgroup.procs)" "" "processes in the way of controllers"
}

stopping_mgpud_leaves_jobs_alone() {
    systemctl stop mgpud
    equal "$(cat "$groups$2/cgroup.procs" | grep -cx "$3")" 1 "its process while mgpud is stopped"
    [ -d /run/mgpu/spool ] || fail "the spool is gone"
    systemctl start mgpud
    equal "$(state "$1")" running "its state"
}

stopping_mgpu_jobs_ends_them() {
    systemctl stop mgpu-jobs
    [ ! -e "$groups$2" ] || fail "its cgroup is there"
    systemctl start mgpud
    code=$(exit_code "$1")
    [ "$code" != 0 ] && [ "$code" != 125 ] || fail "exit code $code"
}

has_another_holder() {
    now=$(systemctl show --property MainPID --value mgpu-jobs)
    [ "$now" != 0 ] && [ "$now" != "$1" ]
}

# systemd starts the unit again, with a new cgroup.
the_holder_may_be_killed() {
    holder=$(systemctl show --property MainPID --value mgpu-jobs)
    kill -9 "$holder"
    await has_another_holder "$holder"
    await mgpu doctor >/dev/null
    ended "$(submit ta -g 1 -- sh -c 'exit 3')" 3
    the_unit_leaves_tasks_to_others
}

# Without an agent there is no node, so doctor has one complaint.
the_confined_controller_serves() {
    systemctl stop mgpud
    systemctl start mgpu-controller
    as ta mgpu ps >/dev/null || fail "no list of jobs"
    mgpu doctor | grep -q 'no node has connected yet' || fail "doctor: $(mgpu doctor)"
    systemctl stop mgpu-controller
    systemctl start mgpud
    await mgpu doctor >/dev/null
}

# As from a shell of a session, whose cgroup others share: it gets a scope of its own.
who_types_mgpud_has_all_limits() {
    systemctl stop mgpud
    systemctl stop mgpu-jobs
    rm -f /run/mgpu/cgroup
    systemd-run --scope --quiet --unit=session-77 sh -c 'mgpud --detach; sleep 30' &
    await mgpu doctor >/dev/null
    await limits_are_on
    id=$(submit ta -g 0 -M 64M -- dd if=/dev/zero of=/dev/null bs=200M count=1)
    ended "$id" 137
    the_job_is_in "/system.slice/mgpu-agent-*.scope/mgpu.*"
    mgpud --stop
    await no_scope_is_left
    rm -f /run/mgpu/cgroup
    systemctl start mgpud
    await mgpu doctor >/dev/null
}

no_scope_is_left() {
    [ -z "$(ls -d $groups/system.slice/mgpu-agent-*.scope 2>/dev/null)" ]
}

hold unit -g 1
check "mgpu-jobs has no process of its own, and a fifth of the tasks is for others" the_unit_leaves_tasks_to_others
check "a job outlives mgpud while it is stopped" stopping_mgpud_leaves_jobs_alone "$id" "$cgroup" "$pid"
check "stopping mgpu-jobs ends all jobs" stopping_mgpu_jobs_ends_them "$id" "$cgroup"
check "jobs start in a cgroup that was made anew" the_holder_may_be_killed
check "mgpud is confined where no jobs run" the_confined_controller_serves
check "root's mgpud that somebody types has all limits, in a scope that goes with it" who_types_mgpud_has_all_limits
