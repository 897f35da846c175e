"""The store: a folder of Parquet parts, written whole, that any number of processes read and write at any moment.

    store/
      study.json                       version, name, the study as written, its jobs, what is wanted of them, covariates
      sets/<set>.json                  which metrics a part holds, by lens
      results/<job>.<set>.parquet      numbers of one prediction file; written last, so they are there when the part is
      diagrams/<job>.<set>.parquet     the bins of its reliability diagrams
      draws/<job>.<set>.parquet        its metrics on the resamples that all models share
      fits/<fit>.json                  what recalibrators learnt (see run/fit.py)
      claims/<job>                     who is at work on a job (see run/claims.py)

Every file is renamed into its place whole, so that a run that is killed leaves finished parts and nothing else. A job is named by
a hash of what its numbers depend on, apart from the choice of metrics: a metric that is added is a part more. Only the jobs and
metrics listed in study.json are read; parts of files or options that have changed since are passed over, and removed by `collect`.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import truecal as tc
from truecal.errors import FileError, InputError, extra
from truecal.writing import write_whole

if TYPE_CHECKING:
    import polars as pl
VERSION = 2
KINDS = ("results", "diagrams", "draws")

# Column -> polars type, one row per number. Only family, size, fit_on, fit_rows, scheme, bins, norm, low, high, level and n may be
# missing.
RESULTS = {
    "job": "String",
    "model": "String",
    "family": "String",
    "size": "Float64",
    "dataset": "String",
    "severity": "Float64",
    "seed": "Int64",
    "recalibrator": "String",
    "fit_on": "String",
    "fit_rows": "Int64",
    "lens": "String",
    "selection": "String",
    "metric": "String",
    "scheme": "String",
    "bins": "Int64",
    "norm": "Float64",
    "value": "Float64",
    "low": "Float64",
    "high": "Float64",
    "level": "Float64",
    "n": "Int64",
    "warnings": "String",
}

# One row per bin that holds data; 15 bins of equal mass and 15 of equal width (`scheme`).
DIAGRAMS = {
    "job": "String",
    "recalibrator": "String",
    "lens": "String",
    "selection": "String",
    "scheme": "String",
    "bin": "Int64",
    "low": "Float64",
    "high": "Float64",
    "count": "Float64",
    "confidence": "Float64",
    "outcome": "Float64",
}

# One row per metric that was resampled, on the selection "all".
DRAWS = {"job": "String", "recalibrator": "String", "lens": "String", "metric": "String", "values": "List(Float32)"}

_COLUMNS = {"results": RESULTS, "diagrams": DIAGRAMS, "draws": DRAWS}
_KEY = ["job", "recalibrator", "lens", "selection", "metric"]
Wanted = tuple[str, str]  # lens, metric
Rows = Sequence[Mapping[str, Any]]


def polars() -> Any:
    """Polars, on use only."""
    return extra("polars", "study")


class Store:
    """The results of a study in a folder; any number of readers and writers.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.begin({"name": "two models", "study": {}, "jobs": ["a1", "b2"]})
    >>> store.add("a1", [{"job": "a1", "model": "mlp", "metric": "nll", "value": 0.25}], [])
    >>> store.done()
    ['a1']
    >>> store.frame().select("model", "metric", "value").rows()
    [('mlp', 'nll', 0.25)]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    # ------------------------------------------------------------------ reading

    def meta(self) -> dict[str, Any]:
        """What study.json holds: version, name, study, jobs, wanted, covariates, truecal (the release that wrote it)."""
        path = self.folder / "study.json"
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise FileError(
                f"{self.folder} is no store: it has no study.json; make one with truecal study run"
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise FileError(f"{path} is damaged or cannot be read; run the study again") from error
        if not isinstance(held, dict) or not isinstance(held.get("jobs"), list):
            raise FileError(f"{path} is not that of a study; run the study again")
        if held.get("version") != VERSION:
            older = isinstance(held.get("version"), int) and held["version"] < VERSION
            remedy = "run the study again into another folder" if older else "update truecal"
            raise FileError(
                f"{self.folder} is a store of version {held.get('version')!r}, this release reads {VERSION}; {remedy}"
            )
        odd = next((name for name, right in _FACTS.items() if not right(held.get(name))), None)
        if odd is not None:
            raise FileError(
                f"{path} is damaged: its {odd!r} cannot be {str(held.get(odd))[:40]!r}; run the study again"
            )
        return held

    def jobs(self) -> list[str]:
        """All jobs of the study, done or not."""
        return list(self.meta()["jobs"])

    def done(self) -> list[str]:
        """The jobs whose numbers are all there."""
        meta = self.meta()
        missing = self.missing(meta["jobs"], _wanted(meta))
        return [job for job in meta["jobs"] if job not in missing]

    def missing(self, jobs: Sequence[str], wanted: Sequence[Wanted] | None) -> dict[str, list[Wanted]]:
        """What is wanted of each job and not there; jobs that lack nothing are left out."""
        sets = self._sets()
        held: dict[str, set[Wanted]] = {}
        for job, part in set.intersection(*(set(self._parts(kind)) for kind in KINDS)):
            held.setdefault(job, set()).update(sets.get(part, ()))
        if wanted is None:
            return {job: [] for job in jobs if job not in held}
        missing = {job: [pair for pair in wanted if pair not in held.get(job, ())] for job in jobs}
        return {job: pairs for job, pairs in missing.items() if pairs}

    def has(self, job: str, pairs: Sequence[Wanted]) -> bool:
        """Whether a part with just these metrics of a job is there."""
        name = f"{job}.{_set_name(frozenset(pairs))[0]}.parquet"
        return all((self.folder / kind / name).is_file() for kind in KINDS)

    def frame(self) -> "pl.DataFrame":
        """Every number of the study that is there, one per row (see RESULTS), with a column for each covariate."""
        meta = self.meta()
        table = self._read("results", meta)
        covariates = meta.get("covariates") or {}
        if not covariates.get("names"):
            return table
        known = {job: dict(zip(covariates["names"], values, strict=True)) for job, values in covariates["of"].items()}
        return table.join(_covariates(known, covariates["names"]), on="job", how="left", maintain_order="left")

    def references(self) -> dict[str, str]:
        """The clean dataset of every shifted one that is not its own."""
        return dict(self.meta().get("clean") or {})

    def diagrams(self) -> "pl.DataFrame":
        """The bins of the reliability diagrams (see DIAGRAMS)."""
        return self._read("diagrams", self.meta())

    def draws(self) -> "pl.DataFrame":
        """Metrics on the resamples that all models on the same rows share (see DRAWS)."""
        return self._read("draws", self.meta())

    def fits(self) -> "pl.DataFrame":
        """What recalibrators learnt: one row per model, clean dataset, seed and recalibrator; temperature, log loss on those rows
        before and after, confidence and accuracy there, and how many they were."""
        pl = polars()
        names = ("model", "dataset", "seed", "recalibrator", "rows", "of", "temperature", "nll_before", "nll_after")
        kinds = dict.fromkeys((*names, "confidence", "accuracy"), pl.Float64)
        kinds |= dict.fromkeys(("model", "dataset", "recalibrator"), pl.String)
        kinds |= dict.fromkeys(("seed", "rows", "of"), pl.Int64)
        rows = [{name: fit[name] for name in kinds} for fit in self._fits(kinds)]
        return pl.DataFrame(rows, schema=kinds).sort("model", "dataset", "seed", "recalibrator")

    def split_rows(self, model: str, dataset: str, *, seed: int = 0) -> list[int]:
        """Rows (from 0) of the clean file of a model that its recalibrators were fitted on; the others were judged."""
        keys = ("model", "dataset", "seed", "indices")
        for fit in self._fits(keys):
            if (fit["model"], fit["dataset"], fit["seed"]) == (model, dataset, seed):
                return list(fit["indices"])
        raise InputError(f"no recalibrator was fitted for {model!r} on {dataset!r}, seed {seed}; `fits()` lists all")

    def _fits(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        listed = set(self.meta().get("fits") or ())
        fits = []
        for path in sorted((self.folder / "fits").glob("*.json")):
            if path.stem in listed:
                fits.append(_json(path))
                if not isinstance(fits[-1], dict) or not set(keys) <= fits[-1].keys():
                    raise FileError(f"{path} is damaged; delete it and run the study again")
        return fits

    def _read(self, kind: str, meta: dict[str, Any]) -> "pl.DataFrame":
        pl = polars()
        sets, wanted = self._sets(), _wanted(meta)
        place = {job: i for i, job in enumerate(meta["jobs"])}
        parts = sorted(((job, part) for job, part in self._parts(kind) if job in place), key=lambda p: place[p[0]])
        columns = _COLUMNS[kind]
        if not parts:
            return make_table(columns)
        paths = [self.folder / kind / f"{job}.{part}.parquet" for job, part in parts]
        wrong = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
        try:
            table = pl.read_parquet(paths, glob=False)
        except wrong as error:
            raise FileError(_damaged(paths, columns, wrong)) from error
        if table.columns != list(columns) or table.dtypes != make_table(columns).dtypes:
            raise FileError(_damaged(paths, columns, wrong))
        if len(parts) == len({job for job, _ in parts}) and (
            wanted is None or all(set(sets.get(part, ())) <= set(wanted) for _, part in parts)
        ):
            return table
        return _chosen(table, wanted, kind)

    def _parts(self, kind: str) -> list[tuple[str, str]]:
        folder = self.folder / kind
        names = [name.split(".") for name in os.listdir(folder)] if folder.is_dir() else []
        return [(name[0], name[1]) for name in names if len(name) == 3 and name[0] and name[2] == "parquet"]

    def _sets(self) -> dict[str, list[Wanted]]:
        folder = self.folder / "sets"
        parts = {}
        for path in folder.glob("*.json") if folder.is_dir() else ():
            pairs = _json(path)
            if not _are_pairs(pairs):
                raise FileError(f"{path} is damaged; delete it and run the study again")
            parts[path.stem] = [(lens, metric) for lens, metric in pairs]
        return parts

    # ------------------------------------------------------------------ writing

    def begin(self, meta: dict[str, Any]) -> None:
        """State what the study consists of."""
        if (self.folder / "study.json").is_file():
            name = self.meta().get("name")
            if name != meta["name"]:
                raise InputError(
                    f"{self.folder} holds the study {name!r}, not {meta['name']!r}; choose another store or another name"
                )
        try:
            for kind in (*KINDS, "sets", "fits", "claims"):
                (self.folder / kind).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make a store in {self.folder}: {error.strerror}") from error
        held = {"version": VERSION, **meta, "truecal": tc.__version__}
        write_whole(self.folder / "study.json", json.dumps(held, indent=1, ensure_ascii=False, default=str) + "\n")

    def add(self, job: str, results: Rows, diagrams: Rows, draws: Rows = ()) -> None:
        """Keep the numbers of a job; they are there when this returns."""
        self.add_table(job, make_table(RESULTS, results), make_table(DIAGRAMS, diagrams), draws)

    def add_table(self, job: str, results: "pl.DataFrame", diagrams: "pl.DataFrame", draws: Rows = ()) -> None:
        """The same for results and diagrams that are tables already."""
        pairs = results.select("lens", "metric").unique().fill_null("").rows()
        name, content = _set_name(frozenset(pairs))
        if not (self.folder / "sets" / f"{name}.json").is_file():
            write_whole(self.folder / "sets" / f"{name}.json", content)
        tables = {"draws": make_table(DRAWS, draws), "diagrams": diagrams, "results": results}
        for kind, table in tables.items():
            table.write_parquet(buffer := BytesIO())
            write_whole(self.folder / kind / f"{job}.{name}.parquet", buffer.getvalue())

    def collect(self) -> tuple[int, int]:
        """Remove parts and fits that the study no longer consists of, and what killed runs left half written.

        Returns the number of files and of bytes.
        """
        meta = self.meta()
        jobs, fits = set(meta["jobs"]), set(meta.get("fits") or ())
        folders = (self.folder, *(self.folder / kind for kind in (*KINDS, "sets", "fits", "claims")))
        old = [path for folder in folders for path in folder.glob(".*.part")]
        for kind in KINDS:
            old += [path for path in (self.folder / kind).glob("*.parquet") if path.name.split(".")[0] not in jobs]
        old += [path for path in (self.folder / "fits").glob("*.json") if path.stem not in fits]
        missing = self.missing(meta["jobs"], _wanted(meta))
        # Of runs that are gone
        old += [path for path in (self.folder / "claims").glob("[!.]*") if path.name not in missing]
        size = sum(path.stat().st_size for path in old)
        for path in old:
            path.unlink(missing_ok=True)
        return len(old), size


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged or cannot be read; delete it and run the study again") from error


def _are_pairs(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) for name in pair) for pair in value
    )


