"""The experiments of five papers about calibration errors, done again with the public names of truecal.

`python -m papers list` names them, `python -m papers run roelofs-fig4` writes the table and the figure of one, and
`python -m papers page` does them all and writes docs/papers.md: every numbered item with our number, the printed one and a
verdict. The folder is a part of the repository, not of the installed package.
"""
