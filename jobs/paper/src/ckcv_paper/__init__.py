"""The data of the paper: the IDA benchmarks, which ckcv_ray reads as the source ``ida:NAME:R``.

``archive`` reads the sets, ``download`` fetches the public archive (``python -m ckcv_paper fetch``).
"""
