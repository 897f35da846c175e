"""Files and questions of new users: detected in one try, or the exact command to type is given."""

import json

import numpy as np
import polars as pl
import pytest

import truecal as tc

RNG = np.random.default_rng(0)


@pytest.fixture
def churn(tmp_path):
    n = 2000
    p = RNG.beta(2, 4, n)
    y = RNG.random(n) < p
    frame = pl.DataFrame(
        {
            "churned": np.where(y, "Yes", "No"),
            "p_churn": [None if i % 100 == 3 else float(x) for i, x in enumerate(p)],
            "plan": RNG.choice(["basic", "pro"], n),
            "country": RNG.choice(["DE", "FR"], n),
            "customer": np.arange(n),
        }
    )
    path = tmp_path / "churn.csv"
    frame.write_csv(path)
    return path


def test_churn_file_needs_one_remedy_which_is_spelled_out(truecal, churn):
    ran = truecal("measure", churn)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].strip() == f"try: truecal measure {churn} --drop-null"
    ran = truecal("measure", churn, "--drop-null")
    assert ran.code == 0
    assert "label 'churned' [detected], probabilities 'p_churn' [detected], positive class 'Yes' [detected]" in ran.err


def test_scores_and_labels_are_detected_by_value(truecal, tmp_path):
    p = RNG.random(300)
    frame = pl.DataFrame({"won": np.where(RNG.random(300) < p, "true", "false"), "elo": p, "round": np.arange(300)})
    frame.write_csv(tmp_path / "a.csv")
    ran = truecal("measure", tmp_path / "a.csv")
    assert (ran.code, "label 'won' [detected], probabilities 'elo' [detected]" in ran.err) == (0, True)
    frame.with_columns(pl.Series("other", p)).write_csv(tmp_path / "b.csv")
    ran = truecal("measure", tmp_path / "b.csv")
    assert ran.code == 2
    assert "with numbers from 0 to 1: elo, other" in ran.err
    assert ran.err.splitlines()[-1].strip().endswith("b.csv --score elo")


def test_pos_label_names_the_class_that_the_score_is_of(truecal, churn):
    value = {}
    for word in ("Yes", "No"):
        ran = truecal("measure", churn, "--drop-null", "--pos-label", word, "--json")
        value[word] = json.loads(ran.out)["results"][0]["value"]
    frame = pl.read_csv(churn).drop_nulls()
    for word in ("Yes", "No"):
        expected = tc.calibration_error(frame["churned"], frame["p_churn"], pos_label=word).value
        assert value[word] == pytest.approx(expected)
        assert tc.measure(tc.read(churn, drop_null=True, pos_label=word)).value == pytest.approx(expected)
    assert "not among the classes" in truecal("measure", churn, "--drop-null", "--pos-label", "Perhaps").err


def test_percent_words_and_nulls_in_one_file(truecal, tmp_path):
    answers = ["90%", "70%", "refused", None, "likely"] * 30
    path = tmp_path / "answers.csv"
    pl.DataFrame({"confidence": answers, "correct": [1, 0, 0, 1, 1] * 30}).write_csv(path)
    ran = truecal("measure", path)
    assert ran.err.splitlines()[-1].strip().endswith("--percent --words refused=nan,likely=nan --drop-null")
    ran = truecal("measure", path, "--percent")
    assert ran.err.splitlines()[-1].strip().endswith("--percent --words refused=nan,likely=nan --drop-null")
    assert ran.err.splitlines()[-1].count("--percent") == 1
    assert "goes together with --percent" in ran.err
    ran = truecal("measure", path, "--percent", "--words", "refused=nan,likely=0.8", "--drop-null")
    assert ran.code == 0
    assert "60 rows with missing values" in ran.err


def test_several_by_give_one_table_each_and_combinations_on_request(truecal, churn):
    command = ("measure", churn, "--drop-null", "--by", "country", "--by", "plan", "-q")
    results = json.loads(truecal(*command, "--json").out)["results"]
    assert [(r["by"], r["group"]) for r in results] == [
        ("country", "DE"),
        ("country", "FR"),
        ("plan", "basic"),
        ("plan", "pro"),
    ]
    combined = json.loads(truecal(*command, "--combine", "--json").out)["results"]
    assert [r["group"] for r in combined] == ["DE, basic", "DE, pro", "FR, basic", "FR, pro"]
    scanned = json.loads(
        truecal(
            *command, "--engine", "polars", "--score", "p_churn", "--label", "churned", "--classes", "No,Yes", "--json"
        ).out
    )
    assert [r["n"] for r in scanned["results"]] == [r["n"] for r in results]
    assert [r["value"] for r in scanned["results"]] == pytest.approx([r["value"] for r in results], abs=2e-3)


