"""Promises: can the error be said to be below a threshold?"""
