"""The logs in `logs/`, as lm-eval and Inspect write them: `python -m tests.personas.make_logs`, with both installed, offline.

Made with lm-eval 0.4.13 (its dummy model, which answers at random, under two seeds) and inspect-ai 0.3.285 (its mock model, told
what to answer and how sure to be, two epochs per question). Files are kept as they were written, but for their names.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LOGS = Path(__file__).parent / "logs"
TASK = """
task: local_choice
dataset_path: json
dataset_kwargs: {data_files: {test: "data.jsonl"}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: choices
doc_to_target: answer
metric_list: [{metric: acc}, {metric: acc_norm}]
"""


def lm_eval_logs(folder: Path) -> None:
    rows = [{"question": f"Question {i}?", "choices": ["north", "south", "west"], "answer": i % 3} for i in range(30)]
    (folder / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "local.yaml").write_text(TASK)
    for name, seed in (("small", 1), ("large", 2)):
        words = [
            "-m",
            "lm_eval",
            "run",
            "--model",
            "dummy",
            "--tasks",
            "local_choice",
            "--include_path",
            ".",
            "--log_samples",
        ]
        command = [sys.executable, *words, "--output_path", name, "--seed", str(seed)]
        subprocess.run(command, cwd=folder, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        (written,) = (folder / name).rglob("samples_*.jsonl")
        shutil.copy(written, LOGS / f"samples_local_choice_{name}.jsonl")


def inspect_logs(folder: Path) -> None:
    from inspect_ai import Epochs, Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
    from inspect_ai.solver import generate

    @scorer(metrics=[accuracy()])
    def stated():
        async def score(state, target):
            answer, _, confidence = state.output.completion.partition(" ")
            return Score(
                value=CORRECT if answer == target.text else INCORRECT,
                answer=answer,
                metadata={"confidence": float(confidence)},
            )

        return score

    rng = np.random.default_rng(0)
    for name, power in (("small", 2.0), ("large", 1.1)):
        sure = rng.beta(4, 1.5, 32)
        texts = [f"{'A' if rng.random() < c**power else 'B'} {c:.2f}" for c in sure]
        outputs = [ModelOutput.from_content("mockllm/model", text) for text in texts]
        for output in outputs:  # else it downloads a tokenizer to count
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        task = Task(
            dataset=[Sample(input=f"Question {i}?", target="A", id=f"q{i}") for i in range(16)],
            solver=generate(),
            scorer=stated(),
            epochs=Epochs(2),
            name="stated",
        )
        model = get_model("mockllm/model", custom_outputs=outputs)
        run(
            task, model=model, log_dir=str(folder / f"inspect-{name}"), display="none", max_samples=1, max_connections=1
        )
        (written,) = (folder / f"inspect-{name}").glob("*.eval")
        shutil.copy(written, LOGS / f"inspect_{name}.eval")


if __name__ == "__main__":
    LOGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as result:
        lm_eval_logs(Path(result))
        inspect_logs(Path(result))
