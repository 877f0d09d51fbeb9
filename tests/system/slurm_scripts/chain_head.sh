#!/bin/bash
#SBATCH --job-name=chain
#SBATCH --time=5
#SBATCH --output=chain.out
first=$(sbatch --parsable --output=chain-1.out --wrap="echo prepare")
second=$(sbatch --parsable --output=chain-2.out --dependency=afterok:$first --wrap="echo train")
third=$(sbatch --parsable --output=chain-3.out --dependency=afterany:$first:$second --wrap="cat chain-1.out chain-2.out")
echo "$first $second $third" | wc -w