def test_stated_values_are_tabulated_with_counts(truecal, tmp_path):
    path = tmp_path / "stated.csv"
    pl.DataFrame(
        {"confidence": [0.5] * 20 + [0.9] * 57, "correct": [1] * 10 + [0] * 10 + [1] * 41 + [0] * 16}
    ).write_csv(path)
    ran = truecal("measure", path, "--values", "-q")
    assert [line.split()[:4] for line in ran.out.splitlines()[1:]] == [
        ["50%", "20", "10", "50%"],
        ["90%", "57", "41", "72%"],
    ]
    assert "58% to 83%    off" in ran.out
    values = json.loads(truecal("measure", path, "--values", "--json").out)["values"]
    assert [(v["rows"], v["outcomes"]) for v in values] == [(20, 10), (57, 41)]


def test_net_benefit_abstention_and_sample_size_have_commands(truecal, tmp_path):
    p = RNG.beta(0.5, 8, 4000)  # a prevalence of about 6 %
    path = tmp_path / "rare.csv"
    pl.DataFrame({"y": (RNG.random(4000) < p).astype(int), "p": p}).write_csv(path)
    rows = json.loads(truecal("measure", path, "--net-benefit", "--json").out)["thresholds"]
    assert max(row["threshold"] for row in rows) < 0.3  # around the prevalence
    preds = tc.read(path)
    expected = tc.clinical.net_benefit(preds, [0.02, 0.05]).net_benefit
    rows = json.loads(truecal("measure", path, "--net-benefit", "--thresholds", "0.02,0.05", "--json").out)[
        "thresholds"
    ]
    assert [row["net_benefit"] for row in rows] == pytest.approx(expected)
    curve = json.loads(truecal("measure", path, "--abstention", "--json").out)
    assert curve["area"] == pytest.approx(tc.selective.aurc(preds).value)
    assert len(curve["curve"]) == 10
    needed = json.loads(truecal("lab", "sample-size", "--prevalence", "0.1", "--c-statistic", "0.8", "--json").out)
    assert needed["rows_needed"] == tc.clinical.sample_size(prevalence=0.1, c_statistic=0.8).rows
    text = truecal("measure", path, "--clinical", "--format", "markdown").out
    assert text.startswith("|")


def test_compare_sorts_models_and_shows_their_intervals(truecal, tmp_path):
    p = RNG.random(1500)
    y = (RNG.random(1500) < p).astype(int)
    for name, scores in (("bad", p**3), ("good", p), ("middling", p**1.5)):
        pl.DataFrame({"y": y, "p": scores}).write_csv(tmp_path / f"{name}.csv")
    files = [tmp_path / f"{name}.csv" for name in ("bad", "good", "middling")]
    out = truecal("compare", *files, "--resamples", "99", "-q").out
    rows = [line.split() for line in out.splitlines()[1:4]]
    assert [row[0] for row in rows] == ["good", "middling", "bad"]
    assert all(float(row[2].strip("[,")) <= float(row[1]) <= float(row[3].strip("]")) for row in rows)


def test_apply_says_which_columns_were_replaced(truecal, tmp_path):
    p = RNG.random(300)
    pl.DataFrame({"y": (RNG.random(300) < p).astype(int), "p": p}).write_csv(tmp_path / "a.csv")
    truecal("recalibrate", "fit", tmp_path / "a.csv", "--method", "platt", "--out", tmp_path / "m.json")
    out = truecal(
        "recalibrate", "apply", tmp_path / "a.csv", "--model", tmp_path / "m.json", "--out", tmp_path / "b.csv"
    ).out
    assert out.strip().endswith("; new values in 'p'")
    (tmp_path / "wrong.json").write_text('{"a": 1}')
    ran = truecal(
        "recalibrate", "apply", tmp_path / "a.csv", "--model", tmp_path / "wrong.json", "--out", tmp_path / "b.csv"
    )
    assert (ran.code, "wrong.json" in ran.err) == (2, True)


