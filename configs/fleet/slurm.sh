#!/bin/bash
# One row of a table by a job array: each task measures a shard on a GPU of its own, and the last one merges them.
#
#     sbatch --array=0-7 configs/fleet/slurm.sh cifar10-dct dct [OPTION of fid calc]...
#
# A task that is lost can be given again (scontrol requeue): it goes on from its last stretch. DATA is a folder that all
# nodes see, with models/, fid/ and the features' file.
#SBATCH --job-name=anisoflight-fid
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

model=${1:?"usage: sbatch --array=0-N slurm.sh MODEL METHOD [OPTION of fid calc]..."}
method=${2:?"usage: sbatch --array=0-N slurm.sh MODEL METHOD [OPTION of fid calc]..."}
data=${DATA:-data}
benchmark=${BENCHMARK:-cifar10}
features=${FEATURES:-$data/inception-2015-12-05.pt}
index=$SLURM_ARRAY_TASK_ID
count=$SLURM_ARRAY_TASK_COUNT
shards=$data/fid/$method-$SLURM_ARRAY_JOB_ID

# A server of this task alone, on a folder of its own: what samples depend on is copied there.
own=$(mktemp -d "${TMPDIR:-/tmp}/anisoflight-XXXXXX")
for kind in models schedules bases; do
	if [ -d "$data/$kind" ]; then cp -r "$data/$kind" "$own/"; fi
done
# The pipe to the server's standard input ends with this script, however it ends, and the server with the pipe.
exec 3> >(exec anisoflight serve --data "$own" --listen "unix:$own/socket" --until-eof >/dev/null 2>"$own/log")
server=$!
trap 'exec 3>&-; while kill -0 "$server" 2>/dev/null; do sleep 0.2; done; rm -rf "$own"' EXIT
until grep -q 'listening on' "$own/log" 2>/dev/null; do
	kill -0 "$server" 2>/dev/null || { cat "$own/log" >&2; exit 1; }
	sleep 1
done

mkdir -p "$shards"
python -m anisoflight.fid calc --server "grpc+unix://$own/socket" --model "$model" --second-point endpoint \
	--nfe "${NFE:-$benchmark}" --seeds "${SEEDS:-0-49999,50000-99999,100000-149999}" --ref "$data/fid/$benchmark.npz" \
	--features "$features" --benchmark "$benchmark" --method "$method" "${@:3}" \
	--shard "$index/$count" --out "$shards/$index.npz" --quiet

# Whoever finds all shards there merges them; two that do at once wait for each other, and the rows are written once.
set -- "$shards"/*.npz
if [ $# -eq "$count" ]; then
	python -m anisoflight.fid merge "$@" --out "$data/fid/$benchmark.jsonl" --quiet
fi
