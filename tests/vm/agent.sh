# SPDX-License-Identifier: MIT
# Checks of mgpu-agent.service, in the guest with systemd: mgpud, of a unit that is made here, is another machine's for it.

agent_unit=mgpu-agent.service
with_gpus=/run/systemd/system/$agent_unit.d

is_up() {
    [ "$(mgpu nodes -H -o state vm1)" = up ]
}

main_pid() {
    systemctl show --property MainPID --value "$1"
}

# The command of the unit as it is installed, with two GPUs.
give_gpus() {
    mkdir -p $with_gpus
    installed=$(systemctl cat $agent_unit | sed -n 's/^ExecStart=//p')
    printf '[Service]\nExecStart=\nExecStart=%s --gpus sim:2x8G\n' "$installed" >$with_gpus/gpus.conf
    systemctl daemon-reload
}

head_starts() {
    systemctl stop mgpud
    systemd-run --quiet --unit=head --service-type=notify mgpud --state-dir /var/lib/head --run-dir /run/head --gpus none \
        --node head --nodes-listen 127.0.0.1:9124
}

the_unit_waits_for_a_join() {
    systemctl start $agent_unit
    equal "$(systemctl is-active $agent_unit)" inactive "a unit of a machine that has not joined"
}

an_agent_joins() {
    mgpu node token --host 127.0.0.1 | mgpu-agent --join-file - --join-only --node vm1
    give_gpus
    systemctl enable --now $agent_unit
    await is_up
    [ ! -e "/proc/$(main_pid mgpud)/exe" ] || fail "mgpud of this machine runs beside it"
}

its_job_runs_where_it_belongs() {
    equal "$(mgpu ps -a --ended -H -o node "$1")" vm1 "its node"
    case $2 in
    /system.slice/mgpu-jobs.service/mgpu.*/j*.1/step0.0) ;;
    *) fail "the job is in $2" ;;
    esac
}

still_runs() {
    equal "$(state "$1")" running "its state"
    equal "$(sed -n 's/^0:://p' "/proc/$3/cgroup")" "$2" "its cgroup"
}

has_another_agent() {
    now=$(main_pid $agent_unit)
    [ "$now" != 0 ] && [ "$now" != "$1" ]
}

a_job_outlives_a_restart_of_the_agent() {
    before=$(main_pid $agent_unit)
    systemctl restart $agent_unit
    has_another_agent "$before" || fail "the same process"
    await is_up
    still_runs "$@"
}

has_left() {
    ! pgrep -x mgpu-uplink && ! pgrep -f 'uplink-fd' && ! is_up
}

a_job_outlives_a_stop_of_the_agent() {
    systemctl stop $agent_unit
    await has_left
    equal "$(systemctl is-active $agent_unit)" inactive "the unit"
    still_runs "$@"
    systemctl start $agent_unit
    await is_up
    still_runs "$@"
}

a_killed_agent_comes_back() {
    killed=$(main_pid $agent_unit)
    kill -9 "$killed"
    await has_another_agent "$killed"
    await is_up
    still_runs "$@"
}

an_end_while_it_is_stopped_is_told_later() {
    systemctl stop $agent_unit
    await has_left
    let_go agent word
    await test ! -e "/proc/$2"
    systemctl start $agent_unit
    ended "$1" 9
    equal "$(as ta mgpu logs "$1" | tr '\n' ' ')" "begin end word " "its output"
}

export MGPU_SOCKET=/run/head/mgpud.sock
check "mgpud of a cluster starts" head_starts
check "mgpu-agent.service does nothing on a machine that has not joined" the_unit_waits_for_a_join
check "a machine joins, and mgpu-agent.service makes it a node" an_agent_joins
hold agent -g 1
check "a job of the node runs in the cgroup of all jobs" its_job_runs_where_it_belongs "$id" "$cgroup"
check "a job outlives a restart of mgpu-agent.service" a_job_outlives_a_restart_of_the_agent "$id" "$cgroup" "$pid"
check "a job outlives a stop and a start of mgpu-agent.service" a_job_outlives_a_stop_of_the_agent "$id" "$cgroup" "$pid"
check "a killed agent is started again, and the job goes on" a_killed_agent_comes_back "$id" "$cgroup" "$pid"
check "an end while mgpu-agent.service is stopped is told later" an_end_while_it_is_stopped_is_told_later "$id" "$pid"
