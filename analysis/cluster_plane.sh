#!/bin/sh
# A million points on a cluster: the plan, the job to submit, and the same at a toy size.
#   sh analysis/cluster_plane.sh [FOLDER]
set -eu
study=$(dirname "$0")/cluster_plane.toml
folder=${1:-results/cluster}
mkdir -p "$folder"

# 1. The plan: is the study valid, how long will it take, how large is the file?
statmech-attn run "$study" --dry-run

# 2. The job array that is submitted on the cluster by the last line that this prints.
statmech-attn slurm "$study" --output "$folder/plane.h5" \
    --tasks 100 --cpus 8 --time 12:00:00 --account physics

# 3. The same work at a toy size: three workers share the chunks of one output, as the
#    tasks of the array do, and the one that finds all of them done merges the file.
#    Its windows are short and never doubled: many of its points are undetermined.
toy() {
    statmech-attn run "$study" --output "$folder/toy.h5" --chunk 8 --workers 1 --quiet \
        --log-file "$folder/$1.log" \
        --set parameters.beta.num=6 --set parameters.gamma.num=4 \
        --set run.transient=400 --set run.steps=800 --set run.max_doublings=0
}
toy worker-1 & first=$!
toy worker-2 & second=$!
toy worker-3 & third=$!
wait $first
wait $second
wait $third
statmech-attn status "$folder/toy.h5" --json

# 4. The merged file, for a paper and for other programs.
statmech-attn info "$folder/toy.h5"
statmech-attn figure "$folder/toy.h5" --output "$folder"
statmech-attn export "$folder/toy.h5" --csv "$folder/toy.csv"
