# Figures of caret on the splits that check_against_peers.py --export FOLDER writes: FOLDER/caret.csv.
#
#     python -m jobs.faults.check_against_peers --export FOLDER
#     Rscript jobs/faults/check_against_peers.R FOLDER && cp FOLDER/caret.csv jobs/faults/
suppressPackageStartupMessages(library(caret))
folder <- commandArgs(trailingOnly = TRUE)[1]
figures <- data.frame()

read_splits <- function(table, resampling) {
    # One line for each split: numbers of the rows to fit on, a colon, numbers of the rows to score.
    lines <- readLines(file.path(folder, paste(table, resampling, "txt", sep = ".")))
    part <- function(i) lapply(strsplit(lines, ":"), function(both) as.integer(strsplit(both[i], ",")[[1]]))
    list(train = setNames(part(1), paste0("S", seq_along(lines))), test = part(2))
}

add <- function(table, method, resampling, split, measure, value) {
    figures <<- rbind(figures, data.frame(table, method, resampling, split, measure,
                                          value = sprintf("%.17g", value)))
}

score <- function(table, method, resampling, frame, grid, summary, measures, ...) {
    splits <- read_splits(table, resampling)
    how <- trainControl(method = "cv", index = splits$train, indexOut = splits$test, summaryFunction = summary,
                        classProbs = is.factor(frame$y))
    fit <- train(y ~ ., data = frame, method = method, tuneGrid = grid, trControl = how, ...)
    for (measure in measures) {
        by_split <- fit$resample[match(names(splits$train), fit$resample$Resample), measure]
        for (i in seq_along(by_split)) add(table, method, resampling, i - 1, measure, by_split[i])
        add(table, method, resampling, "mean", measure, fit$results[[measure]])
        add(table, method, resampling, "deviation", measure, fit$results[[paste0(measure, "SD")]])
    }
}

scaled <- c("center", "scale")
of_two <- function(...) c(twoClassSummary(...), defaultSummary(...))
for (resampling in c("kfold", "repeated_kfold", "subsampling", "bootstrap")) {
    numbers <- read.csv(file.path(folder, "numbers.csv"))
    score("numbers", "lm", resampling, numbers, NULL, defaultSummary, c("RMSE", "MAE", "Rsquared"))
    if (resampling != "bootstrap")  # repeated rows tie, and knn of R counts all that tie
        score("numbers", "knn", resampling, numbers, data.frame(k = 9), defaultSummary, c("RMSE", "MAE", "Rsquared"),
              preProcess = scaled)
    three <- read.csv(file.path(folder, "three_classes.csv"), stringsAsFactors = TRUE)
    score("three_classes", "lda", resampling, three, NULL, defaultSummary, c("Accuracy"))
    two <- read.csv(file.path(folder, "two_classes.csv"), stringsAsFactors = TRUE)
    score("two_classes", "lda", resampling, two, NULL, of_two, c("ROC", "Sens", "Spec", "Accuracy"))
    if (resampling != "bootstrap")
        score("two_classes", "knn", resampling, two, data.frame(k = 7), of_two, c("Sens", "Spec", "Accuracy"),
              preProcess = scaled)
}
write.csv(figures, file.path(folder, "caret.csv"), row.names = FALSE, quote = FALSE)
