"""What this package no longer has, and what to write instead: the one table of it.

The command line, studies in files and Python answer with these sentences.
"""

REMOVED: dict[str, str] = {  # commands as "ckcv x", options "--x", values "option=x", and names of Python
    "certify=nested": "write --holdout-share 0.5: half of the rows held out prove as much, with a single "
    "selection",
    "--outer-splits": "write --holdout-share 0.5, which proves as much as nested outer splits did",
    "--outer-share": "write --holdout-share with the share of the rows that are to judge, such as 0.5",
    "--nested": "without it, ckcv predict applies the model that the certificate is about",
    "Nested": "write Holdout(0.5), which proves as much with one selection",
    "certify=occam": "write --certify paper, which is what it is called now",
    "Occam": "write Paper, which is what it is called now",
    "certify=auto": "it is what --certify holdout does, the default: leave it out",
    "holdout_share=bound": "write the share itself: --holdout-share 0.6 for up to 400 rows, 0.5 for more",
    "ckcv new": "ckcv plan TABLE --write-study mine.toml writes a study file",
    "ckcv serve": "the guide Recipes answers rows over HTTP with a few lines around load_run(...).predict",
    "--pdf": "open the HTML report in a browser, and print it",
    "--sign": "sign the manifest of the run folder with ssh-keygen -Y sign -n ckcv manifest.json",
    "out=.docx": "write a form with --out form.md, then pandoc form.md -o form.docx",
    "to=onnx": "export to skops, and convert the file with skl2onnx, as the guide Recipes does",
    "integrations": "log a result with a few lines of MLflow, as the guide Recipes does",
    "ckcv submit": "--workers divides the work among processes, --address among nodes of a Ray cluster",
    "ckcv shard": "ckcv run computes the whole study, and resumes it where a job was stopped",
    "ckcv gather": "ckcv run resumes a study, and shows its result as soon as everything is computed",
    "--shards": "--workers divides the work among processes, --address among nodes of a Ray cluster",
    "--slurm": "sbatch docs/guides/slurm.sbatch runs a study on Ray in an allocation of Slurm",
    "--call-sbatch": "sbatch docs/guides/slurm.sbatch runs a study on Ray in an allocation of Slurm",
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
    "--best-prefix": "write --all-members, which the claim of F* is about",
    "--bound": "leave it out; L_EE is the mean of Clopper-Pearson bounds, as in the paper",
    "by=best_prefix": "write by='random', which the claim of F* is about",
    "--first-uniform": "leave it out; --certify holdout has closer bounds",
    "claim=member": "claim refit or vote, or claim nothing and predict --member 7",
    "claim=random": "claim refit or vote; --certify paper claims the error of a random member of F*",
    "--spare": "leave it out: what early rounds of a budget do not need is used",
    "Assessed": "write Result",
    "--unlabelled": "leave it out: nothing is proven of the model fitted on all rows",
    "--refer": 'write ckcv run --answer "error<=0.05": predict then says which rows it is confident of',
}


def explain_removed(*names: str) -> str:
    """Return the sentence about the first of some names that was removed; "" if none was."""
    return next((f"{name} was removed: {REMOVED[name]}" for name in names if name in REMOVED), "")


def explain_removed_option(name: object, value: object = None) -> str:
    """Return the sentence about an option, or its value (the first word of it); "" if neither was removed."""
    of_value = [f"{name}={value.partition(':')[0]}"] if isinstance(value, str) else []
    return explain_removed(f"--{name}".replace("_", "-"), *of_value)
