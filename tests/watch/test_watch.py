"""The watch: the same answer however a batch came, what is refused, and a state that is whole at every moment."""

import json
import lzma
import os
import signal
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import truecal as tc


def day(rng, rows=300, off=0.0, groups=0, **options):
    p = rng.beta(4, 1, rows)
    y = (rng.random(rows) < np.clip(p - off, 0, 1)).astype(int)
    if groups:
        options["columns"] = {"model": [f"m{i}" for i in rng.integers(0, groups, rows)]}
    return tc.Predictions.from_probs(p, y, **options)


def numbers(step):
    """What must not depend on how a batch came."""
    result = step.to_dict()
    for group in result["groups"]:
        for name, value in group.items():
            if isinstance(value, float):
                group[name] = pytest.approx(value, rel=1e-9, abs=1e-9)
        group["worst"] = {k: pytest.approx(v) if isinstance(v, float) else v for k, v in group["worst"].items()}
    return {
        **result,
        "log_e": pytest.approx(result["log_e"]),
        "e_value": pytest.approx(result["e_value"]),
        "p_value": 0,
    }


def test_rows_parts_sketches_and_scans_say_the_same():
    rng = np.random.default_rng(0)
    watches = [tc.Watch(tolerance=0.01) for _ in range(5)]
    for t in range(8):
        preds = day(rng, 500, off=0.0 if t < 4 else 0.1)
        p, y = preds.probs, preds.labels
        half = [preds.take(np.arange(200)), preds.take(np.arange(200, 500))]
        sketches = [tc.Sketch.from_arrays(p[i::3], y[i::3]) for i in range(3)]
        frame = pl.DataFrame({"p": p, "y": y})
        forms = [preds, half, sum(sketches[1:], sketches[0]), sketches, tc.scan(frame, label="y", score="p")]
        steps = [watch.update(form) for watch, form in zip(watches, forms, strict=True)]
        for step in steps[1:]:
            assert numbers(steps[0]) == {**step.to_dict(), "p_value": 0}
    assert steps[0].alarm


def test_an_alarm_says_since_when_where_and_what_to_do():
    rng = np.random.default_rng(1)
    watch = tc.Watch()
    for t in range(1, 31):
        step = watch.update(day(rng, 600, off=0.0 if t < 15 else 0.1), at=f"2026-05-{t:02}")
        assert step.alarm == (step.p_value <= 0.05)
        if t < 15:
            assert not step.alarm
            assert not step.changed
            assert step.advice == "wait"
    assert step.alarm
    assert step.changed
    assert abs(int(step.since[-2:]) - 15) <= 1
    assert step.worst.direction == "predicted too high"
    assert step.worst.error == pytest.approx(0.1, abs=0.03)
    assert step.low < step.error < step.high
    assert "ALARM" in str(step)
    assert "since about 2026-05" in str(step)
    assert step.frame()["alarm"].tolist() == [True]
    assert step.frame()["since"].tolist() == [step.since]


def test_direction_and_region_of_a_local_fault():
    rng = np.random.default_rng(2)
    watch = tc.Watch(tolerance=0.01)
    for t in range(30):
        p = rng.random(1500)
        true = np.where((p > 0.4) & (p < 0.6), p + 0.15, p) if t >= 10 else p
        step = watch.update(tc.Predictions.from_probs(p, rng.random(1500) < true))
    assert step.alarm
    assert step.worst.direction == "predicted too low"
    assert step.worst.low == pytest.approx(0.4, abs=0.08)
    assert step.worst.high == pytest.approx(0.6, abs=0.08)
    assert step.advice == "refit"


def test_an_offset_is_recognised_and_measured():
    rng = np.random.default_rng(3)
    watch = tc.Watch()
    for t in range(25):
        p = rng.beta(2, 2, 800)
        true = p if t < 10 else p / (p + 2 * (1 - p))
        step = watch.update(tc.Predictions.from_probs(p, rng.random(800) < true))
    assert step.advice == "offset suffices"
    assert step.offset == pytest.approx(-np.log(2), abs=0.08)


def test_the_same_day_twice_changes_nothing(tmp_path):
    rng = np.random.default_rng(4)
    watch = tc.Watch()
    days = [day(rng) for _ in range(3)]
    for t, preds in enumerate(days):
        last = watch.update(preds, at=f"2026-05-0{t + 1}")
    before = watch.save(tmp_path / "state.json").read_bytes()
    again = watch.update(tc.Sketch.from_arrays(days[2].probs, days[2].labels), at="2026-05-03")  # as a sketch this time
    assert again.repeated
    assert again.to_dict() == {**last.to_dict(), "repeated": True}
    watch.update(days[0], at="2026-05-01")
    assert watch.save(tmp_path / "state.json").read_bytes() == before


