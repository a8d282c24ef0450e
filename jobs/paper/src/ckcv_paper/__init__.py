"""The data of the paper: the IDA benchmarks, which ckcv_ray reads as the source ``ida:NAME:R``.

``archive`` reads the sets, ``matlab`` opens the public archive in a separate process, ``download`` fetches it
(``python -m ckcv_paper fetch``).
"""
