/* SPDX-License-Identifier: MIT */
/* The tables of docs/slurm.md, from those that the commands obey. */
#pragma once

/* `mgpu-slurm tables`: prints them all. */
void slurm_document(void);
