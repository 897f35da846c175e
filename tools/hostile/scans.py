"""Files x options x engines: the answer of naive code everywhere, or a refusal everywhere.

A case is a layout (how rows are written), a content (what is odd about them) and options (what is asked of them). Layouts must not
change an answer. A content says whether rows must be refused; every engine is held to that, to the answer of naive code in this
file, and to the words of the other engines.
"""

import csv
import gzip
import io
import itertools
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.hostile.judge import Outcome, run

Table = dict[str, list[Any]]
Files = dict[str, bytes]
NAN = float("nan")
BINS = 8
WORDS = ("no", "yes")
ENGINES = ("memory", "polars", "duckdb", "dask", "spark")
# Engines differ by nothing, or by the rounding of exp where there are logits.
TOLERANCE = 1e-9


def table() -> Table:
    """Rows whose numbers are exact in every format: multiples of 1/64."""
    rng = random.Random(1)
    n = 24
    p = [rng.randrange(65) / 64 for _ in range(n)]
    q = [sorted(rng.randrange(17) / 16 for _ in range(2)) for _ in range(n)]
    rows = [(a, b - a, 1 - b) for a, b in q]
    return {
        "y": [int(rng.random() < x) for x in p],
        "p": p,
        "k": [rng.choices(range(3), row)[0] for row in rows],
        **{f"q_{i}": [row[i] for row in rows] for i in range(3)},
        "z": [rng.randrange(-32, 33) / 8 for _ in range(n)],
        "w": [rng.randrange(1, 9) / 4 for _ in range(n)],
        "site": [rng.choice("abc") for _ in range(n)],
        "age": [rng.randrange(20, 90) for _ in range(n)],
    }


# ---------------------------------------------------------------------- layouts


def as_csv(rows: Table, separator: str = ",", newline: str = "\n", missing: str = "", quoting: int = 0) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=newline, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(rows)
    for row in zip(*rows.values(), strict=True):
        writer.writerow([missing if value is None else value for value in row])
    return text.getvalue().encode()


def _with_commas(rows: Table) -> Table:
    def commas(value: Any) -> Any:
        return repr(value).replace(".", ",") if isinstance(value, float) else value

    return {name: [commas(value) for value in column] for name, column in rows.items()}


def as_jsonl(rows: Table) -> bytes:
    lines = (json.dumps(dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True))
    return "\n".join([*lines, ""]).encode()


def as_parquet(rows: Table, **options: Any) -> bytes:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    narrow = options.pop("narrow", {})
    empty = {"y": pa.int64(), "k": pa.int64(), "age": pa.int64(), "site": pa.string()}  # else a column has no type
    types = {name: None if column else empty.get(name, pa.float64()) for name, column in rows.items()} | narrow
    columns = {name: pa.array(_one_type(column), types[name]) for name, column in rows.items()}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, **options)
    return bytes(sink.getvalue().to_pybytes())


def _one_type(column: list[Any]) -> list[Any]:
    """A column of text and numbers as text: a column of a table has one type."""
    if {type(value) for value in column} >= {str, float}:
        return [None if value is None else str(value) for value in column]
    if {type(value) for value in column} >= {int, float}:
        return [None if value is None else float(value) for value in column]
    return column


def _narrow(rows: Table) -> bytes:
    """Types as frameworks write them: float32 scores, int8 labels, dictionaries of text."""
    import pyarrow as pa

    whole = all(type(value) is int for value in rows["y"])
    text = all(value is None or type(value) is str for value in rows["site"])
    kinds = {"age": pa.uint8(), **({"y": pa.int8()} if whole else {})}
    kinds |= {"site": pa.dictionary(pa.int32(), pa.string())} if text else {}
    numbers = all(value is None or type(value) is float for value in rows["p"])
    exact = numbers and all((p * 64).is_integer() for p in rows["p"] if p is not None and math.isfinite(p))
    return as_parquet(rows, narrow=kinds | ({"p": pa.float32()} if exact and rows["p"] else {}))


