"""The store: a folder of Parquet parts, written whole, that any number of processes read and write at any moment.

    store/
      study.json                 version, name, the study as written, its jobs, covariates
      results/<job>.parquet      numbers of one prediction file (columns: store.columns.json); written last, when the job is done
      diagrams/<job>.parquet     the bins of its reliability diagrams
      draws/<job>.parquet        its metrics on the resamples that all models share
      fits/<fit>.json            what recalibrators were fitted to (see `run.Fit`)

Every file is renamed to its final name when it is complete, so that a run that is killed leaves finished parts and nothing else.
A job is named by a hash of what its numbers depend on. Only the jobs listed in study.json are read; parts of files or options
that have changed since are ignored.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import truecal as tc
from truecal.errors import FileError, InputError, extra
from truecal.study.document import load_schema
from truecal.writing import write_whole

if TYPE_CHECKING:
    import polars

VERSION = 5  # by choice: of the format of a store; others are refused
KINDS = ("results", "diagrams", "draws")


def _read_columns() -> dict[str, dict[str, str]]:
    """Read store.columns.json: by kind of table ("results", "diagrams", "draws"), the name of the polars type by column."""
    tables = load_schema("store.columns.json")
    return {kind: {name: column[0] for name, column in columns.items()} for kind, columns in tables.items()}


_COLUMNS = _read_columns()
RESULTS, DIAGRAMS, DRAWS = (_COLUMNS[kind] for kind in KINDS)
Records = Sequence[Mapping[str, Any]]


class _Polars:
    """Polars, imported on first use."""

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of polars, imported on first use; name the extra that installs it if it is missing."""
        return getattr(extra("polars", "study"), name)


pl: Any = _Polars()


