"""Programs of others over the MRC API, on the kernel fabric through faults: `make test-thirdparty PROGRAMS="..."`."""
