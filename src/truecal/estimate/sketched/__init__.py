"""How far an estimate from a sketch can be from that of all rows.

Bins, debiased bins, label bins, the sweep, the nearest neighbours and the isotonic error have proved bounds: whatever the order of
rows inside the cells was, the exact value is no further away. The smooth and the kernel-density error work on a grid that cells
never cross, so they are exact. So is the rank series where every cell holds one score; elsewhere its bound is probed.
"""
