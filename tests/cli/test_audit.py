"""`truecal audit`: exit codes, JSON, columns named or not, folders, and hostile columns."""

import json

import numpy as np
import polars as pl
import pytest

from truecal.cli.main import main


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 8000
    country, device = rng.choice(["BR", "DE", "US"], n), rng.choice(["mobile", "desktop"], n)
    p = rng.beta(2, 2, n)
    y = rng.random(n) < np.clip(p - 0.2 * ((country == "BR") & (device == "mobile")), 0, 1)
    return pl.DataFrame({"y": y.astype(int), "p": p, "country": country, "device": device})


def run(capsys, *arguments):
    code = main(["audit", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_found_segment_fails_and_a_wide_tolerance_passes(frame, tmp_path, capsys):
    path = tmp_path / "preds.parquet"
    frame.write_parquet(path)
    code, out, _ = run(capsys, path)
    assert code == 1
    assert "country is BR, device is mobile" in out
    code, out, _ = run(capsys, path, "--by", "country", "--by", "device", "--depth", 2, "--tolerance", 0.5)
    assert code == 0
    assert "0 of those listed are beyond the tolerance of 0.5" in out
    code, out, _ = run(capsys, path, "--tolerance", 0.05, "--json")
    document = json.loads(out)
    assert code == 1
    assert document["schema"] == "truecal.audit"
    assert document["segments"][0]["where"] == [
        {"column": "country", "value": "BR"},
        {"column": "device", "value": "mobile"},
    ]
    assert document["segments"][0]["beyond"] is True


def test_a_folder_is_scanned_by_the_columns_named(frame, tmp_path, capsys):
    for i in range(2):
        frame[i::2].write_parquet(tmp_path / f"{i}.parquet")
    code, out, err = run(capsys, tmp_path, "--by", "country", "--by", "device")
    assert code == 1
    assert "country is BR, device is mobile" in out
    assert "scanned 8000 rows in 2 files" in err
    code, _, err = run(capsys, tmp_path)
    assert code == 2
    assert "name the columns to group by" in err


def test_what_cannot_be_used_is_refused(frame, tmp_path, capsys):
    path = tmp_path / "preds.parquet"
    frame.with_columns(pl.lit(None, pl.String).alias("gone")).write_parquet(path)
    code, _, err = run(capsys, path, "--by", "gone")
    assert code == 2
    assert "column 'gone' holds no values" in err
    assert run(capsys, path, "--by", "ward")[0] == 2
    assert run(capsys, path, "--tolerance", 2)[0] == 2
