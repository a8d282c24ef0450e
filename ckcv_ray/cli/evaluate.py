"""Command evaluate."""

from typing import Annotated

from ckcv_ray.claims.rare_classes import describe_rare_classes
from ckcv_ray.cli.data_options import Chosen, choose_columns
from ckcv_ray.cli.display import Display
from ckcv_ray.cli.notes import say_columns, say_environment, show_result
from ckcv_ray.cli.options import JsonFlag, OutFolder, choose_folder, flag, make_execution, with_options
from ckcv_ray.cli.output import console, say
from ckcv_ray.cli.signals import say_what_is_saved
from ckcv_ray.cli.study_options import make_procedure
from ckcv_ray.cli.supervise import require_supervision
from ckcv_ray.runs.load import is_finished
from ckcv_ray.runs.run import assess
from ckcv_ray.storage.folder import RunFolder
from ckcv_ray.study import Execution, Problem, Study


@with_options(execution=make_execution, study=make_procedure, chosen=choose_columns)
def evaluate(
    study: Study,
    chosen: Chosen,
    execution: Execution,
    out: OutFolder = None,
    retry_failed: Annotated[
        bool, flag("--retry-failed", "Compute again what failed in a finished run.", "Execution")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Score learners by a usual procedure of cross validation, without a certificate.

    Each learner is fitted and scored on every split of the resampling; several learners are compared on the
    same splits. A learner is taken as it usually is (an SVM: C = 1, gamma = 1 / number of columns), or at
    every value that you name. A nested resampling selects among its values inside each training set.
    With --refit best the best setting of all is fitted on all rows, for ckcv predict.
    Learners of numbers (ridge, forest_regressor and others) predict a column of numbers.

    Run the same command again to resume an interrupted run, or to print the scores of a finished one.

        ckcv evaluate patients.csv --target outcome --learner forest
        ckcv evaluate patients.csv --target outcome --resampling loo --out runs/loo
        ckcv evaluate patients.csv --target outcome --resampling nested:5:5
        ckcv evaluate patients.csv --target outcome --refit best --out runs/model
        ckcv evaluate houses.csv --target price --learner ridge --measure rmse,r2
    """
    require_supervision(study.learner, execution.fit_timeout)
    task = chosen.task(study.predicts_numbers, allow_singletons=True)
    problem = Problem.of(study, task)
    folder = out or choose_folder(task.source, "scores", problem.run_id)
    is_finished(problem, RunFolder(folder))  # refuses a folder of something else before columns are shown
    say_environment(folder)
    say_columns(problem)
    for sentence in describe_rare_classes(task, held=0):
        say(sentence)
    with say_what_is_saved(folder) as signals, signals, Display(console) as display:
        result = assess(study, task, folder, execution, display, signals.stop, retry_failed)
    show_result(result, folder, as_json)
