"""The study: a validated file that can be run."""

import os
from dataclasses import dataclass

from truecal import parallel
from truecal.study.read_spec import read_spec
from truecal.study.run import run_study
from truecal.study.spec import Spec
from truecal.study.store import Store


@dataclass(frozen=True)
class Study:
    """Many prediction files, judged alike. Made by :meth:`read`.

    >>> import pathlib, tempfile, numpy as np
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.savez(folder / "mlp.npz", p=np.array([0.25, 0.75, 0.75, 0.25]), y=np.array([0, 1, 0, 0]))
    >>> text = '''
    ... name: one model
    ... predictions: [{files: "{model}.npz", dataset: d}]
    ... columns: {label: y, score: p}
    ... metrics: [error, ece-width-2-l1]
    ... '''
    >>> _ = (folder / "study.yaml").write_text(text)
    >>> study = Study.read(folder / "study.yaml")
    >>> study.models, len(study)
    (('mlp',), 1)
    >>> study.run(folder / "store", workers=1).frame().select("model", "metric", "value").rows()
    [('mlp', 'error', 0.25), ('mlp', 'ece-width-2-l1', 0.0)]
    """

    spec: Spec

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, skip_broken: bool = False) -> "Study":
        """Read a study file and look at the labels and shapes of all prediction files.

        Raises an InputError that lists every problem with its line; nothing is evaluated before all is well. With `skip_broken`,
        files that cannot be read or do not fit to the others are left out instead; `broken` lists them.
        """
        return cls(read_spec(path, skip_broken=skip_broken))

    @property
    def broken(self) -> dict[str, str]:
        """Files that were skipped, and why."""
        return dict(self.spec.broken)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order of the file."""
        return tuple(dict.fromkeys(source.model for source in self.spec.sources))

    def __len__(self) -> int:
        """Number of prediction files."""
        return len(self.spec.sources)

    def run(
        self,
        store: str | os.PathLike[str] | Store,
        *,
        workers: int | None = None,
        skip_broken: bool = False,
        progress: parallel.Progress = parallel.unheard,
    ) -> Store:
        """Evaluate every file that the store does not hold yet, and return the store.

        Can be stopped, or killed, at any moment and started again: finished files are skipped, nothing is counted twice. Several
        runs on one host may work on the same store at the same time: each takes files that no other is at work on.

        Parameters
        ----------
        store : folder of the results; made if it is not there.
        workers : processes; default those of the study file, else all cores. One: no further process is started.
        skip_broken : keep what cannot be judged in the store's list of broken files instead of raising at the end.
        progress : called with a :class:`truecal.parallel.Step`: how many of all files are done.
        """
        held = store if isinstance(store, Store) else Store(store)
        return run_study(self.spec, held, workers=workers, skip_broken=skip_broken, progress=progress)
