"""The words of Hermes: frozen values without behaviour and without I/O.

Times are seconds since the epoch (`..._s`), floats. Options are named by their index, since labels can repeat or be
empty. `core` gives these values their meaning, `storage` keeps them.
"""
