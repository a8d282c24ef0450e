"""What users rely on: commands, and calls from Python, as typed in an empty folder.

Each case is some lines, run one after another. A line is a command without ``ckcv``; ``python NAME`` calls a
function of ``calls``. The tables that the lines name are written first (``tables``). Cases of ``BY_DAY`` are
part of every check.
"""

SMALL = "--k 3,4 --n-splits 4"
TREE = f"--learner tree {SMALL}"
PAPER = "--paper --k 3,4 --n-splits 4 --C 0.1,1,10 --gamma 0.1,1"
LEARNERS = (
    *("svm", "svm_nystroem", "linear", "boosting", "forest", "extra_trees", "neighbors", "tree"),
    *("naive_bayes", "mlp", "lda", "constant"),
)
OF_NUMBERS = (
    *("ridge", "linear_regression", "lasso", "neighbors_regressor", "tree_regressor", "forest_regressor"),
    *("boosting_regressor", "svr", "mean"),
)
RESAMPLINGS = (
    *("holdout:0.3", "kfold:5", "kfold:4:last", "repeated_kfold:3x2", "drawn_folds:3", "subsampling:4:0.25"),
    *("loo", "time:4", "bootstrap:4", "bootstrap632:4", "bootstrap632plus:4", "optimism:4", "nested:3:3"),
    "nested_halves:2",
)

