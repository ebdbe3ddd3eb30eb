"""Services that show how to build on the packages; tests run them."""
