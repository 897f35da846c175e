"""The engines a test can ask for; absent ones skip with a reason, but fail where CI promises them."""

import os

import pytest


def need(package: str) -> None:
    """Skip without the package, or fail in CI, where every engine must be there."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        reason = f"{package} is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}, but CI must test it")
        pytest.skip(reason)


def as_polars(table):
    need("polars")
    import polars as pl

    return pl.from_arrow(table).lazy()


def as_duckdb(table):
    need("duckdb")
    import duckdb

    return duckdb.connect().from_arrow(table)


def as_arrow(table):
    return table


def as_pandas(table):
    return table.to_pandas()


def as_dask(table):
    need("dask")
    import dask.dataframe as dd

    return dd.from_pandas(table.to_pandas(), npartitions=3)


ENGINES = {"polars": as_polars, "duckdb": as_duckdb, "pyarrow": as_arrow, "pandas": as_pandas, "dask": as_dask}