CASES: dict[str, str] = {
    "the default": """
        run tumours.csv --target kind --n-splits 4 --out r
        status r
        predict r new.csv
        predict r new.csv --full
        verify r --rerun
        verify r --table tumours.csv
        report r
        run tumours.csv --target kind --n-splits 4 --out r --details
        """,
    "the published algorithm": f"""
        run tumours.csv --target kind {PAPER} --report-k 4 --out r
        predict r new.csv --vote
        predict r new.csv --member 1
        predict r new.csv --seed 3
        predict r new.csv --refit
        """,
    "every evaluation": f"run tumours.csv --target kind {PAPER} --exhaustive --out r",
    "rotation": f"run tumours.csv --target kind {PAPER} --resampling rotation --out r",
    "the study in JSON": f"run tumours.csv --target kind {TREE} --out r --json",
    "delta, seed and test rows": f"""
        run tumours.csv --target kind {TREE} --delta 0.1 --seed 7 --test new.csv --out r
        """,
    "criteria": f"""
        run tumours.csv --target kind {TREE} --criterion balanced --out a
        run tumours.csv --target kind {TREE} --criterion cost:malignant=5,benign=1 --out b
        run tumours.csv --target kind {TREE} --criterion mean_error --out c
        """,
    **{
        f"learner {name}": f"run tumours.csv --target kind --learner {name} {SMALL} --out r"
        for name in LEARNERS
    },
    "several learners": f"""
        run tumours.csv --target kind --learner tree,linear {SMALL} --claim refit,better:linear --out r
        predict r new.csv --probabilities
        """,
    "a class of scikit-learn": f"""
        run tumours.csv --target kind --learner sklearn.svm:SVC --param kernel=poly,rbf
            --param C=0.1,1 {SMALL} --out r
        predict r new.csv
        verify r --rerun
        """,
    "settings drawn, no scale": f"""
        run tumours.csv --target kind --learner linear --param C=loguniform:1e-2:1e2 --sample 4
            --scale none {SMALL} --out r
        """,
    "a budget": "run tumours.csv --target kind --learner tree --effort 400 --out r",
    "three classes": f"""
        run flowers.csv --target species {TREE} --claim refit,recall --out r
        predict r flowers.csv
        """,
    "weights and balance of classes": f"""
        run flowers.csv --target species {TREE} --class-weight balanced --out a
        run flowers.csv --target species {TREE} --balance up --out b
        """,
    "groups": f"""
        run visits.csv --target outcome --group patient {TREE} --out r
        predict r visits.csv --keep patient
        """,
    "a column that looks like groups": f"run visits.csv --target outcome {TREE} --out r",
    "text, dates and gaps": f"""
        run wards.csv --target outcome --id case {TREE} --out r
        predict r wards.csv --keep case
        verify r --table wards.csv
        """,
    "nullable": f"""
        run nullable.csv --target outcome --categorical level {TREE} --out r
        python run_frames
        """,
    "encoding and filling": f"""
        run wards.csv --target outcome --drop case --learner linear {SMALL} --encode target --fill mean
            --rare 0.3 --out r
        """,
    "labels of two forms": f"""
        run answers.csv --target kind {TREE} --out r
        run answers.csv --target kind {TREE} --labels join --out r
        run answers.csv --target kind {TREE} --labels join --drop-unlabelled --out r
        """,
    "weights of rows": f"run costs.csv --target kind --weight weight {TREE} --claim weighted_error:4 --out r",
    "what is claimed of two classes": f"""
        run tumours.csv --target kind {TREE} --claim refit,sensitivity,specificity,auc
            --positive malignant --out a
        run tumours.csv --target kind {TREE} --claim ppv:0.1,npv:0.1,net_benefit:0.1:0.2 --out b
        """,
    "required": f"""
        run tumours.csv --target kind {TREE} --require sensitivity>=0.6 --out a
        run tumours.csv --target kind {TREE} --require ppv:0.1>=0.2 --out b
        predict a new.csv
        """,
    "answered": f"""
        run tumours.csv --target kind {TREE} --answer error<=0.2 --out r
        predict r new.csv
        """,
    "subgroups": f"run wards.csv --target outcome --drop case {TREE} --subgroups ward --out r",
    "accepted or not": f"""
        run tumours.csv --target kind {TREE} --accept error<=0.5 --out a
        run tumours.csv --target kind {TREE} --accept error<=0.001 --out b
        """,
    "by the order of draw": f"""
        run tumours.csv --target kind {TREE} --holdout-bound stevens --holdout-share 0.5 --out r
        """,
    "numbers": f"""
        run houses.csv --target price --drop district --learner ridge --clip 20 {SMALL}
            --claim refit,within:0.9 --out r
        predict r houses.csv
        """,
    "numbers of groups": f"""
        run houses.csv --target price --group district --learner ridge --clip 20 {SMALL} --out r
        """,
    "few rows": """
        run few.csv --target kind --out r
        run few.csv --target kind --paper --k 3 --n-splits 90 --out p
        """,
    "planned": """
        plan tumours.csv --target kind
        plan few.csv --target kind
        plan --show sensitivity>=0.9
        plan --show ppv:0.02>=0.3 --true 0.9:0.99
        """,
    **{
        f"evaluated by {name}": f"""
        evaluate tumours.csv --target kind --learner tree --resampling {name} --out s
        """
        for name in RESAMPLINGS
    },
    "splits by a column": """
        evaluate folds.csv --target kind --learner tree --resampling column:fold --out s
        evaluate wards.csv --target outcome --id case --learner tree --resampling time:4 --time admitted
            --gap 10d --out t
        verify t --rerun
        """,
    "learners of numbers": f"""
        evaluate houses.csv --target price --drop district --learner {",".join(OF_NUMBERS)}
            --resampling kfold:3 --measure rmse,mape,r2 --out s
        """,
    "measures": """
        evaluate tumours.csv --target kind --learner linear --resampling kfold:3 --stratify
            --measure zero_one,auc,brier,roc_auc --out s
        """,
    "the best is fitted": """
        evaluate tumours.csv --target kind --learner tree --resampling kfold:4 --refit best
            --choose one_se --out s
        predict s new.csv
        """,
    "selected in each split": """
        evaluate tumours.csv --target kind --learner tree --param max_depth=1,2,3 --resampling kfold:4
            --select each --select-by zero_one --out s
        """,
    "permuted, with intervals and predictions": """
        evaluate tumours.csv --target kind --learner tree --resampling repeated_kfold:3x2
            --permutations 9 --interval corrected_t --save-predictions --out s
        evaluate tumours.csv --target kind --learner tree --param max_depth=1,2 --resampling kfold:3
            --interval bbc --out b
        """,
    "judged": f"""
        judge judged.csv --label kind --prediction theirs
        judge judged.csv --label kind --score size
        run tumours.csv --target kind {TREE} --out r
        predict r judged.csv --keep kind --out p.csv
        judge p.csv --label kind --prediction prediction --score score --positive malignant
            --claim error,sensitivity,specificity,auc,ppv --accept error<=0.01 --details
        """,
    "held out by a column": f"""
        run wards.csv --target outcome --id case --holdout-where ward=north {TREE} --out a
        run wards.csv --target outcome --id case --holdout-where admitted>=2026-09-01 {TREE} --out b
        verify b --rerun
        predict b wards.csv
        """,
    "a first look": "plan tumours.csv --target kind --learner tree,constant --try 60s",
    "compared": f"""
        run tumours.csv --target kind {TREE} --out a
        run tumours.csv --target kind --learner constant {SMALL} --out b
        compare a b --rows judged.csv --uses 2
        compare a --rows judged.csv --predictions theirs --uses 2
        compare a --rows judged.csv --predictions theirs --uses 2
        """,
    "watched": f"""
        run tumours.csv --target kind {TREE} --out r
        watch r judged.csv
        watch r judged.csv
        """,
    "a damaged folder": f"""
        run tumours.csv --target kind {TREE} --out r
        python damage
        verify r
        predict r new.csv
        """,
    "forms": f"""
        run tumours.csv --target kind {TREE} --out r
        report r --for tripod-ai --out tripod.md
        report r --for model-card --out card.md
        report r --short --out short.html
        """,
    "exported": f"""
        run tumours.csv --target kind --learner linear {SMALL} --out r
        export r --to skops --full --out model.skops
        """,
    "other formats": f"""
        run tumours.parquet --target kind {TREE} --out a
        run tumours.tsv --target kind {TREE} --out b
        """,
    "refusals": """
        run tumours.csv --out r
        run tumours.csv --target kynd --out r
        run absent.csv --target kind --out r
        run constant.csv --target kind --out r
        run houses.csv --target district --learner ridge --clip 3 --out r
        run tumours.csv --target kind --certify nowhere --out r
        run tumours.csv --target kind --holdout-share 0.01 --out r
        evaluate tumours.csv --target kind --measure none --out r
        predict absent new.csv
        """,
    "what was removed": """
        submit tumours.csv --target kind
        serve r
        new tumours.csv
        run tumours.csv --target kind --certify nested --out r
        run tumours.csv --target kind --outer-splits 3 --out r
        run tumours.csv --target kind --unlabelled new.csv --out r
        run tumours.csv --target kind --claim member:2 --out r
        run tumours.csv --target kind --bound stevens --out r
        evaluate tumours.csv --target kind --resampling lpo:2 --out s
        evaluate tumours.csv --target kind --interval nested_cv --out s
        evaluate tumours.csv --target kind --balance smote --out s
        predict r new.csv --refer
        """,
    "from Python": "python classify\n python run_and_load\n python run_several",
    "on Ray": "python run_on_ray",
    "killed and resumed": "python kill_and_resume",
    "in an object store": "python run_in_a_store",
}

BY_DAY = {
    *("the default", "the published algorithm", "three classes", "groups", "text, dates and gaps"),
    *("nullable", "labels of two forms", "what is claimed of two classes", "required", "answered"),
    *("subgroups", "numbers", "evaluated by kfold:5", "evaluated by nested:3:3", "the best is fitted"),
    *("compared", "judged", "held out by a column", "watched", "a damaged folder", "forms", "refusals"),
    *("what was removed", "from Python"),
}
