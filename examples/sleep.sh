#!/bin/sh
# SPDX-License-Identifier: MIT
# A job that only takes a while: sleep.sh [SECONDS]
seconds=${1:-2}
echo "job $MGPU_JOB_ID sleeps for $seconds s"
sleep "$seconds"
echo "job $MGPU_JOB_ID has slept"
