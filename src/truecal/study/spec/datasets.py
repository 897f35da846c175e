"""What a study file says of its datasets: which rows they share with clean data, and their covariates.

datasets:
  imagenet-c-*: {clean: imagenet}              the same rows, corrupted: those that recalibrators learnt from are left out
  imagenet-a: {independent: true}              other rows: judged whole, by what was learnt on clean data
  imagenet-v2: {independent: true, by: imagenet, collected: 2019}
"""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from truecal.study.spec.document import Entry, Problems
from truecal.study.spec.files import Source, field_value
from truecal.study.spec.spec import Dataset, Options

Named = tuple[str, Dataset]
_KEYS = ("clean", "independent", "by")


def read_datasets(
    problems: Problems, entry: Entry | None, sources: Sequence[Source], covariates: tuple[str, ...]
) -> tuple[Named, ...]:
    """Every entry of `datasets`, in order; names may be patterns with * and ?."""
    if entry is None:
        return ()
    if not isinstance(entry.value, dict):
        problems.add(entry.line, "datasets must say what each is, such as cifar10-c: {clean: cifar10}")
        return ()
    there = {source.dataset for source in sources}
    described = []
    for pattern, about in entry.value.items():
        if there and not any(fnmatchcase(name, pattern) for name in there):
            problems.add(about.line, f"datasets describes {pattern!r}, but no prediction file is of that dataset")
        items = problems.keys(about, (*_KEYS, *covariates), what=f"the dataset {pattern!r}")
        described.append((pattern, _dataset(problems, pattern, items, there)))
    return tuple(described)


def _dataset(problems: Problems, pattern: str, items: dict[str, Entry], there: set[str]) -> Dataset:
    clean, by = (None if name not in items else str(items[name].plain()) for name in ("clean", "by"))
    independent = False
    if "independent" in items:
        independent = bool(problems.of_type(items["independent"], bool, what="independent", words="true or false"))
    line = next((entry.line for entry in items.values()), 0)
    for name, wanted in (("clean", clean), ("by", by)):
        if wanted is not None and there and wanted not in there:
            problems.add(items[name].line, f"{name} names {wanted!r}, but no prediction file is of that dataset")
    if clean is not None and independent:
        problems.add(line, f"{pattern!r} cannot both share the rows of {clean!r} and be independent")
    if by is not None and not independent:
        problems.add(line, "by is for independent datasets; one that shares rows with clean data says clean: NAME")
    own = {
        name: field_value(problems, name, entry.value, entry.line) for name, entry in items.items() if name not in _KEYS
    }
    return Dataset(clean, independent, by, tuple(own.items()))


def resolve(problems: Problems, options: Options, sources: Sequence[Source], line: int) -> Options:
    """The same with a clean dataset for every independent one: the only one there is, unless it names its own."""
    names = dict.fromkeys(source.dataset for source in sources)
    clean = [name for name in names if not options.about(name).independent and options.clean_of(name) == name]
    resolved = []
    for pattern, about in options.datasets:
        if about.independent and about.by is None and options.split.dataset is None and options.recalibrators:
            if len(clean) != 1:
                which = f"{len(clean)} datasets ({', '.join(clean)})" if clean else "no dataset"
                problems.add(line, f"{pattern!r} is independent, and {which} could recalibrate it; say by: NAME")
            else:
                about = replace(about, by=clean[0])
        resolved.append((pattern, about))
    return replace(options, datasets=tuple(resolved))