def as_zst(data: bytes) -> bytes:
    import pyarrow as pa

    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def _slices(rows: Table) -> list[Table]:
    n = len(rows["y"])
    return [{name: column[i * n // 3 : (i + 1) * n // 3] for name, column in rows.items()} for i in range(3)]


def _by_site(rows: Table, write: Callable[[Table], bytes], ending: str) -> Files:
    """One file per site in folders site=a, whose name is a column."""
    files = {}
    for site in dict.fromkeys(rows["site"]):
        members = [i for i, value in enumerate(rows["site"]) if value == site]
        part = {name: [column[i] for i in members] for name, column in rows.items() if name != "site"}
        files[f"site={'__HIVE_DEFAULT_PARTITION__' if site is None else site}/part.{ending}"] = write(part)
    return files


LAYOUTS: dict[str, Callable[[Table], Files]] = {
    "csv": lambda t: {"x.csv": as_csv(t)},
    "csv without a last newline": lambda t: {"x.csv": as_csv(t).rstrip(b"\n")},
    "csv with CR LF": lambda t: {"x.csv": as_csv(t, newline="\r\n")},
    "csv quoted": lambda t: {"x.csv": as_csv(t, quoting=csv.QUOTE_NONNUMERIC)},
    "csv with NA": lambda t: {"x.csv": as_csv(t, missing="NA")},
    "csv with NaN words": lambda t: {"x.csv": as_csv(t, missing="nan")},
    "csv with a byte order mark": lambda t: {"x.csv": b"\xef\xbb\xbf" + as_csv(t)},
    "csv in UTF-16": lambda t: {"x.csv": as_csv(t).decode().encode("utf-16")},
    "csv with blank lines": lambda t: {"x.csv": as_csv(t).replace(b"\n", b"\n\n", 3) + b"\n\n"},
    "tsv": lambda t: {"x.tsv": as_csv(t, "\t")},
    "semicolons": lambda t: {"x.csv": as_csv(t, ";")},
    "semicolons, decimal commas": lambda t: {"x.csv": as_csv(_with_commas(t), ";")},
    "bars": lambda t: {"x.csv": as_csv(t, "|")},
    "gzip": lambda t: {"x.csv.gz": gzip.compress(as_csv(t))},
    "zstd": lambda t: {"x.csv.zst": as_zst(as_csv(t))},
    "jsonl": lambda t: {"x.jsonl": as_jsonl(t)},
    "jsonl in UTF-16": lambda t: {"x.jsonl": as_jsonl(t).decode().encode("utf-16")},
    "jsonl in gzip": lambda t: {"x.jsonl.gz": gzip.compress(as_jsonl(t))},
    "parquet": lambda t: {"x.parquet": as_parquet(t)},
    "parquet of narrow types": lambda t: {"x.parquet": _narrow(t)},
    "parquet in row groups": lambda t: {"x.pq": as_parquet(t, row_group_size=5, compression="zstd")},
    "parquet without statistics": lambda t: {"x.parquet": as_parquet(t, write_statistics=False, version="1.0")},
    "a name with brackets": lambda t: {"day[1].parquet": as_parquet(t)},
    "csv files": lambda t: {f"{i}.csv": as_csv(part) for i, part in enumerate(_slices(t))},
    "jsonl files": lambda t: {f"{i}.jsonl": as_jsonl(part) for i, part in enumerate(_slices(t))},
    "parquet files": lambda t: {f"day[{i}].parquet": as_parquet(part) for i, part in enumerate(_slices(t))},
    "parquet files, columns turned": lambda t: {
        f"{i}.parquet": as_parquet(dict(list(part.items())[:: 1 - 2 * (i % 2)])) for i, part in enumerate(_slices(t))
    },
    "parquet by site": lambda t: _by_site(t, as_parquet, "parquet"),
    "csv by site": lambda t: _by_site(t, as_csv, "csv"),
}  # fmt: skip

# ---------------------------------------------------------------------- contents


def _put(name: str, *values: Any) -> Callable[[Table], None]:
    """Replace the first values after the first row."""

    def change(rows: Table) -> None:
        rows[name][1 : 1 + len(values)] = values

    return change


def _all(name: str, value: Callable[[Any], Any]) -> Callable[[Table], None]:
    def change(rows: Table) -> None:
        rows[name] = [value(old) for old in rows[name]]

    return change


def _first(count: int) -> Callable[[Table], None]:
    def change(rows: Table) -> None:
        for name in rows:
            rows[name] = rows[name][:count]

    return change


# What is changed, and the column that must be refused where the options use it; None: nothing is to be refused.
CONTENTS: dict[str, tuple[Callable[[Table], None], str | None]] = {
    "plain": (lambda rows: None, None),
    "missing score": (_put("p", None), None),
    "missing scores": (_put("p", None, None, None), None),
    "NaN score": (_put("p", NAN), None),
    "missing label": (_put("y", None), None),
    "missing class": (_put("k", None), None),
    "missing probability": (_put("q_1", None), None),
    "NaN probability": (_put("q_0", NAN), None),
    "missing weight": (_put("w", None), None),
    "NaN weight": (_put("w", NAN), None),
    "missing logit": (_put("z", None), None),
    "missing site": (_put("site", None), None),
    "missing age": (_put("age", None), None),
    "infinite score": (_put("p", math.inf), "p"),
    "score above 1": (_put("p", 1.5), "p"),
    "score of 1 + 1e-9": (_put("p", 1 + 1e-9), "p"),
    "score of -1e-17": (_put("p", -1e-17), "p"),
    "score as text": (_put("p", "high"), "p"),
    "probabilities that do not sum to 1": (_put("q_2", 0.75, 0.75, 0.75), "q_2"),
    "negative probability": (_put("q_0", -0.5), "q_0"),
    "infinite logit": (_put("z", math.inf), "z"),
    "logit of -inf": (_put("z", -math.inf), None),
    "label 2": (_put("y", 2), "y"),
    "label -1": (_put("y", -1), "y"),
    "label 0.5": (_put("y", 0.5), "y"),
    "labels as words": (_all("y", lambda y: WORDS[y]), None),
    "labels of three words": (lambda rows: rows.update(y=["maybe", *(WORDS[y] for y in rows["y"][1:])]), "y"),
    "class 3": (_put("k", 3), "k"),
    "negative weight": (_put("w", -0.25), "w"),
    "infinite weight": (_put("w", math.inf), "w"),
    "weights far apart": (_put("w", 1e-13), "w"),
    "weights beyond counts": (_put("w", 1e17), "w"),
    "zero weight": (_put("w", 0.0), None),
    "weight of 1e6": (_put("w", 1e6), None),
    "labels True and False": (_all("y", bool), None),
    "labels 0.0 and 1.0": (_all("y", float), None),
    "scores 0 and 1": (_all("p", lambda p: float(p > 0.5)), None),
    "integer scores": (_all("p", lambda p: int(p > 0.5)), None),
    "score -0.0": (_put("p", -0.0), None),
    "scores near 0": (_put("p", 5e-324, 1e-310, 1e-17), None),
    "scores near 1": (_put("p", math.nextafter(1, 0), 1 - 1e-12), None),
    "constant scores": (_all("p", lambda p: 0.375), None),
    "one outcome": (_all("y", lambda y: 1), None),
    "large logits": (_put("z", 750.0, -750.0, 40.0), None),
    "odd names of sites": (_put("site", "a,b", 'a"b', "a;b"), None),
    "sites of several lines": (_put("site", "a\nb", "a\n\n'b", "\u00e9"), None),
    "sites of large numbers": (_all("site", lambda s: 2**53 + "abc".index(s)), None),
    "sites that look like numbers": (_all("site", lambda s: {"a": 1, "b": 2}.get(s, 30)), None),
    "site NA": (_put("site", "NA", "null"), None),
    "one row": (_first(1), None),
    "no rows": (_first(0), "y"),
}

# ---------------------------------------------------------------------- options


@dataclass(frozen=True)
class Options:
    """What is asked: columns, groups, rows and whether missing values are dropped."""

    label: str
    outputs: tuple[str, ...]
    kind: str = "score"
    lens: str = ""
    weights: str | None = None
    by: tuple[str, ...] = ()
    select: str = ""
    drop_null: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns of which no value may be missing."""
        return (self.label, *self.outputs, *(() if self.weights is None else (self.weights,)))


_SCORE = ("y", ("p",))
_CLASSES = ("k", ("q_0", "q_1", "q_2"), "probs")
OPTIONS = {
    "score": Options(*_SCORE),
    "score, missing dropped": Options(*_SCORE, drop_null=True),
    "score by site": Options(*_SCORE, by=("site",)),
    "score by site, missing dropped": Options(*_SCORE, by=("site",), drop_null=True),
    "score by site and age": Options(*_SCORE, by=("site", "age")),
    "score, weights": Options(*_SCORE, weights="w"),
    "score, weights, missing dropped": Options(*_SCORE, weights="w", drop_null=True),
    "score by site, weights": Options(*_SCORE, weights="w", by=("site",)),
    "score, older": Options(*_SCORE, select="older", drop_null=True),
    "score of positives": Options(*_SCORE, select="positives"),
    "top label": Options(*_CLASSES),
    "top label, missing dropped": Options(*_CLASSES, drop_null=True),
    "top label by site, weights": Options(*_CLASSES, weights="w", by=("site",)),
    "one class": Options(*_CLASSES, lens="class"),
    "one class, weights, missing dropped": Options(*_CLASSES, lens="class", weights="w", drop_null=True),
    "logits": Options("y", ("z",), "logits"),
    "logits, missing dropped": Options("y", ("z",), "logits", drop_null=True),
}


@dataclass(frozen=True)
class Case:
    """One file (or several) and what is asked of it."""

    layout: str
    content: str
    options: str

    def __str__(self) -> str:
        return f"{self.layout} / {self.content} / {self.options}"


def draw(seed: int, count: int) -> list[Case]:
    """Draw cases in which every layout, content and option occurs equally often; the seed alone decides which."""
    rng = random.Random(seed)

    def rounds(names: dict[str, Any]) -> list[str]:
        blocks = (rng.sample(sorted(names), len(names)) for _ in itertools.count())
        return list(itertools.islice(itertools.chain.from_iterable(blocks), count))

    return [Case(*words) for words in zip(rounds(LAYOUTS), rounds(CONTENTS), rounds(OPTIONS), strict=True)]


# ---------------------------------------------------------------------- naive answers


def expected(case: Case) -> dict[str, float] | None:
    """Rows and binned error by group, by naive code; None where the case must be refused."""
    rows, options = table(), OPTIONS[case.options]
    change, refused = CONTENTS[case.content]
    change(rows)
    if refused in options.needed:
        return None
    rows["y"] = [WORDS.index(y) if y in WORDS else y for y in rows["y"]]
    # in a column of text these words are names
    missing_site = {"csv with NA": "NA", "csv with NaN words": "nan"}.get(case.layout)
    rows["site"] = [missing_site if site is None else site for site in rows["site"]]
    whole = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    missing = [any(_missing(row[name]) for name in options.needed) for row in whole]
    selected = [row for row, gone in zip(whole, missing, strict=True) if not gone and _selected(row, options)]
    if (any(missing) and not options.drop_null) or not selected:
        return None
    groups: dict[str, list[tuple[float, float, float]]] = {}
    for row in selected:
        key = ", ".join(_shown(row[name]) for name in options.by)
        score, outcome = _scored(row, options)
        weight = 1.0 if options.weights is None else row[options.weights]
        groups.setdefault(key, []).append((score, outcome, weight))
    weighted = {key: [part for part in parts if part[2] > 0] for key, parts in groups.items()}
    return {
        name: value
        for key, parts in weighted.items()
        if parts
        for name, value in ((f"/{key}/rows", _row_count(parts)), (f"/{key}/error", _binned_error(parts)))
    }


def _missing(value: Any) -> bool:
    return value is None or value != value


def _selected(row: dict[str, Any], options: Options) -> bool:
    age = row["age"]
    return {"": True, "older": age is not None and age >= 50, "positives": row["y"] == 1}[options.select]


def _scored(row: dict[str, Any], options: Options) -> tuple[float, float]:
    values = [row[name] for name in options.outputs]
    if options.kind == "logits":
        z = values[0]
        return (1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))), row[options.label]
    if options.kind == "score":
        return values[0], row[options.label]
    index = 1 if options.lens == "class" else values.index(max(values))
    return values[index], float(row[options.label] == index)


def _row_count(rows: list[tuple[float, float, float]]) -> float:
    """Whole weights are counts of equal rows; others leave a row one row."""
    weights = [weight for _, _, weight in rows]
    return sum(weights) if all(weight.is_integer() for weight in weights) else len(rows)


def _binned_error(rows: list[tuple[float, float, float]]) -> float:
    gaps: dict[int, float] = {}
    for score, outcome, weight in rows:
        cell = min(int(score * BINS), BINS - 1)
        gaps[cell] = gaps.get(cell, 0.0) + weight * (score - outcome)
    return math.fsum(map(abs, gaps.values())) / math.fsum(weight for _, _, weight in rows)


# ---------------------------------------------------------------------- answers of engines


def check(case: Case, folder: Path, engines: tuple[str, ...]) -> Outcome:
    """Write the files of a case, ask every engine, and compare the answers with naive code and the refusals with each other."""
    rows = table()
    CONTENTS[case.content][0](rows)
    files = LAYOUTS[case.layout](rows)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    source = folder / next(iter(files)) if len(files) == 1 else folder
    if len(files) != 1 or "/" in next(iter(files), ""):
        source, engines = folder, tuple(engine for engine in engines if engine != "memory")
    outcomes = {engine: run(lambda engine=engine: answer(source, OPTIONS[case.options], engine)) for engine in engines}  # type: ignore[misc]
    return judged(expected(case), outcomes)


def judged(naive: dict[str, float] | None, outcomes: dict[str, Outcome]) -> Outcome:
    """The failure of the first engine that fails, differs from naive code or refuses in other words than the engines before."""
    words: dict[str, str] = {}
    for engine, outcome in outcomes.items():
        if outcome.failed:
            return Outcome(outcome.kind, f"{engine}: {outcome.detail}")
        if naive is None and outcome.kind == "answer":
            return Outcome("differs", f"{engine} answers {dict(outcome.numbers)}, and must refuse")
        if naive is not None and outcome.kind == "refused":
            return Outcome("differs", f"{engine} refuses, and must answer {naive}: {outcome.detail}")
        if naive is not None:
            odd = [key for key in {*naive, *outcome.numbers} if not _close(naive.get(key), outcome.numbers.get(key))]
            if odd:
                return Outcome(
                    "differs", f"{engine}: {odd[0]} is {outcome.numbers.get(odd[0])}, not {naive.get(odd[0])}"
                )
        elif engine != "memory":
            words[outcome.detail.replace(engine, "ENGINE")] = engine
    if len(words) > 1:
        return Outcome("differs", "; ".join(f"{engine}: {text}" for text, engine in words.items()))
    return Outcome("answer" if naive is not None else "refused")


def _close(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and abs(first - second) <= TOLERANCE


def answer(source: Path, options: Options, engine: str) -> dict[str, dict[str, float]]:
    """Rows and binned error by group."""
    import truecal as tc

    lens = tc.OneClass(1) if options.lens == "class" else None
    select = {"": None, "older": tc.by_column("age", low=50), "positives": tc.by_label(1)}[options.select]
    estimator = tc.BinnedECE(bins=BINS)
    outputs: Any = options.outputs[0] if len(options.outputs) == 1 else list(options.outputs)
    if engine == "memory":
        return _in_memory(source, options, outputs, lens, select)
    scan = tc.scan(
        source, label=options.label, **{options.kind: outputs}, weights=options.weights, by=options.by or None, lens=lens,
        select=select, engine=engine, drop_null=options.drop_null,
    )  # fmt: skip
    groups = scan.groups(estimator=estimator) if options.by else {(): scan.measure(estimator=estimator)}
    return {", ".join(map(_shown, key)): {"rows": e.n, "error": float(e.value)} for key, e in groups.items()}


def _in_memory(source: Path, options: Options, outputs: Any, lens: Any, select: Any) -> dict[str, dict[str, float]]:
    import truecal as tc
    from truecal.predictions.readers import ReadRequest, read_file

    logits = outputs if options.kind == "logits" else None
    columns = (*options.by, *(("age",) if options.select == "older" else ()))
    request = ReadRequest(
        options.label, None if logits else outputs, logits, options.weights, by=columns, drop_null=options.drop_null
    )
    preds = read_file(source, request).preds
    keys = [
        ", ".join(map(_shown, row))
        for row in (
            zip(*(preds.columns[name] for name in options.by), strict=True) if options.by else [()] * len(preds)
        )
    ]
    answers = {}
    for key in dict.fromkeys(keys):
        rows = preds.take([i for i, other in enumerate(keys) if other == key])
        estimate = tc.measure(rows, lens=lens, select=select, estimator=tc.BinnedECE(bins=BINS))
        answers[key] = {"rows": estimate.n, "error": float(estimate.value)}
    return answers


def _shown(value: Any) -> str:
    """A group as text: 30 and 30.0 are one, whatever stands for missing is None."""
    if value is None or value != value:
        return "None"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
