"""Hostile calls: every public function and class called with what no caller should give it, and judged by what comes back.

A call is a line of Python. It must end in the right answer or in an error of truecal; see :mod:`tools.hostile.judge`.
`python -m tools.hostile --calls 1000 --seed 1` makes and judges calls, `--call LINE --seed 1` repeats one.
"""
