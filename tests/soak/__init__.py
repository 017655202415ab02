"""A long run of mixed chaos on the kernel: is memory flat, are files bounded, is the verdict believed?

make soak MINUTES=60        # or, as root: .venv/bin/python -m tests.soak --minutes 60
"""
