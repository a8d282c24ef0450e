"""Containment of the code of others inside a command."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ckcv_ray.cli.output import keep_results_apart, results
from ckcv_ray.errors import RunError
from ckcv_ray.learners.foreign import EndedError, describe_end
from ckcv_ray.learners.watch import accept_supervision, note_done


def contain_command(command: Callable[..., None]) -> Callable[..., None]:
    """Keep what estimators print out of the results of a command, and let it end when it is done, not before.

    Raises:
        RunError: code of an estimator or of a package raised SystemExit, or the like.
    """

    @wraps(command)
    def call(**given: Any) -> None:
        accept_supervision()
        with keep_results_apart():
            try:
                command(**given)
            except EndedError as error:
                raise RunError(f"code of an estimator: {error}") from error
            except (Exception, KeyboardInterrupt):
                raise
            except BaseException as error:
                raise RunError(f"code of an estimator or a package: {describe_end(error)}") from error
            if (stream := results()) is not None:
                stream.flush()
            note_done()

    return call
