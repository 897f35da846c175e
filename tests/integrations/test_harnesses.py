"""The metrics in the tools they are for: run with the real packages where they are installed, offline."""

import importlib
import json
from importlib.metadata import entry_points

import numpy as np
import pytest

import truecal as tc
from truecal.integrations import lm_eval


def answers(n=200, seed=0):
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(n, 4)) * 2
    return [(int(rng.integers(4)), tuple(row)) for row in logs]


def judged(items):
    """The same by hand: confidence of the likeliest option, and whether it is the right one."""
    probs = [np.exp(np.array(logs)) / np.exp(np.array(logs)).sum() for _, logs in items]
    right = [int(p.argmax()) == gold for p, (gold, _) in zip(probs, items, strict=True)]
    return tc.calibration_error(right, [p.max() for p in probs])


def test_the_aggregation_takes_log_likelihoods_and_probabilities():
    items = answers()
    assert lm_eval.calibration_error(items) == pytest.approx(float(judged(items)))
    probs = [(gold, np.exp(logs) / np.exp(logs).sum()) for gold, logs in items]
    assert lm_eval.calibration_error(probs) == pytest.approx(float(judged(items)))
    with pytest.raises(tc.InputError, match="no items"):
        lm_eval.calibration_error([])


@pytest.mark.parametrize(
    ("doc", "gold"),
    [
        ({"answer": 2}, 2),
        ({"gold": "1"}, 1),
        ({"answerKey": "C", "choices": {"text": ["x", "y", "z"], "label": ["A", "B", "C"]}}, 2),
        ({"target": "y", "choices": ["x", "y", "z"]}, 1),
    ],
)
def test_the_right_option_is_found(doc, gold):
    assert lm_eval.process_results(doc, [(-1.0, False)] * 3)["calibration_error"][0] == gold
    with pytest.raises(tc.InputError, match="none of the 1 options"):
        lm_eval.process_results({"answer": 3}, [(-1.0, False)])
    with pytest.raises(tc.InputError, match="names no answer"):
        lm_eval.process_results({"question": "?"}, [(-1.0, False)])


def test_lm_eval_runs_the_metric_on_a_local_task(tmp_path):
    pytest.importorskip("lm_eval")
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    rows = [{"question": f"q{i}?", "choices": ["a", "b", "c"], "answer": i % 3} for i in range(60)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "local.yaml").write_text(
        f"""
task: local_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{tmp_path / "data.jsonl"}"}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: choices
doc_to_target: answer
process_results: !function truecal.integrations.lm_eval.process_results
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - metric: calibration_error
    aggregation: !function truecal.integrations.lm_eval.calibration_error
    higher_is_better: false
"""
    )
    found = simple_evaluate(
        model="dummy",
        tasks=["local_choice"],
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
    )
    logs = [[(r[0][0], r[0][1]) for r in s["resps"]] for s in found["samples"]["local_choice"]]
    items = [(i % 3, [float(log) for log, _ in one]) for i, one in enumerate(logs)]
    result = found["results"]["local_choice"]
    assert result["calibration_error,none"] == pytest.approx(float(judged(items)))
    assert 0 <= result["acc,none"] <= 1


@pytest.mark.filterwarnings("ignore")  # Inspect's own
def test_inspect_reports_the_metric_of_its_mock_model(processes, tmp_path):
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
    from inspect_ai.solver import generate

    from truecal.integrations.inspect_ai import calibration_error

    @scorer(metrics=[accuracy(), calibration_error()])
    def stated():
        async def score(state, target):
            answer, _, confidence = state.output.completion.partition(" ")
            reference = {} if confidence == "?" else {"confidence": float(confidence)}
            return Score(value=CORRECT if answer == target.text else INCORRECT, answer=answer, metadata=reference)

        return score

    rng = np.random.default_rng(0)
    texts = [f"{'A' if rng.random() < 0.6 else 'B'} {rng.random():.2f}" for _ in range(40)] + ["A ?"]
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in texts]
    for output in outputs:  # else it downloads a tokenizer to count
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    dataset = [Sample(input="?", target="A", id=f"q{i}") for i in range(41)]
    (log,) = run(
        Task(dataset=dataset, solver=generate(), scorer=stated()),
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_dir=str(tmp_path),
        display="none",
        max_samples=1,
        max_connections=1,
    )
    assert log.status == "success", log.error
    metrics = {name.split("/")[-1]: metric.value for name, metric in log.results.scores[0].metrics.items()}
    answers = [text.split() for text in texts[:40]]
    expected = tc.calibration_error([a == "A" for a, _ in answers], [float(c) for _, c in answers])
    assert metrics["calibration_error"] == pytest.approx(float(expected))
    assert (metrics["high"], metrics["unjudged"]) == (pytest.approx(float(expected.interval.high)), 1)
    if not entry_points(group="inspect_ai", name="truecal"):
        pytest.skip("truecal was installed before it had the entry point")
    code = (
        "import sys; from inspect_ai.log import read_eval_log, recompute_metrics; log = read_eval_log(sys.argv[1]); "
        "log.results.scores[0].metrics = {}; recompute_metrics(log); "
        "print(*[m.value for n, m in log.results.scores[0].metrics.items() if n.endswith('calibration_error')])"
    )
    ran = processes.python(code, log.location)
    assert float(ran.stdout) == pytest.approx(float(expected)), ran.stderr[-500:]


def test_evaluate_loads_the_module_from_its_file(tmp_path, monkeypatch):
    evaluate = pytest.importorskip("evaluate")
    module = importlib.import_module("truecal.integrations.calibration_error")

    monkeypatch.setattr("evaluate.config.HF_EVALUATE_OFFLINE", True)
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    metric = evaluate.load(module.__file__, cache_dir=str(tmp_path))
    for add in (lambda: metric.add_batch(references=y, predictions=p), None):
        result = metric.compute(references=y, predictions=p) if add is None else (add(), metric.compute())[1]
        expected = tc.calibration_error(y, p)
        assert result["calibration_error"] == pytest.approx(float(expected))
        assert result["high"] == pytest.approx(float(expected.interval.high))
    classes = module.CalibrationError().compute(
        references=y, predictions=np.column_stack([1 - p, p]), estimator=tc.BinnedECE()
    )
    expected = tc.calibration_error(y, np.column_stack([1 - p, p]), estimator=tc.BinnedECE())
    assert classes["calibration_error"] == pytest.approx(float(expected))
