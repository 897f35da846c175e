"""Which clean data a shifted dataset is compared with."""

from collections.abc import Mapping, Sequence

from truecal.errors import InputError

Condition = tuple[str, float]


def references(
    conditions: Sequence[Condition], reference: str | Mapping[str, str] | None
) -> tuple[dict[Condition, Condition], list[str]]:
    """For every shifted condition its clean one, and notes on those that have none.

    Without a reference a dataset's own severity 0 is its clean version. A name makes that dataset, at severity 0, the clean version
    of all others; a mapping {shifted dataset: clean dataset} does so one by one.

    >>> references([("digits", 0.0), ("digits", 3.0), ("street", 0.0)], None)[0]
    {('digits', 3.0): ('digits', 0.0)}
    >>> references([("digits", 0.0), ("digits", 3.0), ("street", 0.0)], "digits")[0]
    {('digits', 3.0): ('digits', 0.0), ('street', 0.0): ('digits', 0.0)}
    """
    datasets = sorted({dataset for dataset, _ in conditions})
    if isinstance(reference, Mapping):
        named = {**{name: name for name in datasets}, **reference}
    else:
        named = {name: reference or name for name in datasets}
    for clean in sorted(set(named.values())):
        if clean not in datasets:
            raise InputError(
                f"the reference {clean!r} is not a dataset of the results; there are {', '.join(datasets)}"
            )
    clean_of, notes = {}, []
    for dataset, severity in conditions:
        clean_condition = (named[dataset], 0.0)
        if clean_condition == (dataset, severity):
            continue
        if clean_condition in conditions:
            clean_of[dataset, severity] = clean_condition
        else:
            notes.append(f"{dataset} has no results at severity 0 to compare with; name its clean dataset as reference")
    return clean_of, list(dict.fromkeys(notes))
