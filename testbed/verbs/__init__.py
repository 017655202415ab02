"""What programs written for MRC or RDMA NICs need to run on an emulated host: the libraries, built here."""
