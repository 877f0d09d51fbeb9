#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workers that search hyperparameters together: each is an element of an array with its own GPU.

    mgpu submit -g 1 -a 0-3 -J sweep -- python3 sweep.py

    sweep.py [TRIALS]    the trials that each worker runs
    sweep.py --report    the best trial, and what each worker did

The study is in study.db of the working directory. A worker that is requeued runs only the trials that it has not finished.
"""

import fcntl
import os
import sys
import time

import optuna
from optuna.trial import TrialState

LOCKED_S = 60  # for which a worker waits while others write
WORKER = int(os.environ.get('MGPU_ARRAY_INDEX', 0))
STEPS = 20


def objective(trial):
    """The loss of a training, here of two weights by gradient descent. Reports it after each step, and ends early when others did better."""
    trial.set_user_attr('worker', WORKER)
    trial.set_user_attr('gpus', os.environ.get('MGPU_GPUS', ''))
    rate = trial.suggest_float('rate', 1e-3, 1.0, log=True)
    momentum = trial.suggest_float('momentum', 0.0, 0.95)
    weights, speeds, loss = [5.0, -4.0], [0.0, 0.0], 0.0
    for step in range(STEPS):
        for i, curvature in enumerate((1.0, 3.0)):
            speeds[i] = momentum * speeds[i] - rate * curvature * weights[i]
            weights[i] += speeds[i]
        time.sleep(0.05)  # the work of a step
        loss = min(weights[0] ** 2 + 3 * weights[1] ** 2, 1e6)
        trial.report(loss, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


def own(study, *states):
    return [trial for trial in study.get_trials(deepcopy=False, states=states) if trial.user_attrs.get('worker') == WORKER]


def work(study, trials):
    for trial in own(study, TrialState.RUNNING):  # of an attempt that was ended
        study.tell(trial.number, state=TrialState.FAIL)
    left = trials - len(own(study, TrialState.COMPLETE, TrialState.PRUNED))
    print(f"worker {WORKER} on GPU {os.environ.get('MGPU_GPUS')}, attempt {os.environ.get('MGPU_ATTEMPT', 1)}: {left} trials", flush=True)
    study.optimize(objective, n_trials=max(left, 0))


def report(study):
    trials = study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED))
    begin = min(trial.datetime_start for trial in trials)
    for worker in sorted({trial.user_attrs['worker'] for trial in trials}):
        mine = [trial for trial in trials if trial.user_attrs['worker'] == worker]
        first = (min(trial.datetime_start for trial in mine) - begin).total_seconds()
        last = (max(trial.datetime_complete for trial in mine) - begin).total_seconds()
        print(f"worker {worker} on GPU {mine[-1].user_attrs['gpus']}: {len(mine)} trials, from {first:.1f} s to {last:.1f} s")
    print(f"best of {len(trials)} trials: loss {study.best_value:.5f}, rate {study.best_params['rate']:.5f}, "
          f"momentum {study.best_params['momentum']:.5f}")


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with open('study.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers cannot create the tables at the same time
        storage = optuna.storages.RDBStorage('sqlite:///study.db', engine_kwargs={'connect_args': {'timeout': LOCKED_S}})
        study = optuna.create_study(study_name='sweep', storage=storage, load_if_exists=True,
                                    sampler=optuna.samplers.TPESampler(), pruner=optuna.pruners.MedianPruner())
    if sys.argv[1:] == ['--report']:
        report(study)
    else:
        work(study, int(sys.argv[1]) if len(sys.argv) > 1 else 6)


if __name__ == '__main__':
    main()
