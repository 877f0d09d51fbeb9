#!/bin/bash
# SPDX-License-Identifier: MIT
# A job that can be requeued at any time and continues from there: checkpoint.sh [STEPS [SECONDS_EACH]]
#
#     mgpu submit --preemptible --checkpoint --signal USR1 --grace 2m -- ./checkpoint.sh 100 0.5
#
# Told by SIGUSR1, it saves after the step it is in, and says so; then it is ended and queued again.
# Without mgpu, MGPU_NOTIFY is not set, and reports are discarded.
steps=${1:-20} seconds=${2:-0.5}
state=${STATE:-checkpoint-${MGPU_JOB_ID:-0}}
notify=${MGPU_NOTIFY:-/dev/null}

wanted=
trap 'wanted=yes' USR1

# A file with another name first: what has the right name is whole.
save() {
    echo "$step" > "$state.tmp" && mv "$state.tmp" "$state"
}

step=0
[ -e "$state" ] && read -r step < "$state"
echo "attempt ${MGPU_ATTEMPT:-1} begins after step $step of $steps"

while [ "$step" -lt "$steps" ]; do
    sleep "$seconds" # the work of one step
    step=$((step + 1))
    printf 'PROGRESS=%d%%\nSTATUS=step %d of %d\n' $((100 * step / steps)) "$step" "$steps" > "$notify"
    if [ -n "$wanted" ]; then
        save
        echo "saved after step $step"
        echo CHECKPOINTED > "$notify"
        wanted=
    fi
done
rm -f "$state"
echo "done: all $steps steps"