def test_infinite_log_losses_are_ranked_by_brier():
    p = RNG.random(1200)
    y = (RNG.random(1200) < p**3).astype(int)
    p[:3], y[:3] = [0, 1, 1], [1, 0, 0]
    maps = {"isotonic": tc.recalibration.IsotonicCalibration()}
    evaluation = tc.evaluate(maps, tc.Predictions.from_probs(p, y))
    assert all(np.isinf(row.log_loss) for row in evaluation.rows)
    assert (evaluation.score, evaluation.recommended) == ("brier", "isotonic")
    assert "every log loss is infinite" in str(evaluation)


@pytest.fixture
def spam(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    label = np.where(rng.random(400) < p, "spam", "ham")
    path = tmp_path / "spam.csv"
    pl.DataFrame({"label": label, "score": p}).write_csv(path)
    return path


def test_answer_names_the_positive_of_two_words_and_the_option_to_change_it(truecal, spam):
    remedy = "if it is that of 'ham', add --pos-label ham"
    ran = truecal("measure", spam)
    assert "judged                              class spam" in ran.out
    assert remedy in ran.out
    assert "positive class 'spam' [detected] (--pos-label ham if the score is that of 'ham')" in ran.err
    for verb in ("measure", "verify"):
        for form in ("text", "json", "markdown", "github"):
            assert remedy in truecal(verb, spam, "-q", "--format", form).out.replace("\\'", "'"), (verb, form)
    other = truecal("measure", spam, "--pos-label", "ham")
    assert "class ham" in other.out
    assert "--pos-label" not in other.out + other.err
    assert "--pos-label" not in truecal("measure", spam, "--pos-label", "spam").out


def test_words_for_yes_and_no_need_no_remark(truecal, churn):
    assert "--pos-label" not in truecal("measure", churn, "--drop-null").out


def test_semicolons_and_decimal_commas_are_read_in_one_try(truecal, tmp_path):
    rows = "\n".join(f"{i};0,{i % 9 + 1};{int(i % 9 > 4)}" for i in range(90))
    (tmp_path / "eu.csv").write_text(f"Kunde;Wahrscheinlichkeit;Ereignis\n{rows}\n")
    ran = truecal("measure", tmp_path / "eu.csv")
    assert (ran.code, "n = 90" in ran.out) == (0, True)
    assert "label 'Ereignis' [detected], probabilities 'Wahrscheinlichkeit' [detected]" in ran.err


def test_two_columns_of_one_model_are_read_in_one_try(truecal, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    pl.DataFrame({"y": y, "prob_0": 1 - p, "prob_1": p}).write_csv(tmp_path / "two.csv")
    pl.DataFrame({"y": y, "p": p}).write_csv(tmp_path / "one.csv")
    one, two = (truecal("measure", tmp_path / f"{name}.csv", "-q").out for name in ("one", "two"))
    assert one == two


def test_names_of_columns_with_spaces_and_capitals_are_recognised(truecal, tmp_path):
    """A clinical file as spreadsheets export it: one try, but for the missing values, and one option for each."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 5, 300).round(4)
    died = rng.random(300) < p
    rows = [
        f"{i // 2};{'fm'[i % 2]};{str(risk).replace('.', ',')};{'dead' if event else 'alive'}"
        for i, (risk, event) in enumerate(zip(p, died, strict=True))
    ]
    (tmp_path / "ward.csv").write_text("\n".join(["Patient-ID;Sex;Predicted risk;30d mortality", *rows]) + "\n")
    ran = truecal("measure", tmp_path / "ward.csv", "--cluster", "Patient-ID", "--by", "Sex")
    assert ran.code == 0
    assert "label '30d mortality' [detected], probabilities 'Predicted risk' [detected]" in ran.err
    shares = ["N/A" if i % 50 == 0 else f"{100 * risk:.1f}%" for i, risk in enumerate(p)]
    pl.DataFrame({"Outcome": np.where(died, "yes", "no"), "Predicted probability": shares}).write_csv(
        tmp_path / "percent.csv"
    )
    ran = truecal("measure", tmp_path / "percent.csv")
    assert ran.err.splitlines()[-1].strip().endswith("percent.csv --percent --drop-null")
    assert "n = 294" in truecal("measure", tmp_path / "percent.csv", "--percent", "--drop-null").out
