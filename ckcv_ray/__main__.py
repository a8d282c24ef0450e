"""``python -m ckcv_ray`` is ``ckcv``."""

from ckcv_ray.cli.main import main

if __name__ == "__main__":
    main()