def _are_covariates(value: object) -> bool:
    """Names, and for every job one value per name."""
    if not value:
        return value is None or value == {}
    if not isinstance(value, dict) or not isinstance(value.get("names"), list) or not isinstance(value.get("of"), dict):
        return False
    return all(isinstance(row, list) and len(row) == len(value["names"]) for row in value["of"].values())


# What study.json must hold for the store to be read, by name.
_FACTS: Mapping[str, Callable[[Any], bool]] = {
    "name": lambda name: isinstance(name, str),
    "jobs": lambda jobs: all(isinstance(job, str) for job in jobs),
    "wanted": lambda pairs: pairs is None or _are_pairs(pairs),
    "covariates": _are_covariates,
    "clean": lambda clean: clean is None or isinstance(clean, dict),
    "fits": lambda fits: fits is None or (isinstance(fits, list) and all(isinstance(fit, str) for fit in fits)),
}


def _readable(path: Path, schema: Any, wrong: tuple[type[Exception], ...]) -> bool:
    """Whether a part can be read and has the columns it should have."""
    try:
        return bool(polars().read_parquet(path, glob=False).schema == schema)
    except wrong:
        return False


def _damaged(paths: Sequence[Path], columns: dict[str, str], wrong: tuple[type[Exception], ...]) -> str:
    """Which of the parts of a store cannot be read, and what helps."""
    wanted = make_table(columns)
    for path in paths:
        if not _readable(path, wanted.schema, wrong):
            return f"{path} is damaged; delete it and run the study again: only its job is computed anew"
    return f"parts of {paths[0].parent} do not fit together; delete them and run the study again"


