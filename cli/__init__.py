"""The command line: translate, call one function, answer."""
