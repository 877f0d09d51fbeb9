/* SPDX-License-Identifier: MIT */
/* The tables of docs/slurm.md, generated from those that the commands use. */
#pragma once

/* `mgpu-slurm tables`: prints them all. */
void slurm_document(void);
