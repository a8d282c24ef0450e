"""What this package no longer has, and what to write instead: the one table of it.

The command line, studies in files and Python answer with these sentences.
"""

REMOVED: dict[str, str] = {  # commands as "ckcv x", options "--x", values "option=x", and names of Python
    "balance=smote": "score a pipeline of imblearn with SMOTE in it, as the guide for scikit-learn shows",
    "resampling=lpo": "give scikit-learn's LeavePOut as the resampling, from Python",
    "resampling=drawn_rows": "choose drawn_folds",
    "resampling=learning_curve": "give splits of growing size from Python, as the guide to evaluate shows",
    "LearningCurve": "give splits of growing size as the resampling, as the guide to evaluate shows",
    "resampling=paired_folds": "choose repeated_kfold, with interval=corrected_t",
    "resampling=paired_subsampling": "choose subsampling, with interval=corrected_t",
    "interval=conservative_z": "choose corrected_t, with subsampling or kfold",
    "interval=nested_cv": "choose corrected_t, with repeated_kfold",
    "interval=wald": "choose clopper_pearson for a single split, or corrected_t for folds",
    "PairedFolds": "choose RepeatedKFold, with interval=corrected_t",
    "PairedSubsampling": "choose Subsampling, with interval=corrected_t",
    "LeavePOut": "give the one of scikit-learn as the resampling",
}


def explain_removed(*names: str) -> str:
    """Return the sentence about the first of some names that was removed; "" if none was."""
    return next((f"{name} was removed: {REMOVED[name]}" for name in names if name in REMOVED), "")


def explain_removed_option(name: str, value: object = None) -> str:
    """Return the sentence about an option, or its value (the first word of it); "" if neither was removed."""
    of_value = [f"{name}={value.partition(':')[0]}"] if isinstance(value, str) else []
    return explain_removed(f"--{name.replace('_', '-')}", *of_value)
