"""Results per test, as test runners report them."""