@lru_cache(8)  # nearly all jobs of a study have the same
def _set_name(pairs: frozenset[Wanted]) -> tuple[str, str]:
    """The name of a set of metrics, and its list."""
    content = json.dumps(sorted(pairs))
    return hashlib.blake2b(content.encode(), digest_size=6).hexdigest(), content


def _wanted(meta: dict[str, Any]) -> list[Wanted] | None:
    pairs = meta.get("wanted")
    return None if pairs is None else [(lens, metric) for lens, metric in pairs]


def _chosen(table: Any, wanted: list[Wanted] | None, kind: str) -> Any:
    """What is wanted, once: a metric that two runs computed at the same time is there twice."""
    pl = polars()
    keys = [name for name in (*_KEY, "scheme", "bin") if name in table.columns]
    if kind != "diagrams":
        keys = [name for name in keys if name not in ("scheme", "bin")]
        if wanted is not None:
            listed = pl.DataFrame(wanted, schema=["lens", "metric"], orient="row")
            table = table.join(listed, on=["lens", "metric"], how="semi", maintain_order="left")
    return table.unique(keys, keep="first", maintain_order=True)


def _covariates(known: dict[str, dict[str, object]], names: Sequence[str]) -> Any:
    """A column for each covariate: numbers where all of its values are."""
    pl = polars()
    columns: dict[str, Any] = {"job": pl.Series(list(known), dtype=pl.String)}
    for name in names:
        values = [about[name] for about in known.values()]
        numeric = all(value is None or isinstance(value, (int, float)) for value in values)
        texts = [value if value is None or isinstance(value, str) else f"{value:g}" for value in values]
        columns[name] = pl.Series(values, dtype=pl.Float64) if numeric else pl.Series(texts, dtype=pl.String)
    return pl.DataFrame(columns)


def make_table(columns: Mapping[str, str], rows: Rows = ()) -> "pl.DataFrame":
    """A table of the store with these columns and rows."""
    pl = polars()
    kinds = {
        name: pl.List(pl.Float32) if kind.startswith("List") else getattr(pl, kind) for name, kind in columns.items()
    }
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, schema=kinds)