class Store:
    """Hold the results of a study in a folder, for any number of readers and writers.

    Parameters
    ----------
    folder : path
        Folder of the store; made when a study begins to write to it.

    See Also
    --------
    Study.run : Evaluate a study into a store.
    import_table : Make a store of numbers that were measured elsewhere.

    Examples
    --------
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
        """Name the folder of the store, which need not exist yet."""
        self.folder = Path(folder)

    def __repr__(self) -> str:
        """Return "Store(...)" with the folder.

        >>> Store("study")
        Store('study')
        """
        return f"Store({str(self.folder)!r})"

    # ------------------------------------------------------------------ reading

    def meta(self) -> dict[str, Any]:
        """Read study.json: version, name, study, jobs, covariates, truecal (the release that wrote it).

        Returns
        -------
        dict
            The content of the file.

        Raises
        ------
        FileError
            If there is none, it is damaged, or another version of the library wrote it.
        """
        path = self.folder / "study.json"
        if not path.is_file():
            raise FileError(f"{self.folder} is no store: it has no study.json; make one with truecal study run")
        meta = read_json(path, "run the study again")
        if not isinstance(meta, dict) or not isinstance(meta.get("jobs"), list):
            raise FileError(f"{path} is not that of a study; run the study again")
        if meta.get("version") != VERSION:
            older = isinstance(meta.get("version"), int) and meta["version"] < VERSION
            remedy = "run the study again into another folder" if older else "update truecal"
            raise FileError(
                f"{self.folder} is a store of version {meta.get('version')!r}, this release reads {VERSION}; {remedy}"
            )
        covariates = meta.get("covariates", {})
        valid = {
            "name": isinstance(meta.get("name"), str),
            "jobs": all(isinstance(job, str) for job in meta["jobs"]),
            "fits": isinstance(meta.get("fits", []), list),
            "clean": isinstance(meta.get("clean", {}), dict),
            "covariates": isinstance(covariates, dict) and all(isinstance(row, dict) for row in covariates.values()),
        }
        for name in (name for name, is_valid in valid.items() if not is_valid):
            raise FileError(
                f"{path} is damaged: its {name!r} cannot be {str(meta.get(name))[:40]!r}; run the study again"
            )
        return meta

    def jobs(self) -> list[str]:
        """List all jobs of the study, done or not."""
        return list(self.meta()["jobs"])

    def done(self) -> list[str]:
        """List the jobs whose numbers are all there."""
        return [job for job in self.jobs() if self.has(job)]

    def has(self, job: str) -> bool:
        """Tell whether a job is done.

        Parameters
        ----------
        job : str
            Name of the job.

        Returns
        -------
        bool
            Whether its results, diagrams and resamples are all written.
        """
        return all(self._path(kind, job).is_file() for kind in KINDS)

    def frame(self) -> "polars.DataFrame":
        """Read every number of the study that is there.

        Returns
        -------
        polars.DataFrame
            One row per number, with the columns of `RESULTS` and one for each covariate.

        Raises
        ------
        FileError
            If the folder is no store, or a part of it is damaged.
        """
        meta = self.meta()
        table = self._read("results", meta["jobs"])
        covariates = [{"job": job, **values} for job, values in meta.get("covariates", {}).items()]
        if not covariates:
            return table
        columns = pl.DataFrame(covariates, infer_schema_length=None, strict=False).cast({pl.Null: pl.Float64})
        return table.join(columns, on="job", how="left", maintain_order="left")

    def references(self) -> dict[str, str]:
        """Return the clean dataset by the name of each shifted one, where the two names differ."""
        return dict(self.meta().get("clean", {}))

    def diagrams(self) -> "polars.DataFrame":
        """Read the bins of the reliability diagrams, with the columns of `DIAGRAMS`."""
        return self._read("diagrams", self.jobs())

    def draws(self) -> "polars.DataFrame":
        """Read the metrics on the resamples that all models on the same rows share, with the columns of `DRAWS`."""
        return self._read("draws", self.jobs())

    def fits(self) -> "polars.DataFrame":
        """Read what recalibrators were fitted to.

        Returns
        -------
        polars.DataFrame
            One row per model, clean dataset, seed and recalibrator: number of rows (of all in the file), and temperature.
        """
        types = {"model": pl.String, "dataset": pl.String, "seed": pl.Int64, "recalibrator": pl.String}
        types |= {"rows": pl.Int64, "of": pl.Int64, "temperature": pl.Float64}
        rows = [{name: fit[name] for name in types} for fit in self._fits(types)]
        return pl.DataFrame(rows, schema=types).sort("model", "dataset", "seed", "recalibrator")

    def split_rows(self, model: str, dataset: str, *, seed: int = 0) -> list[int]:
        """Return the rows of the clean file of a model that its recalibrators were fitted on; the others were judged.

        Parameters
        ----------
        model : str
            Name of the model.
        dataset : str
            Name of the clean dataset.
        seed : int, default 0
            Seed of the model.

        Returns
        -------
        list of int
            Indices of rows, from 0.

        Raises
        ------
        InputError
            If no recalibrator was fitted for them.
        """
        for fit in self._fits(("model", "dataset", "seed", "indices")):
            if (fit["model"], fit["dataset"], fit["seed"]) == (model, dataset, seed):
                return list(fit["indices"])
        raise InputError(f"no recalibrator was fitted for {model!r} on {dataset!r}, seed {seed}; `fits()` lists all")

    def _fits(self, keys: Iterable[str]) -> list[dict[str, Any]]:
        """Read the fits of this study that are written, as mappings (see `run.Fit`); refuse one that lacks one of `keys`."""
        fits = []
        for path in (self.folder / "fits" / f"{name}.json" for name in self.meta().get("fits", ())):
            if path.is_file():
                fits.append(read_json(path))
                if not isinstance(fits[-1], dict) or not set(keys) <= fits[-1].keys():
                    raise FileError(f"{path} is damaged; delete it and run the study again")
        return fits

    def _read(self, kind: str, jobs: Iterable[str]) -> "polars.DataFrame":
        """Read one kind of table of the jobs that have one, in their order; empty if none has.

        Raises FileError for a file that is damaged, or has other columns or types than those of its kind.
        """
        tables = [make_table(_COLUMNS[kind])]
        for path in (self._path(kind, job) for job in jobs):
            if not path.is_file():
                continue
            try:
                tables.append(pl.read_parquet(path, glob=False))
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
                tables.append(pl.DataFrame())
            if tables[-1].schema != tables[0].schema:
                raise FileError(f"{path} is damaged; delete it and run the study again: only its job is computed anew")
        table: polars.DataFrame = pl.concat(tables)
        return table

    def _path(self, kind: str, job: str) -> Path:
        """Return the file of one kind of table of a job: FOLDER/KIND/JOB.parquet; whether it exists is not checked.

        >>> Store("study")._path("results", "a1").as_posix()
        'study/results/a1.parquet'
        """
        return self.folder / kind / f"{job}.parquet"

    # ------------------------------------------------------------------ writing

    def begin(self, meta: dict[str, Any]) -> None:
        """Make the folders of the store and write study.json.

        Parameters
        ----------
        meta : dict
            Content of study.json: name, jobs, and further fields as `meta()` returns them.

        Raises
        ------
        InputError
            If the folder holds a study of another name.
        FileError
            If the folders cannot be made, or study.json is damaged or of another version.
        """
        if (self.folder / "study.json").is_file():
            name = self.meta().get("name")
            if name != meta["name"]:
                raise InputError(
                    f"{self.folder} holds the study {name!r}, not {meta['name']!r}; choose another store or another name"
                )
        try:
            for kind in (*KINDS, "fits"):
                (self.folder / kind).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make a store in {self.folder}: {error.strerror}") from error
        content = {"version": VERSION, **meta, "truecal": tc.__version__}
        write_whole(self.folder / "study.json", json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n")

    def add(self, job: str, results: Any, diagrams: Any, draws: Any = ()) -> None:
        """Write the numbers of a job, given as tables or as records; what is absent from a record is null.

        Parameters
        ----------
        job : str
            Name of the job.
        results : polars.DataFrame or sequence of mapping
            Table or records with the columns of `RESULTS`.
        diagrams : polars.DataFrame or sequence of mapping
            Table or records with the columns of `DIAGRAMS`.
        draws : polars.DataFrame or sequence of mapping, default ()
            Table or records with the columns of `DRAWS`.
        """
        tables = {"draws": draws, "diagrams": diagrams, "results": results}  # results are written last
        for kind, rows in tables.items():
            table = rows if isinstance(rows, pl.DataFrame) else make_table(_COLUMNS[kind], rows)
            table.write_parquet(buffer := BytesIO())
            write_whole(self._path(kind, job), buffer.getvalue())


def read_json(path: Path, remedy: str = "delete it and run the study again") -> Any:
    """Read a JSON file; raise FileError "PATH is damaged or cannot be read; REMEDY" for a missing or damaged one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path} is damaged or cannot be read; {remedy}") from error


def make_table(columns: Mapping[str, str], rows: Records = ()) -> "polars.DataFrame":
    """Make a polars table of records with the given columns and polars types; absent values are null, other fields dropped.

    >>> make_table({"a": "Int64", "b": "String"}, [{"a": 1, "c": 2}]).rows()
    [(1, None)]
    """
    types = {
        name: pl.List(pl.Float32) if kind.startswith("List") else getattr(pl, kind) for name, kind in columns.items()
    }
    table: polars.DataFrame = pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, schema=types)
    return table