def test_order_late_labels_and_missing_ones():
    rng = np.random.default_rng(5)
    watch = tc.Watch()
    first = day(rng)
    watch.update(first, at="2026-05-02", of=400)
    assert watch.step().of == 400
    for points, words in (
        ("20260502", "counted before, with other rows"),
        ("2026-05-01", "is before the last counted batch, 2026-05-02"),
    ):
        with pytest.raises(tc.InputError, match=words):
            watch.update(day(rng), at=points)
    for points, words in (
        ("may", "is no time"),
        (3, "is a number"),
        ("2026-05-03T00:00+00:00", "with a zone"),
        (1.5, "must be"),
    ):
        with pytest.raises(tc.InputError, match=words):
            watch.update(day(rng), at=points)
    step = watch.update(day(rng, 50), at="2026-05-02", late=True)
    assert step.rows_seen == 350
    assert watch.group().history.latest == "2026-05-02"
    with pytest.raises(tc.InputError, match="of must be a whole number of at least 300"):
        watch.update(day(rng), at="2026-05-03", of=10)
    assert watch.step().rows_seen == 350  # what was refused left no trace
    with pytest.raises(tc.InputError, match="say when"):
        watch.update(day(rng))


def test_equal_times_are_equal_however_they_are_written():
    rng = np.random.default_rng(5)
    first = day(rng)
    for points in ("2026-05-02", "20260502", 20260502, date(2026, 5, 2), datetime(2026, 5, 2), "2026-05-02T00:00"):
        watch = tc.Watch()
        watch.update(first, at=points)
        assert watch.latest == "2026-05-02"
        assert watch.update(first, at="2026-05-02").repeated
    zoned = tc.Watch()
    zoned.update(first, at="2026-05-02T12:00+02:00")
    assert zoned.update(first, at=datetime(2026, 5, 2, 10, tzinfo=UTC)).repeated
    numbers = tc.Watch()
    for points in (9, "10", 1772323200):  # as numbers, not as text
        numbers.update(day(rng), at=points)
    assert numbers.latest == "1772323200"
    with pytest.raises(tc.InputError, match="2026-05-02 is a time without a zone but the last batch was at 1772323200"):
        numbers.update(day(rng), at="2026-05-02", late=True)


def content_of(path):
    """The records that a state file holds: settings, target, peak, groups, time, and the state before."""
    return json.loads(lzma.decompress(b64decode(json.loads(path.read_text())["content"])))


def write_content(path, content):
    """Write a state file with other records."""
    packed = b64encode(lzma.compress(json.dumps(content).encode())).decode()
    path.write_text(json.dumps({**json.loads(path.read_text()), "content": packed}))


def text_of(watch, path):
    """Everything a state holds, but for what can be taken back."""
    return content_of(watch.save(path))[:-1]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_undo_takes_the_last_batch_back(tmp_path, restart, saved):
    rng = np.random.default_rng(15)
    watch, other = tc.Watch(by="model"), tmp_path / "other.json"
    for t in range(1, 4):
        watch.update(day(rng, groups=2, off=0.2), at=t)
    before, step = text_of(watch, other), watch.step()
    watch.update(day(rng, groups=3), at=4, restart=restart)  # with a group that was not there before
    if saved:
        watch = tc.Watch.load(watch.save(tmp_path / "state.json"))
    assert watch.undo() == "4"
    assert text_of(watch, other) == before
    assert watch.step().to_dict() == step.to_dict()
    with pytest.raises(tc.InputError, match="only the last one can be, once"):
        watch.undo()
    watch.update(day(rng, groups=2), at=4)


def test_undo_of_the_first_batch_leaves_an_empty_watch():
    watch = tc.Watch()
    watch.update(day(np.random.default_rng(16)), at="2026-05-01")
    watch.undo()
    assert (watch.groups, watch.latest, watch.lens_name) == ((), "", "scores")
    watch.update(day(np.random.default_rng(16)), at=1)  # the kind of time is free again


