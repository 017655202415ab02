"""More runs than one machine can do: a folder of cells, engines that run them, and what is made of them."""
