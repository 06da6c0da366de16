"""Figures, printed and not asserted: ``make bench``."""
