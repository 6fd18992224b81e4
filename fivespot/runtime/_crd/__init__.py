"""Internals of `fivespot.runtime.crd`; import that instead."""
