"""Tests of judgement: values in, verdicts out."""
