"""What this package no longer has, and what to write instead: the one table of it.

The command line, studies in files and Python answer with these sentences.
"""

REMOVED: dict[str, str] = {  # commands as "ckcv x", options "--x", values "option=x", and names of Python
    "claim=member": "claim refit, vote or random, or claim nothing and predict --member 7",
    "--spare": "leave it out: what early rounds of a budget do not need is used",
    "Assessed": "write Result",
    "--unlabelled": "leave it out: nothing is proven of the model fitted on all rows",
    "--refer": 'write ckcv run --answer "error<=0.05": predict then says which rows it is confident of',
}


def explain_removed(*names: str) -> str:
    """Return the sentence about the first of some names that was removed; "" if none was."""
    return next((f"{name} was removed: {REMOVED[name]}" for name in names if name in REMOVED), "")


def explain_removed_option(name: str, value: object = None) -> str:
    """Return the sentence about an option, or its value (the first word of it); "" if neither was removed."""
    of_value = [f"{name}={value.partition(':')[0]}"] if isinstance(value, str) else []
    return explain_removed(f"--{name.replace('_', '-')}", *of_value)
