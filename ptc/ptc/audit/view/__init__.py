"""A run of the log as one self-contained page, and a small loopback server for many.

Pages hold no address, run one script of ours under a strict content security policy, and show everything
a model or a tool wrote as text.
"""
