"""Figures calibrated by what people said about a few of the pairs that a judge graded."""

from rag_selectivity.calibrated.people import PeoplesLabels, labels_to_calibrate, people_under, peoples_grades

__all__ = ["PeoplesLabels", "labels_to_calibrate", "people_under", "peoples_grades"]