def test_a_time_far_ahead_warns_and_can_be_taken_back():
    rng = np.random.default_rng(17)
    watch = tc.Watch()
    watch.update(day(rng), at="2026-05-01")
    watch.update(day(rng), at=datetime.now() + timedelta(days=2))  # a clock that is wrong by a little
    watch.undo()
    with pytest.warns(tc.errors.TruecalWarning, match=r"2999-01-01 is more than a year ahead.*undo"):
        watch.update(day(rng), at="29990101")
    with pytest.raises(tc.InputError, match="is before the last counted batch, 2999-01-01"):
        watch.update(day(rng), at="2026-05-02")
    assert watch.undo() == "2999-01-01"
    watch.update(day(rng), at="2026-05-02")


def test_refused_by_name():
    rng = np.random.default_rng(6)
    watch = tc.Watch()
    watch.update(day(rng))
    probs = rng.dirichlet([1, 1, 1], 30)
    with pytest.raises(tc.InputError, match="judges 'positive class' of 2 classes, this batch 'top label' of 3"):
        watch.update(tc.Predictions.from_probs(probs, rng.integers(0, 3, 30)))
    with pytest.raises(tc.InputError, match="weights"):
        watch.update(day(rng, 10, weights=np.arange(10) + 1.0))
    with pytest.raises(tc.InputError, match="weighted rows"):
        watch.update(tc.Sketch.from_arrays([0.5, 0.6], [0, 1], [1.0, 2.0]))
    with pytest.raises(tc.InputError, match="no labelled row"):
        watch.update(tc.Sketch())
    with pytest.raises(tc.InputError, match="not ndarray"):
        watch.update(probs)
    with pytest.raises(tc.InputError, match="empty list"):
        watch.update([])
    named = tc.Watch(lens=tc.OneClass("b"))
    named.update(tc.Predictions.from_probs([0.5, 0.2], ["a", "b"], classes=["a", "b"]))
    with pytest.raises(tc.InputError, match="classes of the watch are a, b, those of this batch b, a"):
        named.update(tc.Predictions.from_probs([0.5, 0.2], ["a", "b"], classes=["b", "a"]))
    for options, words in (
        ({"tolerance": 0.7}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"alpha": 0}, "alpha"),
        ({"run_length": 1.5}, "run_length"),
        ({"lens": "top"}, "lens must be"),
        ({"lens": tc.TopK(2)}, "TopK cannot"),
    ):
        with pytest.raises(tc.InputError, match=words):
            tc.Watch(**options)
    with pytest.raises(tc.InputError, match="no batch was counted yet"):
        tc.Watch().step()


def test_groups_are_watched_together(tmp_path):
    rng = np.random.default_rng(7)
    watch = tc.Watch(by="model")
    for t in range(12):
        preds = day(rng, 4000, groups=8)
        off = (np.array(preds.columns["model"]) == "m3") & (t >= 6)
        y = np.where(off, rng.random(4000) < preds.probs - 0.12, preds.labels).astype(int)
        step = watch.update(tc.Predictions.from_probs(preds.probs, y, columns=preds.columns))
    assert step.called == (("m3",),)
    assert [group for group, result in step.groups.items() if result.alarm] == [("m3",)]
    assert step.groups["m3",].since == "7"
    assert step.alarm
    assert len(step.frame()) == 8
    assert sum(watch._shares().values()) == pytest.approx(0.75)
    watch.update(day(rng, 100, groups=9))
    assert watch._shares()["m8",] == pytest.approx(0.125)
    with pytest.raises(tc.InputError, match="no column 'model'"):
        watch.update(day(rng))
    with pytest.raises(tc.InputError, match="pass a mapping"):
        watch.update(tc.Sketch.from_arrays([0.5], [1]))
    with pytest.raises(tc.InputError, match="no group 'm77'"):
        watch.group("m77")
    watch.restart("m3")
    assert not watch.step().groups["m3",].alarm


def test_states_of_disjoint_groups_merge(tmp_path):
    rng = np.random.default_rng(8)
    whole, parts = tc.Watch(by="model"), [tc.Watch(by="model") for _ in range(2)]
    for _ in range(5):
        preds = day(rng, 900, groups=3)
        names = np.array(preds.columns["model"])
        whole.update(preds)
        parts[0].update(preds.take(names == "m0"))
        parts[1].update(preds.take(names != "m0"))
    merged = parts[0].merge(parts[1])
    assert merged.groups == whole.groups
    assert merged.step().log_e == pytest.approx(whole.step().log_e)
    assert merged.step().to_dict()["groups"] == whole.step().to_dict()["groups"]
    with pytest.raises(tc.InputError, match="both watches hold"):
        merged.merge(parts[1])
    with pytest.raises(tc.InputError, match="same settings"):
        merged.merge(tc.Watch(by="model", tolerance=0.01))


