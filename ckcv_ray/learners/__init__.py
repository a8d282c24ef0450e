"""What is fitted: learners behind one seam, their models, and ensembles of them."""
