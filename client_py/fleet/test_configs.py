"""The files for clusters: of the shape that Kubernetes asks for, and a batch script that does what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small import measured

import anisoflight
from anisoflight.fid.__main__ import main
from anisoflight.serving.local import find_binary

ROOT = Path(__file__).parents[2]
SLURM, KUBERNETES = (ROOT / "configs" / "fleet" / name for name in ("slurm.sh", "kubernetes.yml"))


def test_the_manifest_is_valid() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    documents = list(yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8")))
    assert [d["kind"] for d in documents] == ["Service", "Deployment", "HorizontalPodAutoscaler", "Job"]
    for document in documents:
        validate.validate(document, "1.33", strict=True)
    with pytest.raises(validate.ValidationError):  # what can fail
        validate.validate({**documents[0], "spec": {"ports": "8815"}}, "1.33", strict=True)


def test_the_manifest_names_what_there_is() -> None:
    """Its flags are those of serve and of fid calc, and its metric is one that a server reports."""
    service, deployment, scaler, job = yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8"))
    output = subprocess.run([find_binary(), "serve", "--help"], capture_output=True, text=True, check=True).stdout
    pods = [document["spec"]["template"]["spec"] for document in (deployment, job)]
    for container in (c for pod in pods for c in pod["containers"] + pod["initContainers"] if c["name"] == "server"):
        assert all(word in output for word in container["args"] if word.startswith("--")), container["args"]
    assert (
        f"dns:{service['metadata']['name']}:{service['spec']['ports'][0]['port']}" in pods[0]["containers"][0]["args"]
    )
    metric = scaler["spec"]["metrics"][0]["pods"]["metric"]["name"].removeprefix("anisoflight_")
    assert f'("{metric}"' in (ROOT / "flight" / "metrics.go").read_text(encoding="utf-8")
    measures = [sys.executable, "-m", "anisoflight.fid", "calc", "--help"]
    output = subprocess.run(measures, capture_output=True, text=True, check=True).stdout
    (command,) = pods[1]["containers"][0]["args"]
    assert all(word in output for word in command.split() if word.startswith("--"))
    assert f'--shard "$JOB_COMPLETION_INDEX/{job["spec"]["completions"]}"' in command


def test_the_script_is_clean() -> None:
    subprocess.run([Path(sys.executable).with_name("shellcheck"), SLURM], check=True)


def test_the_script_measures_a_row_in_an_array(folder: Path, tmp_path: Path) -> None:
    """Two tasks, as Slurm starts them, the second of which merges: the bytes of one server."""
    data = tmp_path / "data"
    (data / "fid").mkdir(parents=True)
    (data / "models").symlink_to(folder / "data" / "models")
    (data / "fid" / "blocks.npz").write_bytes((folder / "blocks.npz").read_bytes())
    paths = [str(Path(find_binary()).parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(paths),
        "PYTHONPATH": str(ROOT / "client_py"),
        "DATA": str(data),
        "TMPDIR": str(folder),
        "BENCHMARK": "blocks",
        "FEATURES": "pixels",
        "NFE": "1,5",
        "SEEDS": "0-79,500-549",
        "SLURM_ARRAY_JOB_ID": "17",
        "SLURM_ARRAY_TASK_COUNT": "2",
    }
    for index in "01":
        assert not (data / "fid" / "blocks.jsonl").exists()
        subprocess.run(
            ["bash", SLURM, "tiny", "tiny", "--allow-fewer", "--checkpoint", "10"],
            env={**environment, "SLURM_ARRAY_TASK_ID": index},
            check=True,
            timeout=300,
        )
    assert not list(folder.glob("anisoflight-*"))
    out = tmp_path / "one.jsonl"
    with anisoflight.serve(data=folder / "data") as client:
        known = ["--server", client.location, "--model", "tiny", "--ref", str(folder / "blocks.npz")]
        asked = ["--second-point", "endpoint", "--nfe", "1,5", "--seeds", "0-79,500-549", "--features", "pixels"]
        named = ["--benchmark", "blocks", "--method", "tiny", "--allow-fewer", "--checkpoint", "10", "--quiet"]
        assert main(["calc", *known, *asked, *named, "--out", str(out)]) == 0
    assert measured(data / "fid" / "blocks.jsonl") == measured(out)