def test_many_classes():
    rng = np.random.default_rng(9)
    wise, top = tc.Watch(lens=tc.ClassWise()), tc.Watch()
    for t in range(12):
        probs = rng.dirichlet([2, 2, 1], 800)
        true = probs.copy()
        if t >= 6:  # classes 1 and 2 are confused, which the top label alone shows less
            true[:, 1], true[:, 2] = probs[:, 1] + 0.5 * probs[:, 2], 0.5 * probs[:, 2]
        y = (true.cumsum(axis=1) < rng.random((800, 1))).sum(axis=1)
        preds = tc.Predictions.from_probs(probs, np.array(["a", "b", "c"])[y], classes=["a", "b", "c"])
        step, other = wise.update(preds), top.update(preds)
    assert step.alarm
    assert step.worst_class in ("b", "c")
    assert other.worst_class is None
    assert wise.lens_name == "3 classes"
    assert step.log_e > other.log_e


def test_a_state_goes_on_where_it_was(tmp_path):
    rng = np.random.default_rng(10)
    watch = tc.Watch(tolerance=0.01, alpha=0.1, lens=tc.OneClass(1), run_length=500)
    for _ in range(40):
        watch.update(day(rng))
    path = watch.save(tmp_path / "state.json")
    loaded = tc.Watch.load(path)
    assert (loaded.settings, loaded.lens) == (watch.settings, watch.lens)
    assert repr(loaded) == repr(watch) == "Watch(tolerance=0.01, alpha=0.1, 40 batches, class 1)"
    for _ in range(5):
        preds = day(rng, off=0.05)
        assert watch.update(preds).to_dict() == loaded.update(preds).to_dict()
    assert json.loads(path.read_text())["version"] == 1


def test_the_state_is_bounded(tmp_path):
    rng = np.random.default_rng(11)
    watch = tc.Watch(by="model")
    sizes = []
    for t in range(900):
        p = rng.random(40)
        watch.update({"only": tc.Sketch.from_arrays(p, rng.random(40) < p)}, at=t)
        if t in (750, 899):
            sizes.append(watch.save(tmp_path / "state.json").stat().st_size)
    assert max(sizes) < 200_000
    assert sizes[1] < sizes[0] * 1.03


@pytest.mark.full
@pytest.mark.slow
def test_the_state_of_ten_classes_is_bounded(tmp_path):
    rng = np.random.default_rng(12)
    watch = tc.Watch(lens=tc.ClassWise())
    for _ in range(760):
        probs = rng.dirichlet(np.full(10, 0.5), 400)
        labels = (rng.random((400, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, 9)
        watch.update(tc.Predictions.from_probs(probs, labels))
    assert watch.save(tmp_path / "state.json").stat().st_size < 200_000


def test_more_classes_than_the_state_has_room_for_are_refused():
    rng = np.random.default_rng(12)
    probs = rng.dirichlet(np.ones(11), 100)
    with pytest.raises(tc.InputError, match="11 classes would not fit into 200 kB"):
        tc.Watch(lens=tc.ClassWise()).update(tc.Predictions.from_probs(probs, rng.integers(0, 11, 100)))


@pytest.mark.parametrize("version", [0, 2, 5, None, "1"])
def test_states_of_other_versions_are_refused_with_the_remedy(tmp_path, version):
    watch = tc.Watch()
    watch.update(day(np.random.default_rng(13)))
    path = watch.save(tmp_path / "state.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": version}))
    with pytest.raises(
        tc.errors.FileError, match=r"state\.json has version .* reads version 1 only; start a new state"
    ):
        tc.Watch.load(path)


