"""Commands submit, shard and gather."""

from typing import Annotated

from ckcv_ray.cli.data_options import ChosenData, choose_data
from ckcv_ray.cli.display import Display
from ckcv_ray.cli.division import Sharding, gather_shards, make_sharding, submit_work
from ckcv_ray.cli.options import (
    DetailsFlag,
    Folder,
    JsonFlag,
    OutFolder,
    choose_folder,
    make_execution,
    make_option,
    with_options,
)
from ckcv_ray.cli.output import console, say
from ckcv_ray.cli.signals import say_what_is_saved
from ckcv_ray.cli.study_options import make_study
from ckcv_ray.cli.supervise import require_supervision
from ckcv_ray.errors import InputError, pluralize
from ckcv_ray.runs.run import Job, Work, check_job
from ckcv_ray.runs.shards import compute_shard, open_on_disk
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.storage.places import locate
from ckcv_ray.study import Execution, Problem, Study
from ckcv_ray.validation import MOST, integer


@with_options(sharding=make_sharding, study=make_study, chosen=choose_data)
def submit(
    study: Study,
    chosen: ChosenData,
    sharding: Sharding,
    out: OutFolder = None,
    workers: Annotated[
        int | None,
        make_option("Shards that are computed at once, with --to local.", "every CPU", "Batch system"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Divide a study into shards for a batch system such as Slurm, or for processes of this machine.

    Takes the data and study options of ckcv run, and gives the same result. Each shard is a process of its
    own, which needs the run folder alone: on a disk that all nodes see. A shard that is killed goes on from
    its own log when it is started again. When all are computed, ckcv gather selects, refits and certifies.

    Shards compute every evaluation, also those that a race in one run would drop: more work, with no effect
    on the result. A procedure is divided by ckcv evaluate --shards.

        ckcv submit patients.csv --target outcome --shards 50 --to slurm
        ckcv submit patients.csv --target outcome --shards 8 --to local
    """
    if sharding.shards is None:
        raise InputError("shards: give the number of parts that a process each computes, such as --shards 50")
    if workers is not None:
        integer("workers", workers, least=1, most=MOST)
    require_supervision(study.learner)
    data = chosen.read(study.predicts_numbers)
    folder = out or choose_folder(data.task.source, "run", Problem.of(study, data.task).run_id)
    work = check_job(Job(study, data.task, folder, data.test))
    if data.test is not None and sharding.to != "local":
        say("test rows are not kept: after ckcv gather, the same options with ckcv run measure on them")
    submit_work(work, folder, sharding, workers, as_json)


def shard(
    folder: Folder,
    number: Annotated[int, make_option("Number of the shard, from 1, such as $SLURM_ARRAY_TASK_ID.")],
) -> None:
    """Compute one shard of a study that ckcv submit has divided.

    This is what each task of an array runs. It writes to its own log in the run folder, and goes on from
    there if it was killed or preempted before. A shard that is computed ends at once. Two processes never
    compute the same shard: the second is refused.

        ckcv shard runs/patients --number 7
    """
    learner = open_on_disk(folder).require().study.learner
    require_supervision(learner)
    with say_what_is_saved(folder) as signals, signals, Display(console) as display:
        failed = compute_shard(folder, number, display, signals.stop)
    tried = f"; {pluralize(failed, 'evaluation')} failed, which ckcv gather tries again" if failed else ""
    say(f"shard {number} of {folder} is computed{tried}")


@with_options(execution=make_execution)
def gather(
    folder: Folder, execution: Execution, details: DetailsFlag = False, as_json: JsonFlag = False
) -> None:
    """Join the shards of a study: select, refit, certify, and show the result.

    It waits for nothing. If shards are missing or still running, it says which (exit code 6). The result has
    the bytes that ckcv run gives. Refits take one process, unless --backend or --workers ask for more.

        ckcv gather runs/patients
        ckcv gather runs/patients --json
    """
    run_folder = RunFolder(folder)
    identity = run_folder.require()
    require_supervision(identity.study.learner, execution.fit_timeout)
    work = Work(run_folder.problem(identity), locate("folder", folder))
    gather_shards(work, folder, execution, as_json, details)