def test_damaged_states_are_refused_by_name(tmp_path):
    rng = np.random.default_rng(12)
    watch = tc.Watch()
    watch.update(day(rng))
    path = watch.save(tmp_path / "state.json")
    header, good = json.loads(path.read_text()), content_of(path)
    settings, target, peak, groups, points, before = good
    ((key, position, shares, labels, ((experts, evidence, errors, blocks, batches, rows),), history, top),) = groups

    def group(**changed):
        parts = {"shares": shares, "evidence": evidence, "blocks": blocks, "rows": rows, "history": history, **changed}
        stream = [experts, parts["evidence"], errors, parts["blocks"], batches, parts["rows"]]
        group = [key, position, parts["shares"], labels, [stream], parts["history"], top]
        return [settings, target, peak, [group], points, before]

    first, lengths, (shape, sums) = blocks
    bomb = b64encode(lzma.compress(b"0" * 100_000_001, preset=0)).decode()
    lists = b64encode(lzma.compress(b"[" + b"[]," * 10_000_000 + b"[]]", preset=0)).decode()
    files = {
        "not valid JSON": "{",
        "not the state": "[]",
        "damaged: KeyError 'content'": json.dumps({"format": "truecal.watch", "version": 1}),
        "damaged: Error": json.dumps({**header, "content": "%"}),
        "damaged: LZMAError": json.dumps({**header, "content": header["content"][40:]}),
        "damaged: ValueError the content is cut off": json.dumps({**header, "content": header["content"][:400]}),
        "damaged: ValueError .* unpacks to more than 100,000,000": json.dumps({**header, "content": bomb}),
        "damaged: ValueError its values take 1.2 GB": json.dumps({**header, "content": lists}),
    }
    contents = {
        "damaged: ValueError .* shorter": [[], *good[1:]],
        "damaged: ValueError classes, shares and streams": group(shares=[0.5, 0.5]),
        "damaged: ValueError the shares": group(shares=[0.5]),
        "damaged: ValueError cannot reshape": group(blocks=[first, lengths, [[100_000, 3, 16], sums]]),
        "damaged: ValueError the sums of the blocks": group(blocks=[[1, 2], lengths, [shape, sums]]),
        "damaged: ValueError the evidence does not": group(evidence=[1, *([[[1], "AAAA" + "AA=="]] * 4)]),
        "damaged: ValueError -3 is no count": group(rows=-3),
        "damaged: ValueError True is no int": group(rows=True),
        "damaged: ValueError a group has no batch": group(history=[[]]),
        "damaged: ValueError 'no' is no list": group(history=["no"]),
    }
    for words, text in files.items():
        path.write_text(text)
        with pytest.raises(tc.errors.FileError, match=f"state.json.*{words}"):
            tc.Watch.load(path)
    path.write_text(json.dumps(header))
    for words, content in contents.items():
        write_content(path, content)
        with pytest.raises(tc.errors.FileError, match=f"state.json.*{words}"):
            tc.Watch.load(path)
    write_content(path, good)
    tc.Watch.load(path)
    with pytest.raises(tc.errors.FileError, match="cannot read the state"):
        tc.Watch.load(tmp_path / "none.json")


def test_a_state_changed_by_another_process_is_not_overwritten(tmp_path):
    rng = np.random.default_rng(13)
    watch = tc.Watch()
    watch.update(day(rng))
    path = watch.save(tmp_path / "state.json")
    mine, theirs = tc.Watch.load(path), tc.Watch.load(path)
    theirs.update(day(rng))
    theirs.save(path)
    mine.update(day(rng))
    with pytest.raises(tc.errors.FileError, match="changed by another process"):
        mine.save(path)


def test_a_restart_forgets_the_evidence_and_keeps_the_past():
    rng = np.random.default_rng(14)
    watch = tc.Watch()
    for _ in range(10):
        step = watch.update(day(rng, off=0.15))
    assert step.alarm
    step = watch.update(day(rng), restart=True)
    assert not step.alarm
    assert step.e_value < 20
    assert step.rows_seen == 3300
    assert [line.restart for line in watch.group().history.lines] == [False] * 10 + [True]
    for _ in range(5):
        step = watch.update(day(rng, off=0.15))
    assert step.alarm
    assert int(step.since) in (11, 12, 13)


@pytest.mark.parametrize("wait", [0.013, *(pytest.param(w, marks=pytest.mark.full) for w in (0.0, 0.031))])
def test_killed_at_any_moment_the_state_is_the_old_or_the_new(processes, tmp_path, wait):
    """kill -9 of a process that updates and saves as fast as it can: what is on disk can always be read and goes on."""
    code = (
        "import sys, numpy as np, truecal as tc\n"
        "rng = np.random.default_rng(0)\n"
        "path = sys.argv[1]\n"
        "watch = tc.Watch()\n"
        "while True:\n"
        "    p = rng.random(50)\n"
        "    watch.update(tc.Predictions.from_probs(p, rng.random(50) < p))\n"
        "    watch.save(path)\n"
        "    print('saved', flush=True)\n"
    )
    path = tmp_path / "state.json"
    running = processes.start(sys.executable, "-c", code, path, stdout=subprocess.PIPE)
    for _ in range(3):
        running.stdout.readline()
    time.sleep(wait)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    watch = tc.Watch.load(path)
    lines = watch.group().history.lines
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert watch.step().rows_seen == 50 * len(lines)
    assert len(lines) >= 3
